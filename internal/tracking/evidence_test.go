package tracking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestEvidence(t *testing.T) {
	item := tracking.Item{ReferID: "A1", Number: "1Z 999-a"}
	const named, processing = tracking.PresenceNamed, tracking.PresenceProcessing
	tests := []struct {
		name, raw string
		want      tracking.Presence
		why       string // how it begins
	}{
		{"shown", `{"trackingNumber":"1z999A","statusLabel":"DELIVERED"}`, named, ""},
		{"shown with its referId", `{"data":{"referId":"A1","trackingNumber":"1Z999A","statusTrack":"delivered"}}`, named, ""},
		{"shown as one of two parcels", `{"referId":"A1","data":[{"trackingNumber":"9","statusLabel":"X"},{"rawTrackingNumber":"1Z999A","latestEvent":"e"}]}`, named, ""},
		{"shown by its events", `[{"trackingNumber":"1Z999A","trackingEvents":[{"eventType":"e"}]}]`, named, ""},
		{"shown by the service's identifier", `{"trackingNumber":"1Z999A","status":1,"routerId":"7f0e"}`, named, ""},
		{"processing itself", `{"data":{"trackingNumber":"1Z999A","message":"Processing"}}`, named, ""},
		{"processing itself, among others", `{"data":[{"trackingNumber":"9","statusLabel":"X"},{"trackingNumber":"1Z999A","message":"Processing"}]}`, named, ""},

		{"processing as a whole", `{"message":"Processing"}`, processing, ""},
		{"processing as a whole, with the question", `{"message":"Processing","request":{"trackingNumber":"8"},"data":{"referId":"A1"}}`, processing, ""},
		{"processing as a whole, naming the number", `{"message":"Processing","data":{"trackingNumber":"1Z999A"}}`, processing, ""},

		{"another number", `{"data":{"trackingNumber":"9","statusLabel":"X"}}`, "", "names other numbers only"},
		{"another number, processing", `{"data":{"trackingNumber":"9","message":"Processing"}}`, "", "names other numbers only"},
		{"another number beside processing", `{"message":"Processing","data":{"trackingNumber":"9"}}`, "", "names other numbers only"},
		{"another referId beside processing", `{"message":"Processing","referId":"B"}`, "", "names other numbers only"},
		{"another referId", `{"data":{"referId":"B","trackingNumber":"1Z999A","statusLabel":"X"}}`, "", "names the number under another referId"},
		{"part of the number", `{"data":{"trackingNumber":"1Z999","statusLabel":"X"}}`, "", "names other numbers only"},
		{"no number", `{"data":{"statusLabel":"X"}}`, "", "shows a tracking without its number"},
		{"related only", `{"related":[{"trackingNumber":"1Z999A","statusLabel":"X"}]}`, "", "has no data of a tracking"},

		{"echo", `{"referId":"A1","rawTrackingNumber":"1Z 999-a"}`, "", "has no data of a tracking"},
		{"echo with the envelope's status", `{"trackingNumber":"1Z999A","status":200,"message":"no data"}`, "", "names the number, but has no data of the tracking"},
		{"with an error", `{"data":{"trackingNumber":"1Z999A","statusLabel":"X","error":{"code":"nope"}}}`, "", `names the number with an error: {"code":"nope"}`},

		{"error envelope", `{"code":401,"message":"bad\u001b[2J key","data":{"trackingNumber":"1Z999A","statusLabel":"X"}}`, "", `sign of error: bad\u{1b}[2J key`},
		{"success false", `{"success":false}`, "", "sign of error"},
		{"empty", ``, "", "empty"},
		{"HTML", ` <html>1Z999A</html>`, "", "HTML"},
		{"text", "try\nlater", "", "text: try later"},
		{"half an answer", `{"trackingNumber":"1Z999A","statusLabel":"X"`, "", "text: {"},
		{"nothing", `{}`, "", "has no data of a tracking"},
		{"null", `null`, "", "has no data of a tracking"},
		{"a number alone", `"1Z999A"`, "", "has no data of a tracking"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := tracking.ReadBody([]byte(tt.raw)).Evidence(item)
			if e.Presence != tt.want || !strings.HasPrefix(e.Why, tt.why) || (e.Why == "") != (tt.want != "") {
				t.Errorf("%q because it %q; want %q, %q", e.Presence, e.Why, tt.want, tt.why)
			}
			if e.Err != nil || e.Fingerprint != "" {
				t.Errorf("error %v, fingerprint %q; want none", e.Err, e.Fingerprint)
			}
		})
	}
}

