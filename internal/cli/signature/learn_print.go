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
		{Name: "Deliveries", Value: fmt.Sprintf("%s, different bodies: %d", command.Plural(j.Deliveries, "delivery"), j.DifferentBodies)},
		{Name: "Signed", Value: Describe(c.Scheme)},
		{Name: "Secret", Value: strings.Join(first.Secrets, ", ")},
		{Name: "Strength", Value: first.Meaning},
		{Name: "But", Value: cmp.Or(c.Obstacle, c.Stale)},
		{Name: "Open", Value: strings.Join(c.Undecided, "; ")},
	})
	if err != nil {
		return err
	}
	if err := printScheme(call, "Configuration:", c.Scheme); err != nil {
		return err
	}
	WarnUncovered(call.Session, c.Scheme)
	for _, other := range l.Candidates[1:] {
		call.IO.Detail("Also matches: %s (%s)", Describe(other.Scheme), other.Strength.String())
	}
	if len(l.Partial) > 0 {
		call.IO.Note("%d of %d deliveries match another scheme, but not %s: pass the IDs of the service's deliveries", j.Partial[0].Matched, j.Deliveries, strings.Join(j.Partial[0].Misses, ", "))
	}
	if len(l.Untried) > 0 && slices.Contains([]webhook.Strength{webhook.StrengthNothing, webhook.StrengthToken, webhook.StrengthKeyless}, c.Strength) {
		call.IO.Note("%s", l.untried())
	}
	if len(l.Candidates) > 1 {
		call.IO.Note("%s; -v shows them", command.Plural(len(l.Candidates)-1, "further scheme")+" matched, with no more proof")
	}
	printNextStep(call, l, j)
	return nil
}

// printNextStep prints what was pinned, or why nothing was.
func printNextStep(call *command.Call, l learning, j learnJSON) {
	c := l.Candidates[0]
	switch {
	case j.Pinned != nil:
		call.IO.Note("Pinned as %s in %s, with verify: observe", j.Pinned.Name, j.Pinned.File)
		if j.Rejudged != nil {
			madeUp := ""
			if n := j.Rejudged.MadeUp; n > 0 {
				madeUp = fmt.Sprintf("; %d made up, left out", n)
			}
			call.IO.Note("Stored deliveries: %d verified, %d not verified%s%s", j.Rejudged.Verified, j.Rejudged.Refused, reasons(j.Rejudged.Reasons), madeUp)
			if j.Rejudged.Verified == 0 && c.Stale != "" {
				call.IO.Note("%s: receive new deliveries, or raise timestamp.tolerance of %s if deliveries always arrive this late", c.Stale, j.Pinned.Name)
			}
		}
		if slices.ContainsFunc(l.names, func(n string) bool { return strings.HasPrefix(n, replay.RefusedPrefix) }) {
			call.IO.Note("The scheme matches refused deliveries; accept them with `waybill events readmit`")
		}
		call.IO.Hint("restart `waybill listen`; enforce the scheme with `waybill signature promote` when deliveries have verified for a while")
	case c.Obstacle != "":
		call.IO.Hint("fix that first; with these settings nothing would verify")
	case c.Stale != "":
		call.IO.Hint("receive new deliveries, then re-run the same command; these deliveries would not verify")
	case l.Bodies < webhook.MinLearnBodies:
		call.IO.Note("This is a candidate: %d deliveries with different bodies are needed to pin it", webhook.MinLearnBodies)
	default:
		words := append([]string{"signature", "learn"}, call.Cmd.Flags().Args()...)
		call.IO.Hint("pin it with `" + call.CommandLineWith([]string{"from", "last", "public-url", "accept-weak", "secret-from"}, words...) + " --pin NAME`")
	}
}

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

// Describe shows in a line what is signed, and where the signature is.
func Describe(s webhook.Scheme) string {
	if s.Kind == webhook.KindToken {
		return "the secret in clear at " + s.Signature.From
	}
	what := strings.ToUpper(s.Algorithm)
	if s.Kind == webhook.KindHMAC {
		what = "HMAC-" + what
	}
	return fmt.Sprintf("%s of %s, in %s at %s", what, s.Signed, s.Signature.Encoding, s.Signature.From)
}
