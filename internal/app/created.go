package app

import (
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Created is what the answer to a synchronous create said of its trackings.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func Created(items []tracking.Item, reply *tracking.Reply) []ledger.Sighting {
	answer := reply.Body.Answer()
	byNumber := make(map[string]tracking.Tracking, len(answer.Trackings))
	for _, t := range answer.Trackings {
		byNumber[t.Number] = t
	}
	var seen []ledger.Sighting
	for _, it := range items {
		t, ok := byNumber[it.Number]
		if ok && t.Known() && (t.ReferID == "" || t.ReferID == it.ReferID) {
			seen = append(seen, ledger.NewSighting(t, ledger.Processed, it.Key(), reply.Began.Add(reply.Took), ledger.FromCreate))
		}
	}
	return seen
}
