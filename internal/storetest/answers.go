package storetest

import (
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

var answerTests = map[string]func(*world){
	"LastAnswerIsKept":          lastAnswerIsKept,
	"AnswersComeBackWhole":      answersComeBackWhole,
	"OlderAnswersChangeNothing": olderAnswersChangeNothing,
	"OneCallHasSeveralAnswers":  oneCallHasSeveralAnswers,
	"SweepsGoOn":                sweepsGoOn,
}

// answered records an answer about the n-th item so many minutes after sent.
func (w *world) answered(n, minutes int, says string) {
	w.Helper()
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{answerAbout(n, minutes, says)}))
}

func answerAbout(n, minutes int, says string) ledger.RecordedAnswer {
	return ledger.RecordedAnswer{ReferID: item(n).ReferID, Asked: sent.Add(time.Duration(minutes) * time.Minute), Raw: []byte(says)}
}

// last returns the last answer about the n-th item.
func (w *world) last(n int) string {
	w.Helper()
	raw := have(w.LastAnswer(w.Context(), item(n).ReferID))(w)
	return string(raw)
}

func lastAnswerIsKept(w *world) {
	w.same("none", w.last(1), "")
	w.answered(1, 1, "a")
	w.answered(2, 3, "c")
	w.answered(1, 2, "b")
	w.kill()
	w.same("the last", w.last(1), "b")
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{ReferID: item(1).ReferID, Asked: sent.Add(time.Hour)}}))
	w.same("after an answer without bytes", w.last(1), "b")
	// An answer about a number is about the referIds that it was seen for.
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting(2, sent.Add(9*time.Minute))}, Raw: []byte("d")}}))
	w.same("asked by number", w.last(2), "d")
}

func olderAnswersChangeNothing(w *world) {
	w.answered(1, 5, "a")
	w.answered(1, 4, "b")
	w.same("the last", w.last(1), "a")
}

// oneCallHasSeveralAnswers records answers about one referId together: they count in
// their order.
func oneCallHasSeveralAnswers(w *world) {
	w.must(w.Record(w.Context(), []ledger.RecordedAnswer{
		answerAbout(1, 1, "a"), answerAbout(2, 1, "x"), answerAbout(1, 2, "b"), answerAbout(1, 3, "b again"), answerAbout(2, 4, "x again"), answerAbout(1, 2, "c, late"),
	}))
	w.same("the last", w.last(1), "b again")
	w.same("of the other", w.last(2), "x again")
}

// Answers come back byte for byte, whatever their length and their first bytes.
func answersComeBackWhole(w *world) {
	for i, size := range []int{1, 2, 100, 2559, 2560, 100_000} {
		for j, begin := range []string{"{", "\x1f\x8b", "\x00"} {
			n, raw := 10*i+j, []byte((begin + strings.Repeat("\xff{}", size))[:size])
			w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{ReferID: item(n).ReferID, Asked: sent, Raw: raw}}))
			if got := w.last(n); got != string(raw) {
				w.Errorf("%d bytes that begin with %q came back as %d others", size, begin, len(got))
			}
		}
	}
}

func sweepsGoOn(w *world) {
	begin := func(name string, oldest time.Time) time.Time {
		w.Helper()
		at := have(w.BeginSweep(w.Context(), name, oldest))(w)
		return at
	}
	start := time.Now().Add(-time.Second)
	first := begin("run 1", start)
	if first.Before(start) || first.After(time.Now()) {
		w.Errorf("began at %v", first)
	}
	w.kill()
	w.same("the same again", begin("run 1", start), first)
	w.same("not before oldest", begin("run 1", first.Add(time.Millisecond)).Before(first.Add(time.Millisecond)), false)
	begin("run 2", start)
	w.must(w.EndSweep(w.Context(), "run 1"))
	w.must(w.EndSweep(w.Context(), "run 1"))
	w.must(w.EndSweep(w.Context(), "run 2"))
	w.same("of another name", begin("run 2", start), have(w.BeginSweep(w.Context(), "run 2", start))(w))
}
