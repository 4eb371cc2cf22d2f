package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// away is the connector of a server that is away.
type away struct{ Connector }

func (away) Begin(context.Context, *sql.Conn) error { return errors.New("away") }
func (away) Judge(error) (again, drop bool)         { return true, false }

// Deliveries that PutNew gives back are not left in the queue by those who gave up meanwhile.
func TestWhoGivesUpWhileDeliveriesAreStoredIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storing, givenBack := make(chan struct{}), make(chan struct{})
		begun := sync.OnceFunc(func() { close(storing) })
		w := newWriter(&Engine{Connector: away{}, KeepsTexts: true, Arrays: true, PutNew: func(context.Context, *sql.Conn, NewArrivals) (Last, bool, error) {
			begun()
			<-givenBack
			return Last{}, false, nil
		}}, newStatements())
		w.conn, w.stmts = new(sql.Conn), map[string]statement{}
		ctx, giveUp := context.WithCancel(t.Context())
		errs := make(chan error)
		w.token <- struct{}{}
		for range 2 {
			a, err := newArrival(inbox.Decode(inbox.Delivery{Body: []byte("{}")}))
			if err != nil {
				t.Fatal(err)
			}
			go func() { errs <- w.put(ctx, a) }()
		}
		synctest.Wait()
		<-w.token
		<-storing
		giveUp()
		synctest.Wait()
		close(givenBack)
		for range 2 {
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}
