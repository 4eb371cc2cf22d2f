// Package webhook reads deliveries of the service: is a body authentic, and which events does it hold.
//
// The interface says no more of signatures than that they use SHA256. So the
// procedure is data: a [Scheme] says where the signature stands and what it is
// made of, a [Verifier] checks deliveries against it, and [Sign] makes what it
// checks. A delivery is checked against one scheme only; [Learn] alone tries many.
//
// [Decode] splits a body into events without changing or dropping a byte of it.
// What it cannot read is returned as a [Fragment].
//
// The package does no input or output, and all of it is safe for concurrent use.
package webhook