// Where an answer stands or what surrounds it must not change what it proves.
func TestEvidenceInEveryShape(t *testing.T) {
	shapes := map[string]string{
		"bare": `%`, "data": `{"success":true,"data":%}`, "list": `[%]`, "list in data": `{"code":200,"data":[%]}`,
		"deep":  `{"result":{"payload":{"tracking":%}}}`,
		"noisy": `{"status":200,"code":0,"message":"OK","error":null,"request":{"trackingNumber":"other","status":9,"statusLabel":"X"},"data":{"carrier":{"id":"q"},"tracking":%},"related":[{"trackingNumber":"2","statusLabel":"LOST"}]}`,
	}
	for name, shape := range shapes {
		for number, want := range map[string]tracking.Presence{"1Z999": tracking.PresenceNamed, "2": "", "other": "", "1Z99": ""} {
			raw := strings.Replace(shape, "%", object, 1)
			if e := tracking.ReadBody([]byte(raw)).Evidence(tracking.Item{ReferID: "A", Number: number}); e.Presence != want {
				t.Errorf("%s proves %q of %s (%s); want %q", name, e.Presence, number, e.Why, want)
			}
		}
	}
}

func TestLook(t *testing.T) {
	tests := []struct {
		name   string
		status int
		raw    string
		refs   []string
		want   string
	}{
		{"words", 404, `{"message":"not found"}`, []string{"A1"}, "404 not found"},
		{"the reference", 404, `{"message":"tracking 'a1' (1Z-9) not found, A12"}`, []string{"A1", "1z-9", ""}, "404 tracking '…' (…) not found, A12"},
		{"a reference like a word", 404, `{"message":"no such tracking: s"}`, []string{"s"}, "404 no such tracking: …"},
		{"a reference of many bytes", 404, `{"message":"Ä→ß: none"}`, []string{"ä→ß"}, "404 …: none"},
		{"an error object", 200, `{"error":{"message":"none"}}`, nil, "200 none"},
		{"no words", 200, `{"code":0,"data":null,"items":[],"x":{}}`, nil, "200 {code,data:null,items:[],x:{}}"},
		{"nothing", 200, `{}`, nil, "200 {}"},
		{"empty list", 200, `[]`, nil, "200 []"},
		{"null", 200, `null`, nil, "200 null"},
		{"no body", 404, ``, nil, "404 empty"},
		{"HTML", 404, `<!doctype html>`, nil, "404 HTML"},
		{"text", 404, "404 page\nnot found", nil, "404 text: 404 page not found"},
		{"controls", 404, `{"message":"a\u001b]0;x\u0007\u202eb"}`, nil, `404 a\u{1b}]0;x\u{7}\u{202e}b`},
		{"long", 404, `{"message":"` + strings.Repeat("ab", 500) + `"}`, nil, "404 " + strings.Repeat("ab", 80) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tracking.ReadBody([]byte(tt.raw)).AbsenceFingerprint(tt.status, tt.refs...); got != tt.want {
				t.Errorf("fingerprint %q; want %q", got, tt.want)
			}
		})
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add([]byte(object), "A", "1Z999")
	f.Add([]byte(`{"message":"A not found"}`), "A", "1")
	f.Fuzz(func(t *testing.T, raw []byte, refer, number string) {
		b := tracking.ReadBody(raw)
		e := b.Evidence(tracking.Item{ReferID: refer, Number: number})
		if (e.Presence == tracking.PresenceUndecided) != (e.Why != "") {
			t.Errorf("presence %q because %q", e.Presence, e.Why)
		}
		for _, s := range []string{e.Why, b.AbsenceFingerprint(200, refer, number)} {
			if len(s) > 4000 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q is not short and printable", s)
			}
		}
	})
}

