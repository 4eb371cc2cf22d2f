package poll

import (
	"context"
	"iter"
)

// Each calls do once for every number below n, at most workers at once. The first
// error ends it and the calls under way, and is returned; else the cause of ctx
// if it ended before.
func Each(ctx context.Context, n, workers int, do func(ctx context.Context, i int) error) error {
	return Run(ctx, numbers(n), Steps[int, struct{}](once(do)), Options{Workers: workers})
}

func numbers(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// once are the steps of keys that are done with their first question.
type once func(ctx context.Context, i int) error

// Load knows nothing.
func (once) Load(_ context.Context, keys []int) ([]Verdict, error) {
	return make([]Verdict, len(keys)), nil
}

// Ask does it.
func (o once) Ask(ctx context.Context, i int) (struct{}, error) { return struct{}{}, o(ctx, i) }

// Settle ends each.
func (once) Settle(_ context.Context, answers []Answer[int, struct{}]) ([]Verdict, error) {
	done := make([]Verdict, len(answers))
	for i := range done {
		done[i].Done = true
	}
	return done, nil
}

// Leave does nothing.
func (once) Leave(context.Context, []int) error { return nil }
