package replay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Capture returns the delivery in the form for export.
func (d Delivery) Capture() webhook.Capture {
	return webhook.Capture{
		Sample: d.Sample(), From: d.RemoteAddr, ID: d.ID(), Delivery: d.Seq, Verified: string(d.Verified),
	}
}

// Importer adds deliveries from files to a store, as if they had been received then. It does not believe a file's
// verdicts: each delivery is verified with the present scheme and secrets, as of the time of its receipt.
type Importer struct {
	Store    inbox.Store
	Verifier Verifier // nil: nothing is verified
	Scheme   string   // name of Verifier's scheme

	eventless map[[sha256.Size]byte]bool // stored deliveries without an eventId; nil until read
}

// Imported is the result of importing one delivery.
type Imported struct {
	Known    bool // it was already stored, so nothing was added
	Verified bool
	Events   int64 // new events
}

// Import stores one delivery, unless the same one is already stored: same bytes, header and time of receipt. A
// delivery without a time is received now, and compared without it.
func (i *Importer) Import(ctx context.Context, c webhook.Capture) (Imported, error) {
	at := c.At.UTC().Truncate(time.Millisecond) // as it is stored; zero if the file does not say
	d := inbox.Delivery{
		ReceivedAt: cmp.Or(at, time.Now().UTC().Truncate(time.Millisecond)), RemoteAddr: c.From, Method: c.Method,
		Path: c.Path, RawQuery: c.RawQuery, Header: c.Header, Body: c.Body, Verified: inbox.Unknown,
	}
	if i.Verifier != nil {
		d = verify(d, i.Scheme, i.Verifier)
	}
	d, rows := inbox.Decode(d)
	done := Imported{Verified: d.Verified == inbox.Yes}
	var err error
	if done.Known, err = i.known(ctx, d, rows, at); err != nil || done.Known {
		return done, err
	}
	receipt, err := i.Store.Put(ctx, d, rows)
	done.Events = receipt.CountCurrent()
	return done, err
}

// known compares the time of receipt too, unless it is zero. Fingerprints of the few without an eventId are in memory.
func (i *Importer) known(ctx context.Context, d inbox.Delivery, rows []inbox.Event, at time.Time) (bool, error) {
	first := slices.IndexFunc(rows, func(e inbox.Event) bool { return e.EventID != "" })
	if first < 0 {
		return i.knownEventless(ctx, d, at)
	}
	seen := int64(0)
	for e, err := range i.Store.Events(ctx, inbox.Query{EventID: rows[first].EventID, Since: at}) {
		if err != nil {
			return false, err
		}
		if e.Delivery == seen || !at.IsZero() && !e.ReceivedAt.Equal(at) {
			continue
		}
		seen = e.Delivery
		other, err := i.Store.Delivery(ctx, e.Delivery)
		if err != nil {
			return false, err
		}
		if other.Body != nil && fingerprint(other, at) == fingerprint(d, at) ||
			other.Body == nil && e.Index == rows[first].Index && e.Length == rows[first].Length {
			return true, nil
		}
	}
	return false, nil
}

func (i *Importer) knownEventless(ctx context.Context, d inbox.Delivery, at time.Time) (bool, error) {
	if i.eventless == nil {
		i.eventless = map[[sha256.Size]byte]bool{}
		last := int64(0)
		for e, err := range i.Store.Events(ctx, inbox.Query{}) {
			if err != nil {
				return false, err
			}
			if e.EventID != "" || e.Delivery == last {
				continue
			}
			last = e.Delivery
			other, err := i.Store.Delivery(ctx, e.Delivery)
			if err != nil {
				return false, err
			}
			i.remember(other)
		}
	}
	known := i.eventless[fingerprint(d, at)]
	i.remember(d)
	return known, nil
}

func (i *Importer) remember(d inbox.Delivery) {
	i.eventless[fingerprint(d, d.ReceivedAt)], i.eventless[fingerprint(d, time.Time{})] = true, true
}

// fingerprint returns the hash of everything that was received, and of a time of receipt.
func fingerprint(d inbox.Delivery, at time.Time) [sha256.Size]byte {
	head := fmt.Appendf(nil, "%d %q %q %q %q\n", at.UnixMilli(), d.Method, d.Path, d.RawQuery, d.Header)
	return sha256.Sum256(append(head, d.Body...))
}

// Verifier verifies requests, such as a [webhook.Verifier].
type Verifier interface {
	Verify(r webhook.Request, now time.Time) webhook.Verdict
}

func verify(d inbox.Delivery, scheme string, v Verifier) inbox.Delivery {
	return d.WithVerdict(scheme, v.Verify(d.Request(), d.ReceivedAt))
}

// Readmit stores a refused delivery in the inbox if it verifies now. It returns nil if it does not, or if it is there.
func Readmit(
	ctx context.Context, box inbox.Verdicts, scheme string, v Verifier, d inbox.Delivery,
) (*inbox.Receipt, error) {
	refused := d.Seq
	if d = verify(d, scheme, v); d.Verified != inbox.Yes {
		return nil, nil //nolint:nilnil // that it stays refused is an answer
	}
	d, rows := inbox.Decode(d)
	receipt, err := box.Readmit(ctx, refused, d, rows)
	if errors.Is(err, inbox.ErrNoDelivery) {
		return nil, nil //nolint:nilnil // so is that somebody else was faster
	}
	return &receipt, err
}

// Reverified counts stored deliveries that were verified again.
type Reverified struct {
	Verified int                    `json:"verified"` // deliveries that did not verify before
	Refused  int                    `json:"refused"`  // deliveries that do not verify
	MadeUp   int                    `json:"madeUp"`   // made up by `events send`; counted only here
	Events   int64                  `json:"events"`   // events that were released
	Reasons  map[webhook.Reason]int `json:"reasons"`  // why the refused ones do not verify
}

// Reverify verifies every stored delivery again that is not verified and not pruned.
func Reverify(ctx context.Context, in Inbox, verdicts inbox.Verdicts, scheme string, v Verifier) (Reverified, error) {
	n := Reverified{Reasons: map[webhook.Reason]int{}}
	var open []int64
	for d, err := range Whole(ctx, in) {
		if err != nil {
			return n, err
		}
		if d.Verified != inbox.Yes {
			open = append(open, d.Seq)
		}
	}
	for _, seq := range slices.Backward(open) { // oldest first: of equal events the first one counts
		d, err := in.Delivery(ctx, seq)
		if err != nil {
			return n, err
		}
		d = verify(d, scheme, v)
		switch {
		case d.IsSynthetic():
			n.MadeUp++
		case d.Verified == inbox.Yes:
			n.Verified++
		default:
			n.Refused++
			n.Reasons[d.Reason]++
		}
		receipt, err := verdicts.SetVerdict(ctx, d)
		if err != nil {
			return n, err
		}
		n.Events += receipt.CountCurrent()
	}
	return n, nil
}
