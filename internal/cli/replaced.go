package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// replaced has commands and flags that users look for in vain, and what does their job
// here. The path before a word or flag is that of the command, or of its group.
var replaced = map[string]string{
	"compare":              "`waybill list --from FILE` lists the rows of a file with what is known of each",
	"profile":              "`waybill config profiles` lists profiles, `waybill config use NAME` chooses one",
	"runs prune":           pruneOnce,
	"events prune":         pruneOnce,
	"events list --status": "use --filter, such as --filter status=1",
	"signature sign":       "`waybill events send` signs what it sends, `waybill signature verify` checks a body and its headers",
	"list --summary":       "`waybill stats` counts, with the filters of list",
	"store erase --from":   "`waybill store erase` takes --refer-id, --tracking-number and --run",
	"wait --all":           "wait waits for all of them: leave it out",
	"--since":              "--updated takes a range of time, such as 7d or 2026-11-01..2026-11-07",
	"--stale":              "--stuck=AGE takes what has not moved for that long, --updated ..AGE what was not updated",
	"--state":              "--status takes rejected, unknown and pending too",
	"listen --ack":         "leave it out: deliveries are answered 200 once stored, and sent to the target until it takes them",
	"events --delay":       faultsThatStay,
	"events --drop":        faultsThatStay,
}

const (
	pruneOnce      = "`waybill store prune --older-than AGE` removes what is old, of runs and of deliveries"
	faultsThatStay = "--duplicate, --reorder and --corrupt-signature cause faults"
)

// replacement returns what does the job of a word or flag that cmd does not have,
// empty if replaced does not say.
func replacement(cmd *cobra.Command, word string) string {
	for ; cmd != nil; cmd = cmd.Parent() {
		path := strings.Fields(cmd.CommandPath())[1:]
		if text := replaced[strings.Join(append(path, word), " ")]; text != "" {
			return text
		}
		if !strings.HasPrefix(word, "--") {
			break
		}
	}
	return ""
}
