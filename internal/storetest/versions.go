package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

var versionTests = map[string]func(*world){
	"ChangedAnswersAreKept":       changedAnswersAreKept,
	"AnswersComeBackWhole":        answersComeBackWhole,
	"FirstAndLatestAreKept":       firstAndLatestAreKept,
	"NothingIsKeptBetweenOthers":  nothingIsKeptBetweenOthers,
	"VersionsAreOfOneReferID":     versionsAreOfOneReferID,
	"OlderAnswersAreNoNewVersion": olderAnswersAreNoNewVersion,
	"OneCallHasSeveralAnswers":    oneCallHasSeveralAnswers,
	"PrunesVersions":              prunesVersions,
	"SweepsGoOn":                  sweepsGoOn,
}

// answered records an answer about the n-th item so many minutes after sent,
// whose digest is the first letter of what it says.
func (w *world) answered(n, minutes int, says string) {
	w.Helper()
	w.must(w.Record(w.Context(), account, []ledger.RecordedAnswer{answerAbout(n, minutes, says)}))
}

func answerAbout(n, minutes int, says string) ledger.RecordedAnswer {
	a := ledger.RecordedAnswer{ReferID: item(n).ReferID, Asked: sent.Add(time.Duration(minutes) * time.Minute), Raw: []byte(says)}
	if says != "" && says[0] != '-' {
		a.Digest = []byte(says[:1])
	}
	return a
}

// versions returns the versions of the n-th item: when the first and the last of
// the answers came, in minutes after sent, and what the last said.
func (w *world) versions(n int) []string {
	w.Helper()
	var all []string
	for v, err := range w.AnswerVersions(w.Context(), account, item(n).ReferID) {
		w.must(err)
		if says := string(v.Raw); says[0] != '-' && says[:1] != string(v.Digest) || says[0] == '-' && len(v.Digest) > 0 {
			w.Errorf("%s has digest %q", says, v.Digest)
		}
		all = append(all, fmt.Sprintf("%v-%v %s", v.First.Sub(sent).Minutes(), v.Last.Sub(sent).Minutes(), v.Raw))
	}
	return all
}

func changedAnswersAreKept(w *world) {
	w.answered(1, 1, "a, request 1")
	w.same("the first", w.versions(1), []string{"1-1 a, request 1"})
	w.answered(1, 2, "a, request 2")
	w.answered(1, 3, "b")
	w.answered(1, 4, "c")
	w.answered(1, 6, "c again")
	w.answered(1, 7, "a, request 7")
	w.kill()
	w.same("versions", w.versions(1), []string{"1-2 a, request 2", "3-3 b", "4-6 c again", "7-7 a, request 7"})
	last, err := w.LastAnswer(w.Context(), account, item(1).ReferID)
	w.must(err)
	w.same("the last", string(last.Raw), "a, request 7")
	none, err := w.LastAnswer(w.Context(), account, item(2).ReferID)
	w.must(err)
	w.same("none", none.Raw, []byte(nil))
	w.must(w.Record(w.Context(), account, []ledger.RecordedAnswer{{ReferID: item(1).ReferID, Asked: sent.Add(time.Hour), Digest: []byte("d")}}))
	w.same("after an answer without bytes", len(w.versions(1)), 4)
}

func firstAndLatestAreKept(w *world) {
	for minute := 1; minute <= 120; minute++ {
		w.answered(1, minute, string(rune('a'+minute%2)))
	}
	got := w.versions(1)
	w.same("versions", len(got), 101)
	w.same("first, second and last", []string{got[0], got[1], got[100]}, []string{"1-1 b", "21-21 b", "120-120 a"})
}

func nothingIsKeptBetweenOthers(w *world) {
	w.answered(1, 1, "-processing")
	w.same("processing", w.versions(1), []string{"1-1 -processing"})
	w.answered(1, 2, "a")
	w.same("processed", w.versions(1), []string{"2-2 a"})
	w.answered(1, 3, "-processing")
	w.answered(1, 4, "a")
	w.same("between", w.versions(1), []string{"2-2 a", "3-3 -processing", "4-4 a"})
}

