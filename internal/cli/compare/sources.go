package compare

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// chunk is how many rows are compared in one go.
const chunk = 500

// comparison compares the rows of a file with the other sources.
type comparison struct {
	call        *command.Call
	account     string
	file        *app.Store   // holds the file's rows
	run         ledger.Run   // of file
	store       *app.Store   // nil while there is none
	asker       *query.Asker // nil if the service is not asked
	hasEvents   bool
	all         bool // rows of the account that the file does not have, too
	staleBefore time.Time
	counts      counts
	erased      int64 // rows that are not compared: their data was erased
}

// differences yields what differs, in the order of the file. An error that ends
// the asking comes after what was compared by then.
func (c *comparison) differences(ctx context.Context) iter.Seq2[difference, error] {
	return func(yield func(difference, error) bool) {
		err := c.each(ctx, func(d difference) bool {
			c.counts.add(d)
			return yield(d, nil)
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(difference{}, err)
		}
	}
}

// errStop says that the consumer of differences stopped.
var errStop = errors.New("stop")

func (c *comparison) each(ctx context.Context, yield func(difference) bool) error {
	var rows []ledger.Row
	flush := func() error {
		err := c.compare(ctx, rows, yield)
		rows = rows[:0]
		return err
	}
	err := command.Each(c.file.History.Rows(ctx, c.run.ID), func(row ledger.Row) error {
		if row.Repeat {
			return nil
		}
		if rows = append(rows, row); len(rows) < chunk {
			return nil
		}
		return flush()
	})
	if err == nil && len(rows) > 0 {
		err = flush()
	}
	if err != nil || !c.all || c.store == nil {
		return err
	}
	return c.others(ctx, yield)
}

// compare compares rows. If not all could be asked about, those are compared that
// were, and the reason is the error.
func (c *comparison) compare(ctx context.Context, rows []ledger.Row, yield func(difference) bool) error {
	rows, err := c.withoutErased(ctx, rows)
	if err != nil {
		return err
	}
	orders, refs, err := c.orders(ctx, rows)
	if err != nil {
		return err
	}
	var askErr error
	if c.asker != nil {
		askErr = c.ask(ctx, refs, orders)
	}
	if err := c.completeOrders(ctx, refs, orders); err != nil {
		return err
	}
	for _, row := range rows {
		o := orders[row.Item.ReferID]
		if askErr != nil && o.answer == nil {
			continue
		}
		ds := o.differences(row)
		c.counts.rows++
		if len(ds) == 0 {
			c.counts.agree++
		}
		for _, d := range ds {
			if !yield(d) {
				return errStop
			}
		}
	}
	return askErr
}

// withoutErased leaves out the rows whose data was erased, and counts them.
func (c *comparison) withoutErased(ctx context.Context, rows []ledger.Row) ([]ledger.Row, error) {
	if c.store == nil {
		return rows, nil
	}
	qs := make([]tracking.Query, len(rows))
	for i, row := range rows {
		qs[i] = tracking.Query{ReferID: row.Item.ReferID, Number: row.Item.Number}
	}
	erased, err := c.store.Eraser.Erased(ctx, c.account, qs)
	if err != nil {
		return nil, err
	}
	var left []ledger.Row
	for i, row := range rows {
		if erased[i].At.IsZero() {
			left = append(left, row)
		}
	}
	c.erased += int64(len(rows) - len(left))
	return left, nil
}

// completeOrders adds the rows of the file that stand elsewhere to the orders for
// which they count: those that lack a row, or have one more.
func (c *comparison) completeOrders(ctx context.Context, refs []string, orders map[string]*order) error {
	var qs []tracking.Query
	for _, ref := range refs {
		if o := orders[ref]; o.lacking(o.isHere)+o.lacking(o.isSettledThere)+len(o.onlyKnown())+len(o.onlyThere()) > 0 {
			qs = append(qs, tracking.Query{ReferID: ref})
		}
	}
	inFile, err := c.file.Trackings.FindAll(ctx, c.account, qs)
	if err != nil {
		return err
	}
	for i, q := range qs {
		orders[q.ReferID].inFile = inFile[i]
	}
	return nil
}

// orders returns what these rows, the store and events have of their referIds, and
// these in order.
func (c *comparison) orders(ctx context.Context, rows []ledger.Row) (map[string]*order, []string, error) {
	orders := map[string]*order{}
	var refs []string
	var qs []tracking.Query
	for _, row := range rows {
		o := orders[row.Item.ReferID]
		if o == nil {
			o = &order{staleBefore: c.staleBefore, events: map[string]inbox.Event{}}
			orders[row.Item.ReferID] = o
			refs, qs = append(refs, row.Item.ReferID), append(qs, tracking.Query{ReferID: row.Item.ReferID})
		}
		o.inFile = append(o.inFile, ledger.TrackingStatus{Item: row.Item, State: row.State})
	}
	if c.store == nil {
		return orders, refs, nil
	}
	known, err := c.store.Trackings.FindAll(ctx, c.account, qs)
	if err != nil {
		return nil, nil, err
	}
	for i, ref := range refs {
		orders[ref].known = known[i]
	}
	if !c.hasEvents {
		return orders, refs, nil
	}
	for _, row := range rows {
		e, ok, err := c.lastEvent(ctx, row.Item.Number)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			orders[row.Item.ReferID].events[row.Item.Number] = e
		}
	}
	return orders, refs, nil
}