func TestRefusalsTakeOnlyRowsThatAreNamed(t *testing.T) {
	items := []tracking.Item{
		{ReferID: "A", Number: "N 1"},
		{ReferID: "A", Number: "N2"},
		{ReferID: "B", Number: "N3"},
		{ReferID: "C", Number: "x-4"},
		{ReferID: "C", Number: "X4"},
		{ReferID: "D", Number: "S5"},
		{ReferID: "E", Number: "S5"},
	}
	const silent = "the service refused this row without saying why"
	type rows map[int]string
	tests := []struct {
		name, raw string
		want      rows
	}{
		{"empty", ``, nil},
		{"all good", `{"items":[{"referId":"A","rawTrackingNumber":"N1","success":true,"error":null}]}`, nil},
		{"pair named", `{"items":[{"referId":"A","rawTrackingNumber":"n-1","success":false,"message":"bad number"}]}`, rows{0: "bad number"}},
		{"number named", `{"data":[{"trackingNumber":"N3","error":{"message":"no carrier"}}]}`, rows{2: "no carrier"}},
		{"referId of two parcels decides nothing", `{"failed":[{"referId":"A","reason":"x"}]}`, nil},
		{"listed as failed", `{"failed":[{"referId":"B","reason":"x"}]}`, rows{2: "x"}},
		{"listed without a word", `{"failed":[{"referId":"B"}]}`, rows{2: silent}},
		{"in an object named error", `{"error":{"rows":[{"item":{"referId":"B"}}]}}`, rows{2: silent}},
		{"a status word", `[{"rawTrackingNumber":"N2","status":"rejected"}]`, rows{1: silent}},
		{"a tracking's status is no verdict", `{"data":[{"referId":"B","trackingNumber":"N3","status":9002,"error":null,"summary":{"status":404}}]}`, nil},
		{"unknown row", `{"failed":[{"referId":"Z","rawTrackingNumber":"N9"}]}`, nil},
		{"the number of one row under another's referId", `{"failed":[{"referId":"B","rawTrackingNumber":"N2"}]}`, nil},
		{"as it is before as it could be read", `{"failed":[{"referId":"C","rawTrackingNumber":"X4","reason":"r"}]}`, rows{4: "r"}},
		{"as it is, the other", `{"failed":[{"referId":"C","rawTrackingNumber":"x-4","reason":"r"}]}`, rows{3: "r"}},
		{"as it is, the number alone", `{"failed":[{"rawTrackingNumber":"x-4","reason":"r"}]}`, rows{3: "r"}},
		{"could be read as two", `{"failed":[{"referId":"C","rawTrackingNumber":"x4"}]}`, nil},
		{"the number of two rows", `{"failed":[{"rawTrackingNumber":"S5"}]}`, nil},
		{"the number of two rows, with a referId", `{"failed":[{"rawTrackingNumber":"s5","referId":"E","reason":"r"}]}`, rows{6: "r"}},
		{"a number that was changed", `{"failed":[{"referId":"B","rawTrackingNumber":"0N3","reason":"r"}]}`, nil},
		{"two parcels, one of which is named further down", `{"data":[{"referId":"A","success":false,"parcels":[{"rawTrackingNumber":"N2","error":"r"}]}]}`, rows{1: "r"}},
		{"said twice", `{"failed":[{"referId":"B","reason":"x"},{"referId":"B","reason":"y"}]}`, rows{2: "x"}},
	}
	doubtful := map[string][]int{
		"referId of two parcels decides nothing":          {0, 1},
		"the number of one row under another's referId":   {1, 2},
		"could be read as two":                            {3, 4},
		"the number of two rows":                          {5, 6},
		"a number that was changed":                       {2},
		"two parcels, one of which is named further down": {0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want, ambiguous []tracking.RefusedRow
			for i, it := range items {
				if why, ok := tt.want[i]; ok {
					want = append(want, tracking.RefusedRow{Key: it.Key(), Reason: why})
				}
			}
			got, blanket := tracking.ReadBody([]byte(tt.raw)).Refusals(items)
			got = slices.DeleteFunc(got, func(v tracking.RefusedRow) bool {
				if v.Ambiguous {
					ambiguous = append(ambiguous, tracking.RefusedRow{Key: v.Key})
				}
				return v.Ambiguous
			})
			var maybe []tracking.RefusedRow
			for _, i := range doubtful[tt.name] {
				maybe = append(maybe, tracking.RefusedRow{Key: items[i].Key()})
			}
			if diff := cmp.Diff(maybe, ambiguous); diff != "" {
				t.Errorf("doubtful (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || blanket {
				t.Errorf("blanket %v, (-want +got):\n%s", blanket, diff)
			}
		})
	}
}

func TestRefusalOfAllRowsTogetherIsNoVerdictOnEach(t *testing.T) {
	items := []tracking.Item{{ReferID: "A", Number: "1"}, {ReferID: "B", Number: "2"}}
	tests := []struct {
		name, raw string
		items     []tracking.Item
		refused   int
		blanket   bool
	}{
		{"the request repeated", `{"error":{"message":"bad request","data":[{"referId":"A","rawTrackingNumber":"1"},{"referId":"B","rawTrackingNumber":"2"}]}}`, items, 0, true},
		{"one with a word", `{"errors":[{"referId":"A","rawTrackingNumber":"1"},{"referId":"B","message":"no"}]}`, items, 1, true},
		{"each with a word", `{"errors":[{"referId":"A","message":"no"},{"referId":"B","message":"no"}]}`, items, 2, false},
		{"each with a sign", `{"data":[{"referId":"A","success":false},{"referId":"B","ok":false}]}`, items, 2, false},
		{"not all", `{"failed":[{"referId":"A"}]}`, items, 1, false},
		{"parcels of one referId", `{"errors":[{"referId":"A"},{"referId":"A"}]}`, []tracking.Item{{ReferID: "A", Number: "1"}, {ReferID: "A", Number: "2"}}, 0, true},
		{"a lone row", `{"failed":[{"referId":"A"}]}`, items[:1], 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, blanket := tracking.ReadBody([]byte(tt.raw)).Refusals(tt.items)
			if len(rows) != tt.refused || blanket != tt.blanket {
				t.Errorf("%d rows, blanket %v; want %d, %v", len(rows), blanket, tt.refused, tt.blanket)
			}
		})
	}
}
