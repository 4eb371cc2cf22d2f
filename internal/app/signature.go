package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// RefusedPrefix begins the name of a refused delivery, before its number.
const RefusedPrefix = "refused:"

// ErrPruned says that of a delivery only what was read from it is left.
var ErrPruned = errors.New("its bytes were pruned")

// Stored is a delivery of the store.
type Stored struct {
	inbox.Delivery

	Refused bool // it is evidence of a refusal, with a number of its own
}

// Name is what a user calls it.
func (d Stored) Name() string {
	if d.Refused {
		return RefusedPrefix + strconv.FormatInt(d.Seq, 10)
	}
	return strconv.FormatInt(d.Seq, 10)
}

// Sample is the delivery for package webhook.
func (d Stored) Sample() webhook.Sample {
	return webhook.Sample{Request: d.Request(), At: d.ReceivedAt}
}

// NamedDeliveries returns the deliveries that are named: by number, by
// refused:NUMBER, or by the eventId of an event that came with them. Errors
// are [inbox.ErrNoDelivery], [inbox.ErrNoEvent] and [ErrPruned].
func NamedDeliveries(ctx context.Context, db *Store, names []string) ([]Stored, error) {
	var all []Stored
	for _, name := range names {
		d, err := NamedDelivery(ctx, db, name)
		if err == nil && d.Body == nil {
			err = fmt.Errorf("delivery %q: %w", name, ErrPruned)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// NamedDelivery is [NamedDeliveries] for one, whose bytes may be gone.
func NamedDelivery(ctx context.Context, db *Store, name string) (Stored, error) {
	d, err := namedDelivery(ctx, db, name)
	if errors.Is(err, inbox.ErrNoDelivery) {
		err = inbox.ErrNoDelivery // the number is said already
	}
	if err != nil {
		return Stored{}, fmt.Errorf("delivery %q: %w", name, err)
	}
	return d, nil
}

func namedDelivery(ctx context.Context, db *Store, name string) (Stored, error) {
	if db == nil {
		return Stored{}, inbox.ErrNoDelivery
	}
	if number, refused := strings.CutPrefix(name, RefusedPrefix); refused {
		seq, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return Stored{}, inbox.ErrNoDelivery
		}
		for d, err := range db.Inbox.Refused(ctx, seq-1) {
			if err != nil || d.Seq == seq {
				return Stored{d, true}, err
			}
			break
		}
		return Stored{}, inbox.ErrNoDelivery
	}
	if seq, err := strconv.ParseInt(name, 10, 64); err == nil {
		d, err := db.Inbox.Delivery(ctx, seq)
		return Stored{d, false}, err
	}
	for e, err := range db.Inbox.Events(ctx, inbox.Query{EventID: name, Newest: true, Limit: 1}) {
		if err != nil {
			return Stored{}, err
		}
		d, err := db.Inbox.Delivery(ctx, e.Delivery)
		return Stored{d, false}, err
	}
	return Stored{}, inbox.ErrNoEvent
}

// EachDelivery calls f with the stored deliveries whose bytes are still there,
// newest first, until f returns false.
func EachDelivery(ctx context.Context, db *Store, f func(inbox.Delivery) (bool, error)) error {
	if db == nil {
		return nil
	}
	counts, err := db.Inbox.Counts(ctx)
	if err != nil {
		return err
	}
	for seq := counts.Deliveries; seq > 0; seq-- {
		d, err := db.Inbox.Delivery(ctx, seq)
		if errors.Is(err, inbox.ErrNoDelivery) || err == nil && d.Body == nil {
			continue
		}
		if err != nil {
			return err
		}
		if more, err := f(d); err != nil || !more {
			return err
		}
	}
	return nil
}

// Refusals returns the refused deliveries of which evidence is kept, newest
// first.
func Refusals(ctx context.Context, db *Store) ([]Stored, error) {
	if db == nil {
		return nil, nil
	}
	var all []Stored
	for d, err := range db.Inbox.Refused(ctx, 0) {
		if err != nil {
			return nil, err
		}
		all = append(all, Stored{d, true})
	}
	slices.Reverse(all)
	return all, nil
}

// APIKeySecret returns the API key as a secret that deliveries may be signed
// with, if there is one. Its name is what webhook.secrets can hold, or
// `api_key` for one that is written in the user file.
//
// Assumed: which secret signs is not shown; some services use the API key.
func (s *Session) APIKeySecret() (webhook.Secret, bool) {
	if s.Config.APIKeyFromStdin() {
		return webhook.Secret{}, false // standard input may hold the delivery
	}
	key, err := s.apiKey()
	if err != nil {
		return webhook.Secret{}, false
	}
	name := "api_key"
	if file := s.Config.APIKeyFile(); file != "" {
		name = "file:" + file
	} else if key.origin.Level == config.FromEnv {
		name = "env:" + key.origin.Name
	}
	return webhook.Secret{Name: name, Value: []byte(key.secret.Reveal())}, true
}

// EditUser changes the user file, in the profile that is in force, and returns
// its path. What the environment sets stays in force over it.
func (s *Session) EditUser(changes ...config.Change) (string, error) {
	return config.EditUser(s.sources, s.Config.Profile, changes...)
}

// Rejudged counts what became of stored deliveries that were verified again.
type Rejudged struct {
	Verified int                    // that were not before
	Refused  int                    // that do not verify
	Events   int64                  // that were released
	Reasons  map[webhook.Reason]int // why those of Refused do not verify
}

// Rejudge verifies every stored delivery again that is not verified, at the
// time of its receipt.
func Rejudge(ctx context.Context, db *Store, name string, v *webhook.Verifier) (Rejudged, error) {
	n := Rejudged{Reasons: map[webhook.Reason]int{}}
	var open []inbox.Delivery
	err := EachDelivery(ctx, db, func(d inbox.Delivery) (bool, error) {
		if d.Verified != inbox.Yes {
			open = append(open, inbox.Delivery{Seq: d.Seq})
		}
		return true, nil
	})
	if err != nil {
		return n, err
	}
	for _, o := range slices.Backward(open) { // oldest first: of equals the first stands
		d, err := db.Inbox.Delivery(ctx, o.Seq)
		if err != nil {
			return n, err
		}
		verdict := v.Verify(d.Request(), d.ReceivedAt)
		d.Verified, d.Scheme, d.Reason, d.SecretName, d.BodyAuthenticated = inbox.No, name, verdict.Reason, verdict.SecretName, verdict.BodyAuthenticated
		if verdict.OK {
			d.Verified = inbox.Yes
			n.Verified++
		} else {
			n.Refused++
			n.Reasons[verdict.Reason]++
		}
		receipt, err := db.Verdicts.Rejudge(ctx, d)
		if err != nil {
			return n, err
		}
		n.Events += receipt.Standing()
	}
	return n, nil
}