// lastEvent returns the last verified event about a number.
func (c *comparison) lastEvent(ctx context.Context, number string) (inbox.Event, bool, error) {
	for e, err := range c.store.Inbox.Events(ctx, inbox.Query{
		Trackings: &inbox.TrackingKeys{Numbers: []string{number}}, Verified: inbox.Yes, Genuine: true, Marks: []inbox.Mark{inbox.Current}, Newest: true, Limit: 1,
	}) {
		return e, err == nil, err
	}
	return inbox.Event{}, false, nil
}

// needsAnswer reports whether the service may have something of an order: it was
// sent, or somebody else may have.
func (o *order) needsAnswer() bool {
	for _, st := range o.inFile {
		here := find(o.known, st.Item.Number)
		if here == nil || here.State == ledger.Accepted || here.State == ledger.Unknown {
			return true
		}
	}
	return false
}

// ask asks the service about referIds. The first answer that every other question
// would meet too, and trouble for as long as the patience lasts, end it.
func (c *comparison) ask(ctx context.Context, refs []string, orders map[string]*order) error {
	s := &query.Scheduler{
		Asker: c.asker, Workers: c.call.Config.Concurrency, Hard: c.call.Hard(ctx), AskUnsent: true,
		Patience: cmp.Or(c.call.Config.Timeout, command.QueryTimeout),
		Ended: func(e query.Ending) error {
			if query.Temporary(e.Result.Err) {
				return e.Result.Err
			}
			if !e.Left {
				orders[e.Result.Ref].answer = &e.Result
			}
			return nil
		},
	}
	return s.Run(ctx, func(yield func(*query.Target, error) bool) {
		for _, ref := range refs {
			if !orders[ref].needsAnswer() {
				orders[ref].answer = &query.Result{}
			} else if !yield(&query.Target{Ref: ref, Query: tracking.Query{ReferID: ref}, Exact: true}, nil) {
				return
			}
		}
	})
}

// others yields the rows of the account whose referIds the file does not have.
func (c *comparison) others(ctx context.Context, yield func(difference) bool) error {
	var sts []ledger.TrackingStatus
	var qs []tracking.Query
	flush := func() error {
		found, err := c.file.Trackings.FindAll(ctx, c.account, qs)
		if err != nil {
			return err
		}
		for i, st := range sts {
			d := difference{kind: notInFile, run: st.Run, row: ledger.Row{Item: st.Item}, store: string(st.State)}
			if len(found[i]) == 0 && !yield(d) {
				return errStop
			}
		}
		sts, qs = sts[:0], qs[:0]
		return nil
	}
	err := command.Each(c.store.Trackings.Statuses(ctx, c.account, ledger.Filter{}), func(st ledger.TrackingStatus) error {
		if st.State == "" {
			return nil
		}
		sts, qs = append(sts, st), append(qs, tracking.Query{ReferID: st.Item.ReferID})
		if len(sts) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil || len(sts) == 0 {
		return err
	}
	return flush()
}
