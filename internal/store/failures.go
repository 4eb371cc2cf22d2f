package store

import (
	"context"
	"time"
)

// Failure is a class of what went wrong. It names nothing that was sent or received.
type Failure struct {
	Of     string // create, delivery refused, delivery not forwarded
	State  string // of a batch; or why a delivery was refused
	Status int    // HTTP status, 0 if none came
	Count  int64
	Last   time.Time
}

// failureQueries ask for classes of failures: state, status, count and last time.
var failureQueries = []struct{ of, query string }{
	{"create", `SELECT state, http_status, COUNT(*), MAX(began) FROM batches WHERE state IN ('rejected', 'unknown') OR http_status >= 300
		GROUP BY state, http_status ORDER BY state, http_status`},
	{"delivery refused", "SELECT reason, 0, COUNT(*), MAX(received) FROM refused GROUP BY reason ORDER BY reason"},
	{"delivery not forwarded", `SELECT CASE WHEN dead <> 0 THEN 'given up' ELSE 'waiting' END, status, COUNT(*), MAX(first_fail) FROM outbox WHERE failures > 0
		GROUP BY CASE WHEN dead <> 0 THEN 'given up' ELSE 'waiting' END, status ORDER BY 1, 2`},
}

// Failures returns the classes of what went wrong that the store knows of.
func (d *DB) Failures(ctx context.Context) ([]Failure, error) {
	var all []Failure
	for _, q := range failureQueries {
		err := d.each(ctx, func(s scanner) error {
			f := Failure{Of: q.of}
			var last int64
			err := s.Scan(&f.State, &f.Status, &f.Count, &last)
			f.Last = instant(last)
			all = append(all, f)
			return err
		}, q.query)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
