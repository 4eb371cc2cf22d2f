package inbox

import "context"

// MaxOverviewEvents is how many events an [Overview] has at most.
const MaxOverviewEvents = 5

// Overviews lists deliveries without what may be large of them.
//
// Every implementation must pass the suite Inbox of package storetest.
type Overviews interface {
	// Overviews returns the deliveries of a range, newest first. However many they are,
	// it takes the same number of queries, and reads no header and no body.
	Overviews(ctx context.Context, r DeliveryRange) ([]Overview, error)

	// Bodies returns the bodies of the deliveries of a range by their numbers, but for
	// those that were pruned. All of them are in memory at once: Size of an [Overview] says
	// how much that is.
	Bodies(ctx context.Context, r DeliveryRange) (map[int64][]byte, error)
}

// DeliveryRange names deliveries by their numbers. The zero DeliveryRange is all of them.
type DeliveryRange struct {
	From, To int64 // the first and the last number; To is 0 for no bound
	Limit    int   // the newest so many of them; 0 for no bound
	Refused  bool  // the refused ones, which have numbers of their own
}

// Overview is what a list shows of a delivery.
type Overview struct {
	Delivery // without Header and Body

	Size        int64        // of the body in bytes; -1 once it was pruned
	Events      []Event      // the first of its rows by place, each as it is now, without Data and Raw
	EventCount  int          // of all its rows
	Forwardings []Forwarding // in the order of the sinks, of which only ID, SinkKey and Cursor are set; HeldBy of what waits is not read
}
