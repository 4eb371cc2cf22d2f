package ledger_test

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestSupersedes(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	// seen is a sighting learnt so many minutes after at, with a checkpoint of
	// then, 0 for none.
	seen := func(from ledger.Source, learnt, checkpoint int) ledger.Sighting {
		s := ledger.Sighting{Phase: ledger.Processed, Source: from, Seen: at.Add(time.Duration(learnt) * time.Minute)}
		if checkpoint != 0 {
			s.Times = tracking.Times{Checkpoint: at.Add(time.Duration(checkpoint) * time.Minute)}
		}
		return s
	}
	as := func(p ledger.Phase, s ledger.Sighting) ledger.Sighting {
		s.Phase = p
		return s
	}
	was := func(minute int, s ledger.Sighting) ledger.Sighting {
		s.AsOf = at.Add(time.Duration(minute) * time.Minute)
		return s
	}
	const event, query = ledger.FromEvent, ledger.FromQuery
	for name, tt := range map[string]struct {
		s, known ledger.Sighting
		want     bool
	}{
		"answer older than an event":         {seen(query, 9, 1), seen(event, 5, 2), false},
		"answer newer than an event":         {seen(query, 9, 3), seen(event, 5, 2), true},
		"late event newer than an answer":    {was(1, seen(event, 9, 3)), seen(query, 5, 2), true},
		"event older than an answer":         {seen(event, 9, 1), seen(query, 5, 2), false},
		"create older than an event":         {seen(ledger.FromCreate, 9, 1), seen(event, 5, 2), false},
		"two events, the second older":       {seen(event, 9, 1), seen(event, 5, 2), false},
		"two events, the same checkpoint":    {was(1, seen(event, 9, 2)), was(2, seen(event, 5, 2)), false},
		"two answers: the later":             {seen(query, 9, 1), seen(query, 5, 2), true},
		"no checkpoint: the later":           {seen(query, 9, 0), seen(event, 5, 2), true},
		"no checkpoint: the earlier":         {seen(event, 4, 0), seen(query, 5, 2), false},
		"the same moment":                    {seen(query, 5, 0), seen(query, 5, 0), true},
		"processing after processed":         {as(ledger.Processing, seen(query, 9, 0)), seen(event, 5, 0), false},
		"processed before processing":        {seen(event, 1, 0), as(ledger.Processing, seen(query, 5, 0)), true},
		"processing after an error":          {as(ledger.Processing, seen(query, 9, 0)), as(ledger.InError, seen(event, 5, 0)), false},
		"error before processing":            {as(ledger.InError, seen(event, 1, 0)), as(ledger.Processing, seen(query, 5, 0)), true},
		"late event older than an error":     {seen(event, 9, 1), as(ledger.InError, seen(query, 5, 2)), false},
		"absent later: its times tell not":   {as(ledger.Absent, seen(query, 9, 1)), seen(event, 5, 2), true},
		"absent earlier: its times tell not": {as(ledger.Absent, seen(query, 1, 9)), seen(event, 5, 2), false},
	} {
		if got := tt.s.Supersedes(tt.known); got != tt.want {
			t.Errorf("%s: %v; want %v", name, got, tt.want)
		}
	}
}
