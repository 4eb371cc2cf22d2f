package postgres

import (
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

func TestFailoverIsNoted(t *testing.T) {
	s, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := s.NewURL(t)
	var notes []string
	open := func(url string) {
		t.Helper()
		notes = nil
		d, err := openAt(t, url, Options{Note: func(text string) { notes = append(notes, text) }})
		if err != nil {
			t.Fatal(err)
		}
		run, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"-"}, Mode: ledger.Async, BatchSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Discard(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.TrustKey(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
	}
	open(url)
	open(url)
	if len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
	standby := newStandby(t, s)
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	url = sameSchema(t, standby, url)
	open(url)
	if len(notes) != 1 || !strings.Contains(notes[0], "failover") {
		t.Errorf("notes %q", notes)
	}
	open(url) // the last one wrote
	if len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}
