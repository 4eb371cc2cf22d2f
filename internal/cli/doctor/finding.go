// Package doctor has the command that diagnoses problems: it checks everything waybill
// depends on, and probes the service's undocumented behaviour.
package doctor

import (
	"cmp"
	"fmt"

	"github.com/waybill-cli/waybill/internal/term"
)

type status string

const (
	ok         status = "ok"
	warning    status = "warning"
	problem    status = "problem"
	notChecked status = "not_checked"
)

type finding struct {
	Check       string `json:"check"`
	Status      status `json:"status"`
	Message     string `json:"message"`
	Hint        string `json:"hint"`        // what to do about it; empty if there is nothing to do
	NextCommand string `json:"nextCommand"` // the command to run; empty for none

	kind *kind
}

func (f finding) words() string {
	if f.Status == notChecked {
		return "not checked"
	}
	return string(f.Status)
}

func (f finding) style() term.Style {
	return map[status]term.Style{ok: term.Good, warning: term.Caution, problem: term.Bad, notChecked: term.Faint}[f.Status]
}

// kind is what findings of one kind share. They may replace its hint, and the check of settingsUnusable and timedOut.
type kind struct {
	check  string
	status status
	hint   string
	next   string // command, without the settings of this command line
}

func newKind(check string, status status, hint, next string) *kind {
	return &kind{check, status, hint, next}
}

const unknownHint = "print the responses with --debug and ask the service's support; until then, " +
	"rows with unknown outcome stay unknown"

