package store

// table is one of those that a copy has: all but what says who uses the store.
type table struct {
	name string
	key  []string // columns that order its rows, no two of which are alike in them
	part string   // condition for the rows that are copied, empty for all
}

func (t table) where() string {
	if t.part == "" {
		return ""
	}
	return " WHERE " + t.part
}

// countersCopied leaves out what is of one store alone.
const countersCopied = "name NOT IN ('commits', 'schema', 'identity')"

// copied lists the tables of a store that are copied.
var copied = []table{
	{name: "accounts", key: []string{"id"}},
	{name: "keyprints", key: []string{"account_id", "print"}},
	{name: "proofs", key: []string{"account_id", "shape"}},
	{name: "sweeps", key: []string{"account_id", "name"}},
	{name: "observed", key: []string{"account_id", "kind", "name"}},
	{name: "erased", key: []string{"hash"}},
	{name: "counters", key: []string{"name"}, part: countersCopied},
	{name: "runs", key: []string{"id"}},
	{name: "batches", key: []string{"id"}},
	{name: "batch_answers", key: []string{"batch_id"}},
	{name: "rows", key: []string{"id"}},
	{name: "run_known_rows", key: []string{"run_id", "pos"}},
	{name: "repeats", key: []string{"run_id", "pos"}},
	{name: "run_batches", key: []string{"run_id", "batch_id"}},
	{name: "absences", key: []string{"row_id"}},
	{name: "dismissals", key: []string{"row_id"}},
	{name: "numbers", key: []string{"account_id", "folded", "row_id"}},
	{name: "statuses", key: []string{"id"}},
	{name: "sightings", key: []string{"id"}},
	{name: "tracking_counts", key: []string{"account_id", "run_id", "status_id", "carrier", "transit_days"}},
	{name: "answers", key: []string{"account_id", "refer_id"}},
	{name: "deliveries", key: []string{"seq"}},
	{name: "events", key: []string{"seq"}},
	{name: "refused", key: []string{"seq"}},
	{name: "readmitted", key: []string{"refused"}},
	{name: "sinks", key: []string{"id"}},
	{name: "released", key: []string{"seq"}},
	{name: "outbox", key: []string{"seq"}},
	{name: "outbox_numbers", key: []string{"sink", "folded", "letter"}},
	{name: "forwarded", key: []string{"delivery", "sink"}},
}
