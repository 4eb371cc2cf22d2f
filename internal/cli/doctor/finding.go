// Package doctor has the command that finds out why waybill does not work: it checks
// what waybill depends on, and probes how the service behaves.
package doctor

import (
	"fmt"

	"github.com/waybill-cli/waybill/internal/term"
)

// status is what a check found.
type status string

const (
	ok         status = "ok"
	warning    status = "warning"
	problem    status = "problem"
	notChecked status = "not_checked"
)

// finding is one line of the result.
type finding struct {
	Check       string `json:"check"`
	Status      status `json:"status"`
	Message     string `json:"message"`
	Hint        string `json:"hint"`        // what to do about it; empty if there is nothing to do
	NextCommand string `json:"nextCommand"` // the command to run; empty for none

	kind kind
}

// words returns the status for people.
func (f finding) words() string {
	if f.Status == notChecked {
		return "not checked"
	}
	return string(f.Status)
}

func (f finding) style() term.Style {
	return map[status]term.Style{ok: term.Good, warning: term.Caution, problem: term.Bad, notChecked: term.Faint}[f.Status]
}

// kind is one of the things that doctor can find.
type kind int

const (
	configFound kind = iota
	configNotNeeded
	configMissing
	configBroken
	configReadable
	unknownVariable
	valuesSet
	keyFound
	keyMissing
	keyUnusable
	keyReadable
	urlFound
	urlMissing
	urlUnencrypted
	proxyUsed
	proxyUnusable
	proxyFailed
	connected
	hostUnknown
	connectionFailed
	connectionUnknown
	certificateValid
	certificateExpiring
	certificateUntrusted
	certificateInvalid
	authoritiesUnusable
	clockRight
	clockWrong
	clockUnknown
	keyAccepted
	keyRefused
	responseUnexpected
	serviceInTrouble
	keyNotTried
	storeFound
	storeMissing
	storeWithoutPlace
	storeUnusable
	storeReadOnly
	storeReadable
	storeSound
	storeDamaged
	storeNotRead
	storeSetting
	storeNotTried
	spaceEnough
	spaceLow
	spaceGone
	schemePinned
	schemeMissing
	webhooksUnused
	verifyingOff
	schemeUnusable
	secretReadable
	listenerAnswers
	listenerSilent
	listenerElsewhere
	listenerNone
	targetReachable
	targetUnreachable
	targetUnused
	targetUnencrypted
	targetNotTried
	versionKnown
	terminalKnown
	terminalASCII
	terminalNone
	absenceRecognised
	absenceUnset
	absenceUnproven
	absenceUnknown
	numberFound
	numberUnset
	numberUnknown
	numberUntried
	batchNotStored
	batchStored
	batchUnchecked
	probeFailed
	settingsUnusable
	timedOut

	kinds int = iota
)

// kindInfo is what all findings of a kind share. Its hint may be replaced by a nearer
// one, and so may the check of
// settingsUnusable and timedOut.
type kindInfo struct {
	check  string
	status status
	hint   string
	next   string // command, without the settings of this one
}

// unknownHint is of answers that a probe does not understand.
const unknownHint = "print the responses with --debug and ask the service's support; until then, rows with unknown outcome stay unknown"

