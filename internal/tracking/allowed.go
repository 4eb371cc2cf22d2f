package tracking

import "context"

type allowedKey struct{}

// WithAllowed returns a context for a request whose bytes may leave only while
// allowed returns nil. It is called right before each write, for a process can stand
// still at any moment, and must not wait.
func WithAllowed(ctx context.Context, allowed func() error) context.Context {
	return context.WithValue(ctx, allowedKey{}, allowed)
}

// Allowed returns what [WithAllowed] was given; nil if the bytes may always leave.
func Allowed(ctx context.Context) func() error {
	allowed, _ := ctx.Value(allowedKey{}).(func() error)
	return allowed
}
