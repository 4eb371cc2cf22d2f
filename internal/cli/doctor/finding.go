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

const unknownHint = "print the responses with --debug and ask the service's support; until then, " +
	"rows with unknown outcome stay unknown"

// All kinds of findings.
var (
	configFound     = &kind{"configuration", ok, "", ""}
	configNotNeeded = &kind{"configuration", ok, "", ""}
	configMissing   = &kind{"configuration", warning, "set waybill up", "waybill init"}
	configBroken    = &kind{"configuration", problem, "correct the value there", ""}
	configReadable  = &kind{"configuration", warning, "", ""}
	unknownVariable = &kind{"configuration", warning,
		"unset it, or correct its name; `waybill help environment` lists all", ""}
	valuesSet = &kind{"configuration", ok, "", ""}

	keyFound   = &kind{"api-key", ok, "", ""}
	keyMissing = &kind{"api-key", problem,
		"the key is in the portal under Settings, API & Webhooks", "waybill auth login"}
	keyUnusable = &kind{"api-key", problem, "enter the key again", "waybill auth login"}
	keyReadable = &kind{"api-key", warning, "", ""}

	urlFound   = &kind{"base-url", ok, "", ""}
	urlMissing = &kind{"base-url", problem,
		"set WAYBILL_BASE_URL, pass --base-url URL, or set waybill up", "waybill init"}
	urlUnencrypted = &kind{"base-url", warning, "use https: the API key is sent unencrypted", ""}

	proxyUsed     = &kind{"proxy", ok, "", ""}
	proxyUnusable = &kind{"proxy", problem, "write HTTPS_PROXY or HTTP_PROXY as http://HOST:PORT", ""}
	proxyFailed   = &kind{"proxy", problem,
		"correct HTTPS_PROXY or HTTP_PROXY, or name the service's host in NO_PROXY", ""}

	connected        = &kind{"connection", ok, "", ""}
	hostUnknown      = &kind{"connection", problem, "check the host in base_url, and the network's DNS", ""}
	connectionFailed = &kind{"connection", problem,
		"check base_url, the network and its firewall; HTTPS_PROXY sets a proxy", ""}
	connectionUnknown = &kind{"connection", notChecked, "", ""}

	certificateValid     = &kind{"tls", ok, "", ""}
	certificateExpiring  = &kind{"tls", warning, "inform the operator of the service: connections fail from then on", ""}
	certificateUntrusted = &kind{"tls", problem, "if the network's proxy or the service has an authority of its own, " +
		"add its certificate with --ca-file FILE or ca_file", ""}
	certificateInvalid = &kind{"tls", problem,
		"check the host in base_url and this computer's clock, or inform the operator of the service", ""}
	authoritiesUnusable = &kind{"tls", problem, "set ca_file to a PEM file with certificates", ""}

	clockRight = &kind{"clock", ok, "", ""}
	clockWrong = &kind{"clock", warning,
		"set this computer's clock: the age of signatures and the times of events depend on it", ""}
	clockUnknown = &kind{"clock", notChecked, "", ""}

	keyAccepted = &kind{"access", ok, "", ""}
	keyRefused  = &kind{"access", problem,
		"check the key in the portal under Settings, API & Webhooks, and enter it again", "waybill auth login"}
	responseUnexpected = &kind{"access", problem, "check base_url: another program may have answered", ""}
	serviceInTrouble   = &kind{"access", warning, "the service has problems; try again later", ""}
	keyNotTried        = &kind{"access", notChecked, "", ""}

	storeFound        = &kind{"store", ok, "", ""}
	storeMissing      = &kind{"store", ok, "", ""}
	storeWithoutPlace = &kind{"store", problem, "", ""}
	storeUnusable     = &kind{"store", problem, "", ""}
	storeReadOnly     = &kind{"store", warning,
		"make the file and its folder writable, or use another store with --store", ""}
	storeReadable = &kind{"store", warning, "", ""}
	storeSound    = &kind{"store", ok, "", ""}
	storeDamaged  = &kind{"store", problem, "", "waybill store check"}
	storeNotRead  = &kind{"store", notChecked, "check the whole store", "waybill store check"}
	storeSetting  = &kind{"store", warning, "", ""}
	storeNotTried = &kind{"store", notChecked, "", ""}

	spaceEnough = &kind{"disk-space", ok, "", ""}
	spaceLow    = &kind{"disk-space", warning, "free space on that disk", ""}
	spaceGone   = &kind{"disk-space", problem,
		"free space on that disk: nothing can be recorded, so nothing is sent", ""}

	schemePinned  = &kind{"webhooks", ok, "", ""}
	schemeMissing = &kind{"webhooks", warning,
		"find the scheme with received deliveries, and pin it", "waybill signature learn --pin mine"}
	webhooksUnused = &kind{"webhooks", notChecked, "to receive webhooks, see `waybill listen --help`", ""}
	verifyingOff   = &kind{"webhooks", warning, "set webhook.verify to enforce", ""}
	schemeUnusable = &kind{"webhooks", problem, "", ""}
	secretReadable = &kind{"webhooks", warning, "", ""}

	listenerAnswers   = &kind{"listener", ok, "", ""}
	listenerSilent    = &kind{"listener", problem, "stop that process and start `waybill listen` again", ""}
	listenerElsewhere = &kind{"listener", notChecked, "run this command there", ""}
	listenerNone      = &kind{"listener", notChecked, "to receive webhooks, start `waybill listen`", ""}

	targetReachable   = &kind{"target", ok, "", ""}
	targetUnreachable = &kind{"target", problem,
		"start the program that takes the deliveries; they wait until it answers", ""}
	targetUnused = &kind{"target", warning,
		"no listener sends to it now; `waybill listen --forward-to URL` continues", ""}
	targetUnencrypted = &kind{"target", warning, "use https, or a target on this computer", ""}
	targetNotTried    = &kind{"target", notChecked, "", ""}

	versionKnown = &kind{"version", ok, "", ""}

	terminalKnown = &kind{"terminal", ok, "", ""}
	terminalASCII = &kind{"terminal", warning,
		"set LC_ALL to a UTF-8 locale, such as C.UTF-8: progress and charts use ASCII until then", ""}
	terminalNone = &kind{"terminal", notChecked, "", ""}

	absenceRecognised = &kind{"absence", ok, "", ""}
	absenceUnset      = &kind{"absence", problem, "set query.absent to what says that there is no such tracking", ""}
	absenceUnproven   = &kind{"absence", problem, "probe again when a tracking has a status", ""}
	absenceUnknown    = &kind{"absence", problem, unknownHint, ""}
	numberFound       = &kind{"number", ok, "", ""}
	numberUnset       = &kind{"number", problem, "set query.tracking_number_param to what finds it", ""}
	numberUnknown     = &kind{"number", problem, unknownHint, ""}
	numberUntried     = &kind{"number", problem,
		"name a tracking that the service has: waybill doctor --probe REF; `waybill list` lists what was created", ""}
	responsesTaken    = &kind{"responses", ok, "", ""}
	responsesNotTaken = &kind{"responses", ok, "", ""}
	responsesDoubtful = &kind{"responses", warning, "rows of such batches are checked one by one", ""}
	responsesUnproven = &kind{"responses", notChecked, "", ""}
	probeFailed       = &kind{"probe", problem, "correct what the other checks show, then probe again", ""}

	settingsUnusable = &kind{"", notChecked, "correct it first, then run this command again", ""}
	timedOut         = &kind{"", notChecked, "run the command again; if it stays so, see the check with --debug", ""}
)

func found(k *kind, format string, args ...any) finding {
	message := fmt.Sprintf(format, args...)
	return finding{Check: k.check, Status: k.status, Message: message, Hint: k.hint, NextCommand: k.next, kind: k}
}

func (f finding) hinted(hint string) finding {
	f.Hint = cmp.Or(hint, f.Hint)
	return f
}