// info is the table of what doctor can find.
var info = map[kind]kindInfo{
	configFound:     {"configuration", ok, "", ""},
	configNotNeeded: {"configuration", ok, "", ""},
	configMissing:   {"configuration", warning, "set waybill up", "waybill init"},
	configBroken:    {"configuration", problem, "correct the value there", ""},
	configReadable:  {"configuration", warning, "", ""},
	unknownVariable: {"configuration", warning, "unset it, or correct its name; `waybill help environment` lists all", ""},
	valuesSet:       {"configuration", ok, "", ""},

	keyFound:    {"api-key", ok, "", ""},
	keyMissing:  {"api-key", problem, "the key is in the portal under Settings, API & Webhooks", "waybill auth login"},
	keyUnusable: {"api-key", problem, "enter the key again", "waybill auth login"},
	keyReadable: {"api-key", warning, "", ""},

	urlFound:       {"base-url", ok, "", ""},
	urlMissing:     {"base-url", problem, "set WAYBILL_BASE_URL, pass --base-url URL, or set waybill up", "waybill init"},
	urlUnencrypted: {"base-url", warning, "use https: the API key is sent unencrypted", ""},

	proxyUsed:     {"proxy", ok, "", ""},
	proxyUnusable: {"proxy", problem, "write HTTPS_PROXY or HTTP_PROXY as http://HOST:PORT", ""},
	proxyFailed:   {"proxy", problem, "correct HTTPS_PROXY or HTTP_PROXY, or name the service's host in NO_PROXY", ""},

	connected:         {"connection", ok, "", ""},
	hostUnknown:       {"connection", problem, "check the host in base_url, and the network's DNS", ""},
	connectionFailed:  {"connection", problem, "check base_url, the network and its firewall; HTTPS_PROXY sets a proxy", ""},
	connectionUnknown: {"connection", notChecked, "", ""},

	certificateValid:     {"tls", ok, "", ""},
	certificateExpiring:  {"tls", warning, "inform the operator of the service: connections fail from then on", ""},
	certificateUntrusted: {"tls", problem, "if the network's proxy or the service has an authority of its own, add its certificate with --ca-file FILE or ca_file", ""},
	certificateInvalid:   {"tls", problem, "check the host in base_url and this computer's clock, or inform the operator of the service", ""},
	authoritiesUnusable:  {"tls", problem, "set ca_file to a PEM file with certificates", ""},

	clockRight:   {"clock", ok, "", ""},
	clockWrong:   {"clock", warning, "set this computer's clock: the age of signatures and the times of events depend on it", ""},
	clockUnknown: {"clock", notChecked, "", ""},

	keyAccepted:        {"access", ok, "", ""},
	keyRefused:         {"access", problem, "check the key in the portal under Settings, API & Webhooks, and enter it again", "waybill auth login"},
	responseUnexpected: {"access", problem, "check base_url: another program may have answered", ""},
	serviceInTrouble:   {"access", warning, "the service has problems; try again later", ""},
	keyNotTried:        {"access", notChecked, "", ""},

	storeFound:        {"store", ok, "", ""},
	storeMissing:      {"store", ok, "", ""},
	storeWithoutPlace: {"store", problem, "", ""},
	storeUnusable:     {"store", problem, "", ""},
	storeReadOnly:     {"store", warning, "make the file and its folder writable, or use another store with --store", ""},
	storeReadable:     {"store", warning, "", ""},
	storeSound:        {"store", ok, "", ""},
	storeDamaged:      {"store", problem, "", "waybill store check"},
	storeNotRead:      {"store", notChecked, "check the whole store", "waybill store check"},
	storeSetting:      {"store", warning, "", ""},
	storeNotTried:     {"store", notChecked, "", ""},

	spaceEnough: {"disk-space", ok, "", ""},
	spaceLow:    {"disk-space", warning, "free space on that disk", ""},
	spaceGone:   {"disk-space", problem, "free space on that disk: nothing can be recorded, so nothing is sent", ""},

	schemePinned:   {"webhooks", ok, "", ""},
	schemeMissing:  {"webhooks", warning, "find the scheme with received deliveries, and pin it", "waybill signature learn --pin mine"},
	webhooksUnused: {"webhooks", notChecked, "to receive webhooks, see `waybill listen --help`", ""},
	verifyingOff:   {"webhooks", warning, "set webhook.verify to enforce", ""},
	schemeUnusable: {"webhooks", problem, "", ""},
	secretReadable: {"webhooks", warning, "", ""},

	listenerAnswers:   {"listener", ok, "", ""},
	listenerSilent:    {"listener", problem, "stop that process and start `waybill listen` again", ""},
	listenerElsewhere: {"listener", notChecked, "run this command there", ""},
	listenerNone:      {"listener", notChecked, "to receive webhooks, start `waybill listen`", ""},

	targetReachable:   {"target", ok, "", ""},
	targetUnreachable: {"target", problem, "start the program that takes the deliveries; they wait until it answers", ""},
	targetUnused:      {"target", warning, "no listener sends to it now; `waybill listen --forward-to URL` continues", ""},
	targetUnencrypted: {"target", warning, "use https, or a target on this computer", ""},
	targetNotTried:    {"target", notChecked, "", ""},

	versionKnown: {"version", ok, "", ""},

	terminalKnown: {"terminal", ok, "", ""},
	terminalASCII: {"terminal", warning, "set LC_ALL to a UTF-8 locale, such as C.UTF-8: progress and charts use ASCII until then", ""},
	terminalNone:  {"terminal", notChecked, "", ""},

	absenceRecognised: {"absence", ok, "", ""},
	absenceUnset:      {"absence", problem, "set query.absent to what says that there is no such tracking", ""},
	absenceUnproven:   {"absence", problem, "probe again when a tracking has a status", ""},
	absenceUnknown:    {"absence", problem, unknownHint, ""},
	numberFound:       {"number", ok, "", ""},
	numberUnset:       {"number", problem, "set query.tracking_number_param to what finds it", ""},
	numberUnknown:     {"number", problem, unknownHint, ""},
	numberUntried:     {"number", problem, "name a tracking that the service has: waybill doctor --probe REF; `waybill list` lists what was created", ""},
	batchNotStored:    {"batches", ok, "", ""},
	batchStored:       {"batches", warning, "rows of such batches are checked one by one", ""},
	batchUnchecked:    {"batches", notChecked, "", ""},
	probeFailed:       {"probe", problem, "correct what the other checks show, then probe again", ""},

	settingsUnusable: {"", notChecked, "correct it first, then run this command again", ""},
	timedOut:         {"", notChecked, "run the command again; if it stays so, see the check with --debug", ""},
}

// found makes a finding of a kind.
func found(k kind, format string, args ...any) finding {
	i := info[k]
	return finding{Check: i.check, Status: i.status, Message: fmt.Sprintf(format, args...), Hint: i.hint, NextCommand: i.next, kind: k}
}

// hinted returns the finding with a nearer hint, if there is one.
func (f finding) hinted(hint string) finding {
	if hint != "" {
		f.Hint = hint
	}
	return f
}
