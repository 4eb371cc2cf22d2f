package store

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// leastRefused is the minimum size that a refused delivery counts as, in bytes: MaxRefusedBytes limits the number too.
const leastRefused = inbox.MaxRefusedBytes / inbox.MaxRefused

// Classes of refused deliveries, as stored.
const (
	unsigned    int64 = iota // no well-formed signature
	signed                   // a well-formed one
	signedKnown              // a well-formed one, from an address that verified deliveries came from
)

// Sums over all addresses, or all minutes.
const (
	allSources       = "*"
	allMinutes int64 = -1
)

type refusedGroup struct {
	class  int64
	source string // address without port, or /64 network for IPv6; or allSources
	minute int64  // of receipt, since 1970; or allMinutes
}

// refusedSums holds the size of each group of the table, sums included, so that a flood does not need a count of the
// table per delivery. A process that finds the table changed by others rereads it.
type refusedSums struct {
	last, rows int64                  // greatest seq and number of rows of the table
	bytes      map[refusedGroup]int64 // nil until read
}

// PutRefused stores a refused delivery as evidence, see [inbox.Store].
func (d *DB) PutRefused(ctx context.Context, delivery inbox.Delivery) (int64, error) {
	return runFor(ctx, d, func(ctx context.Context, t *tx) int64 { return t.putRefused(ctx, delivery) })
}

func (t *tx) putRefused(ctx context.Context, d inbox.Delivery) int64 {
	if t.isErasedRefused(ctx, d) {
		d.Header, d.Body = nil, nil
	}
	if d.Body == nil {
		d.Body = []byte{}
	}
	sums := &t.w.refused
	sums.update(ctx, t)
	minute := millis(d.ReceivedAt) / time.Minute.Milliseconds()
	group := refusedGroup{unsigned, refusedSource(d.RemoteAddr), minute}
	if d.Reason.WellFormed() {
		group.class = signed + flag(t.verifiedFrom(ctx, d.RemoteAddr))
	}
	values := deliveryFields.appendValues(nil, &d)
	header, _ := values[len(deliveryFacts)].([]byte)
	size := max(int64(len(header)+len(d.Body)), leastRefused)
	lot := rand.Int64() //nolint:gosec // whoever could foresee it gains a place among 4,096
	values = append(values, size, group.class, group.source, group.minute, lot)
	insert := "INSERT INTO refused (" + deliveryColumns + ", bytes, class, source, minute, lot) VALUES "
	if !t.row(ctx, []any{&sums.last}, insert+tuples(1, len(values))+" RETURNING seq", values...) {
		return 0 // without a change of the sums, which outlive the transaction
	}
	sums.rows++
	sums.add(group, size)
	seq := sums.last
	for sums.total() > inbox.MaxRefusedBytes {
		if t.evict(ctx, sums) == seq {
			seq = 0
		}
	}
	return seq
}

// evict deletes a refused delivery of the group that must give way, and returns its number. It takes the lowest lot,
// so that the rest of a group is a uniform sample of all that arrived.
func (t *tx) evict(ctx context.Context, sums *refusedSums) int64 {
	group := sums.largest()
	var seq, size int64
	ok := t.row(ctx, []any{&seq, &size}, `DELETE FROM refused WHERE seq = (SELECT seq FROM refused
		WHERE class = $1 AND source = $2 AND minute = $3 ORDER BY lot LIMIT 1) RETURNING seq, bytes`,
		group.class, group.source, group.minute)
	if !ok { // can't happen: the sums match the table
		sums.read(ctx, t)
		return 0
	}
	sums.rows--
	sums.add(group, -size)
	t.exec(ctx, "UPDATE counters SET value = value + 1 WHERE name = 'refused_dropped'")
	return seq
}

// verifiedFrom reports whether a verified delivery came from that address, on any port.
func (t *tx) verifiedFrom(ctx context.Context, remote string) bool {
	host := strings.TrimRight(remote, "0123456789")
	if host == "" {
		return false
	}
	return value[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM deliveries
		WHERE verified = 'yes' AND rtrim(remote, '0123456789') = $1)`, host)
}

// refusedSource returns the source that refused deliveries from an address are grouped by. One sender may have all
// addresses of an IPv6 /64 network.
func refusedSource(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return clean(remote)
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return clean(remote)
	}
	return network.String()
}

// update rereads the sums if the table is not as this process left it.
func (s *refusedSums) update(ctx context.Context, t *tx) {
	if t.sums {
		return
	}
	t.sums = true
	var last, rows int64
	const lastAndRows = "SELECT (SELECT COALESCE(MAX(seq), 0) FROM refused), (SELECT COUNT(*) FROM refused)"
	t.row(ctx, []any{&last, &rows}, lastAndRows)
	if s.bytes == nil || s.last != last || s.rows != rows {
		s.read(ctx, t)
	}
}

func (s *refusedSums) read(ctx context.Context, t *tx) {
	*s = refusedSums{bytes: map[refusedGroup]int64{}}
	t.each(ctx, func(row scanner) error {
		var group refusedGroup
		var last, rows, size int64
		err := row.Scan(&group.class, &group.source, &group.minute, &last, &rows, &size)
		s.last, s.rows = max(s.last, last), s.rows+rows
		s.add(group, size)
		return err
	}, "SELECT class, source, minute, MAX(seq), COUNT(*), SUM(bytes) FROM refused GROUP BY class, source, minute")
}

func (s *refusedSums) add(group refusedGroup, size int64) {
	for _, g := range [...]refusedGroup{
		{group.class, allSources, allMinutes},
		{group.class, group.source, allMinutes},
		{group.class, allSources, group.minute},
		group,
	} {
		if s.bytes[g] += size; s.bytes[g] == 0 {
			delete(s.bytes, g)
		}
	}
}

func (s *refusedSums) total() int64 { return s.of(unsigned) + s.of(signed) + s.of(signedKnown) }

func (s *refusedSums) of(class int64) int64 {
	return s.bytes[refusedGroup{class, allSources, allMinutes}]
}

// largest returns the group that must give way, see [inbox.Store].
func (s *refusedSums) largest() refusedGroup {
	class := slices.MaxFunc([]int64{unsigned, signed, signedKnown}, func(a, b int64) int {
		return cmp.Compare(s.of(a), s.of(b))
	})
	part := s.most(func(g refusedGroup) bool {
		return g.class == class && (g.source == allSources) != (g.minute == allMinutes)
	})
	return s.most(func(g refusedGroup) bool {
		isOne := g.class == class && g.source != allSources && g.minute != allMinutes
		return isOne && (g.minute == part.minute || g.source == part.source)
	})
}

// most returns the group of a kind that holds the most bytes, any one of several.
func (s *refusedSums) most(isOfKind func(refusedGroup) bool) (most refusedGroup) {
	var size int64
	for g, bytes := range s.bytes {
		if bytes > size && isOfKind(g) {
			most, size = g, bytes
		}
	}
	return most
}
