package signature

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func printResult(call *command.Call, l learning, j learnJSON) error {
	if call.Out.Machine() {
		return call.Out.Object(j)
	}
	if len(l.Candidates) == 0 {
		return nil
	}
	c, first := l.Candidates[0], j.Candidates[0]
	err := call.Out.Fields([]render.Field{
		{Name: "Learnt from", Value: fmt.Sprintf("%s, %d different bodies", command.Plural(j.Deliveries, "delivery"), j.DifferentBodies)},
		{Name: "Signed", Value: described(c.Scheme)},
		{Name: "Secret", Value: strings.Join(first.Secrets, ", ")},
		{Name: "Strength", Value: first.Meaning},
		{Name: "But", Value: cmp.Or(c.Obstacle, c.Stale)},
		{Name: "Open", Value: strings.Join(c.Undecided, "; ")},
	})
	if err != nil {
		return err
	}
	if err := printScheme(call, "As it is configured:", c.Scheme); err != nil {
		return err
	}
	WarnUncovered(call.Session, c.Scheme)
	for _, other := range l.Candidates[1:] {
		call.IO.Detail("it matches as well: %s (%s)", described(other.Scheme), other.Strength.String())
	}
	if len(l.Partial) > 0 {
		call.IO.Note("%d of %d deliveries match another scheme, but not %s: name those that are the service's", j.Partial[0].Matched, j.Deliveries, strings.Join(j.Partial[0].Misses, ", "))
	}
	if len(l.Untried) > 0 && slices.Contains([]webhook.Strength{webhook.StrengthNothing, webhook.StrengthToken, webhook.StrengthKeyless}, c.Strength) {
		call.IO.Note("%s", l.untried())
	}
	if len(l.Candidates) > 1 {
		call.IO.Note("%s; -v shows them", command.Plural(len(l.Candidates)-1, "further scheme")+" matched, which prove no more")
	}
	printNextStep(call, l, j)
	return nil
}

// printNextStep prints what was pinned, or why nothing was.
func printNextStep(call *command.Call, l learning, j learnJSON) {
	c := l.Candidates[0]
	switch {
	case j.Pinned != nil:
		call.IO.Note("pinned as %s in %s, observing", j.Pinned.Name, j.Pinned.File)
		if j.Rejudged != nil {
			call.IO.Note("stored deliveries verified again: %d verified, %d not%s", j.Rejudged.Verified, j.Rejudged.Refused, reasons(j.Rejudged.Reasons))
			if j.Rejudged.Verified == 0 && c.Stale != "" {
				call.IO.Note("%s: receive new deliveries, or raise timestamp.tolerance of %s if they always arrive so late", c.Stale, j.Pinned.Name)
			}
		}
		if slices.ContainsFunc(l.names, func(n string) bool { return strings.HasPrefix(n, replay.RefusedPrefix) }) {
			call.IO.Note("it was learnt from refused deliveries: `waybill events readmit` takes them in now")
		}
		call.IO.Hint("restart `waybill listen`; when deliveries have verified for a while: waybill signature promote")
	case c.Obstacle != "":
		call.IO.Hint("fix that first: as things are it would verify nothing")
	case c.Stale != "":
		call.IO.Hint("receive new deliveries and repeat: as things are it would verify none of these")
	case l.Bodies < webhook.MinLearnBodies:
		call.IO.Note("a candidate only: %d deliveries with different bodies are needed to pin it", webhook.MinLearnBodies)
	default:
		words := append([]string{"signature", "learn"}, call.Cmd.Flags().Args()...)
		call.IO.Hint("pin it with `" + call.CommandLineWith([]string{"from", "last", "public-url", "accept-weak", "secret-from"}, words...) + " --pin NAME`")
	}
}

// reasons lists reasons with their counts, in parentheses.
func reasons(all map[webhook.Reason]int) string {
	if len(all) == 0 {
		return ""
	}
	var words []string
	for _, why := range slices.Sorted(maps.Keys(all)) {
		words = append(words, fmt.Sprintf("%s: %d", why, all[why]))
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// described shows in a line what is signed, and where the signature is.
func described(s webhook.Scheme) string {
	if s.Kind == webhook.KindToken {
		return "the secret in clear at " + s.Signature.From
	}
	what := strings.ToUpper(s.Algorithm)
	if s.Kind == webhook.KindHMAC {
		what = "HMAC-" + what
	}
	return fmt.Sprintf("%s of %s, in %s at %s", what, s.Signed, s.Signature.Encoding, s.Signature.From)
}
