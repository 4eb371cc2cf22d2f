package term

import "context"

// Await returns what do returns, or the cause of ctx's end if that comes first.
// It is for what waits outside the program and cannot be interrupted: a read
// from a terminal or a pipe, opening a FIFO. do then goes on alone, until the
// program ends; nothing may use what it uses.
func Await[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