// All kinds of findings.
var (
	configFound     = newKind("configuration", ok, "", "")
	configNotNeeded = newKind("configuration", ok, "", "")
	configMissing   = newKind("configuration", warning, "set waybill up", "waybill init")
	configBroken    = newKind("configuration", problem, "correct the value there", "")
	configReadable  = newKind("configuration", warning, "", "")
	unknownVariable = newKind("configuration", warning,
		"unset it, or correct its name; `waybill help environment` lists all", "")
	valuesSet = newKind("configuration", ok, "", "")

	keyFound   = newKind("api-key", ok, "", "")
	keyMissing = newKind("api-key", problem,
		"the key is in the portal under Settings, API & Webhooks", "waybill auth login")
	keyUnusable = newKind("api-key", problem, "enter the key again", "waybill auth login")
	keyReadable = newKind("api-key", warning, "", "")

	urlFound   = newKind("base-url", ok, "", "")
	urlMissing = newKind("base-url", problem,
		"set WAYBILL_BASE_URL, pass --base-url URL, or set waybill up", "waybill init")
	urlUnencrypted = newKind("base-url", warning, "use https: the API key is sent unencrypted", "")

	proxyUsed     = newKind("proxy", ok, "", "")
	proxyUnusable = newKind("proxy", problem, "write HTTPS_PROXY or HTTP_PROXY as http://HOST:PORT", "")
	proxyFailed   = newKind("proxy", problem,
		"correct HTTPS_PROXY or HTTP_PROXY, or name the service's host in NO_PROXY", "")

	connected        = newKind("connection", ok, "", "")
	hostUnknown      = newKind("connection", problem, "check the host in base_url, and the network's DNS", "")
	connectionFailed = newKind("connection", problem,
		"check base_url, the network and its firewall; HTTPS_PROXY sets a proxy", "")
	connectionUnknown = newKind("connection", notChecked, "", "")

	certificateValid     = newKind("tls", ok, "", "")
	certificateExpiring  = newKind("tls", warning, "inform the operator of the service: connections fail from then on", "")
	certificateUntrusted = newKind("tls", problem, "if the network's proxy or the service has an authority of its own, "+
		"add its certificate with --ca-file FILE or ca_file", "")
	certificateInvalid = newKind("tls", problem,
		"check the host in base_url and this computer's clock, or inform the operator of the service", "")
	authoritiesUnusable = newKind("tls", problem, "set ca_file to a PEM file with certificates", "")

	clockRight = newKind("clock", ok, "", "")
	clockWrong = newKind("clock", warning,
		"set this computer's clock: the age of signatures and the times of events depend on it", "")
	clockUnknown = newKind("clock", notChecked, "", "")

	keyAccepted = newKind("access", ok, "", "")
	keyRefused  = newKind("access", problem,
		"check the key in the portal under Settings, API & Webhooks, and enter it again", "waybill auth login")
	responseUnexpected = newKind("access", problem, "check base_url: another program may have answered", "")
	serviceInTrouble   = newKind("access", warning, "the service has problems; try again later", "")
	keyNotTried        = newKind("access", notChecked, "", "")

	storeFound        = newKind("store", ok, "", "")
	storeMissing      = newKind("store", ok, "", "")
	storeWithoutPlace = newKind("store", problem, "", "")
	storeUnusable     = newKind("store", problem, "", "")
	storeReadOnly     = newKind("store", warning,
		"make the file and its folder writable, or use another store with --store", "")
	storeReadable = newKind("store", warning, "", "")
	storeSound    = newKind("store", ok, "", "")
	storeDamaged  = newKind("store", problem, "", "waybill store check")
	storeNotRead  = newKind("store", notChecked, "check the whole store", "waybill store check")
	storeSetting  = newKind("store", warning, "", "")
	storeNotTried = newKind("store", notChecked, "", "")

	spaceEnough = newKind("disk-space", ok, "", "")
	spaceLow    = newKind("disk-space", warning, "free space on that disk", "")
	spaceGone   = newKind("disk-space", problem,
		"free space on that disk: nothing can be recorded, so nothing is sent", "")

	schemePinned  = newKind("webhooks", ok, "", "")
	schemeMissing = newKind("webhooks", warning,
		"find the scheme with received deliveries, and pin it", "waybill signature learn --pin mine")
	webhooksUnused = newKind("webhooks", notChecked, "to receive webhooks, see `waybill listen --help`", "")
	verifyingOff   = newKind("webhooks", warning, "set webhook.verify to enforce", "")
	schemeUnusable = newKind("webhooks", problem, "", "")
	secretReadable = newKind("webhooks", warning, "", "")

	listenerAnswers   = newKind("listener", ok, "", "")
	listenerSilent    = newKind("listener", problem, "stop that process and start `waybill listen` again", "")
	listenerElsewhere = newKind("listener", notChecked, "run this command there", "")
	listenerNone      = newKind("listener", notChecked, "to receive webhooks, start `waybill listen`", "")

	targetReachable   = newKind("target", ok, "", "")
	targetUnreachable = newKind("target", problem,
		"start the program that takes the deliveries; they wait until it answers", "")
	targetUnused = newKind("target", warning,
		"no listener sends to it now; `waybill listen --forward-to URL` continues", "")
	targetUnencrypted = newKind("target", warning, "use https, or a target on this computer", "")
	targetNotTried    = newKind("target", notChecked, "", "")

	versionKnown = newKind("version", ok, "", "")

	terminalKnown = newKind("terminal", ok, "", "")
	terminalASCII = newKind("terminal", warning,
		"set LC_ALL to a UTF-8 locale, such as C.UTF-8: progress and charts use ASCII until then", "")
	terminalNone = newKind("terminal", notChecked, "", "")

	absenceRecognised = newKind("absence", ok, "", "")
	absenceUnset      = newKind("absence", problem, "set query.absent to what says that there is no such tracking", "")
	absenceUnproven   = newKind("absence", problem, "probe again when a tracking has a status", "")
	absenceUnknown    = newKind("absence", problem, unknownHint, "")
	numberFound       = newKind("number", ok, "", "")
	numberUnset       = newKind("number", problem, "set query.tracking_number_param to what finds it", "")
	numberUnknown     = newKind("number", problem, unknownHint, "")
	numberUntried     = newKind("number", problem,
		"name a tracking that the service has: waybill doctor --probe REF; `waybill list` lists what was created", "")
	responsesTaken    = newKind("responses", ok, "", "")
	responsesNotTaken = newKind("responses", ok, "", "")
	responsesDoubtful = newKind("responses", warning, "rows of such batches are checked one by one", "")
	responsesUnproven = newKind("responses", notChecked, "", "")
	probeFailed       = newKind("probe", problem, "correct what the other checks show, then probe again", "")

	settingsUnusable = newKind("", notChecked, "correct it first, then run this command again", "")
	timedOut         = newKind("", notChecked, "run the command again; if it stays so, see the check with --debug", "")
)

func found(k *kind, format string, args ...any) finding {
	message := fmt.Sprintf(format, args...)
	return finding{Check: k.check, Status: k.status, Message: message, Hint: k.hint, NextCommand: k.next, kind: k}
}

func (f finding) hinted(hint string) finding {
	f.Hint = cmp.Or(hint, f.Hint)
	return f
}