func versionsAreOfOneReferID(w *world) {
	w.answered(1, 1, "a")
	w.answered(1, 2, "b")
	w.answered(2, 3, "c")
	w.same("versions", w.versions(2), []string{"3-3 c"})
	w.same("of another that is not known", w.versions(3), []string(nil))
	for _, err := range w.AnswerVersions(w.Context(), "other", item(1).ReferID) {
		w.Errorf("another account has them (%v)", err)
	}
	// An answer about a number is about the referIds that it was seen for.
	w.must(w.Record(w.Context(), account, []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting(2, sent.Add(9*time.Minute))}, Raw: []byte("d"), Digest: []byte("d")}}))
	w.same("asked by number", w.versions(2), []string{"3-3 c", "9-9 d"})
	for _, err := range w.AnswerVersions(w.Context(), account, item(1).ReferID) {
		w.must(err)
		break
	}
}

// prunesVersions sees that old versions go, and the last answer stays however old it is.
func prunesVersions(w *world) {
	w.answered(1, 1, "a")
	w.answered(1, 5, "b")
	w.answered(1, 6, "b again")
	w.answered(1, 9, "c")
	w.answered(2, 1, "a")
	prune := func(minutes int, want int64) {
		w.Helper()
		n, err := w.PruneVersions(w.Context(), sent.Add(time.Duration(minutes)*time.Minute))
		w.must(err)
		w.same("pruned", n, want)
	}
	prune(1, 0)
	prune(6, 1)
	w.same("versions", w.versions(1), []string{"5-6 b again", "9-9 c"})
	prune(100, 1)
	w.same("versions", w.versions(1), []string{"9-9 c"})
	w.same("of another", w.versions(2), []string{"1-1 a"})
	w.answered(1, 20, "d")
	w.same("versions after it", w.versions(1), []string{"9-9 c", "20-20 d"})
}

func olderAnswersAreNoNewVersion(w *world) {
	w.answered(1, 5, "a")
	w.answered(1, 4, "b")
	w.same("versions", w.versions(1), []string{"5-5 a"})
}

// Answers come back byte for byte, whatever their length and their first bytes.
// oneCallHasSeveralAnswers records answers about one referId together: they count in
// their order.
func oneCallHasSeveralAnswers(w *world) {
	w.must(w.Record(w.Context(), account, []ledger.RecordedAnswer{
		answerAbout(1, 1, "a"), answerAbout(2, 1, "x"), answerAbout(1, 2, "b"), answerAbout(1, 3, "b again"), answerAbout(2, 4, "x again"), answerAbout(1, 2, "c, late"),
	}))
	w.same("versions", w.versions(1), []string{"1-1 a", "2-3 b again"})
	w.same("versions of the other", w.versions(2), []string{"1-4 x again"})
}

func answersComeBackWhole(w *world) {
	for i, size := range []int{1, 2, 100, 2559, 2560, 100_000} {
		for j, begin := range []string{"{", "\x1f\x8b", "\x00"} {
			n, raw := 10*i+j, []byte((begin + strings.Repeat("\xff{}", size))[:size])
			w.must(w.Record(w.Context(), account, []ledger.RecordedAnswer{{ReferID: item(n).ReferID, Asked: sent, Raw: raw}}))
			for v, err := range w.AnswerVersions(w.Context(), account, item(n).ReferID) {
				w.must(err)
				if !bytes.Equal(v.Raw, raw) {
					w.Errorf("%d bytes that begin with %q came back as %d others", size, begin, len(v.Raw))
				}
			}
		}
	}
}

func sweepsGoOn(w *world) {
	begin := func(name string, oldest time.Time) time.Time {
		w.Helper()
		at, err := w.BeginSweep(w.Context(), account, name, oldest)
		w.must(err)
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
	w.must(w.EndSweep(w.Context(), account, "run 1"))
	w.must(w.EndSweep(w.Context(), account, "run 1"))
	w.must(w.EndSweep(w.Context(), "other", "run 2"))
	again, err := w.BeginSweep(w.Context(), account, "run 2", start)
	w.must(err)
	w.same("of another name", begin("run 2", start), again)
}
