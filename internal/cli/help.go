package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

// topic is a page of help that belongs to no command.
type topic struct {
	name, short string
	text        func(width int) string // of the terminal, 0 for none
}

func topics() []topic {
	return []topic{
		{"environment", "Environment variables and configuration files", func(int) string { return environmentPage() }},
		{"exit-codes", "Exit codes of waybill", func(int) string { return exitCodesPage() }},
		{"flags", "Flags that every command takes", flagsPage},
		{"input", "Files that create and other commands read", func(int) string { return inputPage }},
		{"output", "Formats and columns of results", func(int) string { return outputPage }},
		{"rows", "States of rows: accepted, rejected, unknown", func(int) string { return rowsPage }},
	}
}

// newHelp is the help command: of a command, or of a topic.
func newHelp(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help about a command or a topic",
		Long:  "Topics: " + topicNames() + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Started = true
			if len(args) == 1 {
				for _, t := range topics() {
					if t.name == args[0] {
						width := f.App.IO.Out.Width()
						_, err := f.App.IO.Out.Write([]byte(wrapText(t.text(width), width)))
						return err
					}
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 || found == nil {
				return command.Usagef(helpHint(cmd.Root(), args), "no help for %s", command.Quoted(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			parent, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range parent.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			if len(args) > 0 {
				return names, cobra.ShellCompDirectiveNoFileComp
			}
			for _, t := range topics() {
				names = append(names, t.name+"\t"+t.short)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	return cmd
}

// helpHint suggests what a word that has no help was meant to be.
func helpHint(root *cobra.Command, args []string) string {
	known := strings.Split(topicNames(), ", ")
	for _, c := range root.Commands() {
		known = append(known, c.Name())
	}
	if near := config.Nearest(args[0], known); near != "" && len(args) == 1 {
		return "did you mean `waybill help " + near + "`?"
	}
	return "commands: `waybill --help`; topics: " + topicNames()
}

func topicNames() string {
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

// flagsPage lists the flags that every command has.
func flagsPage(width int) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.GlobalFlags(flags)
	p := page{width: width}
	p.WriteString("Every command takes these flags. Most are settings too: an environment variable\nor a line in a configuration file sets them for good. See \"waybill help\nenvironment\".\n")
	p.flags("", flags)
	return p.String()
}

func exitCodesPage() string {
	var b strings.Builder
	b.WriteString("Exit statuses. The word is `code` of an error in JSON.\n\n")
	for _, row := range command.Codes() {
		fmt.Fprintf(&b, "  %3d  %-12s %s\n", row.Code, row.Word, row.Meaning)
	}
	b.WriteString("\nWhere several apply, the first of these is used:\n  ")
	for i, c := range command.Precedence() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, int(c))
	}
	b.WriteString("\n")
	return b.String()
}

func environmentPage() string {
	var b strings.Builder
	b.WriteString(`Every setting has one name in three spellings: a flag, an environment variable
and a key of the configuration files. A flag wins over the environment, that
over .waybill.yaml of the current folder, that over your own file ("waybill
config path"), that over the default. "waybill config list --origin" shows
what is in force. Secrets have no flag.

Your own file, files with secrets and the store are refused when another user
(other than root) owns them or everybody may write them; the first two also when
a group may, or when others may write in their folder. A store that a group may
write is used, and so is one of another user that you can only read; a note says
so. Your own file and the store are not reached by
a symbolic link that another user put where others may write.

`)
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "  %s\n", s.Env)
		line := s.Help
		if s.Default != "" {
			line += " (default " + s.Default + ")"
		}
		fmt.Fprintf(&b, "      %s\n      key %s", line, s.Key)
		if s.Flag != "" {
			fmt.Fprintf(&b, ", flag --%s", s.Flag)
		}
		if !s.Project {
			b.WriteString(", not in .waybill.yaml")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nOther variables:\n\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, "  %s\n      %s\n", v.Name, v.Help)
	}
	return b.String()
}

const inputPage = `create reads CSV, TSV, JSON (an array, or an object with "data") and JSONL, from
files or, for -, from standard input. What a file is, is seen from its content.
Standard input and FIFOs are copied first, up to --max-input and nine tenths of
the free space of the temporary folder; the copy has no name and is gone when
the command ends. Devices are refused.

Columns: referId and rawTrackingNumber are needed, carrierCode is optional. Common
names are understood too (Order ID, Order Number, Tracking No., AWB, ...); for
others name the column: --map referId="Order No". JSON items have the members
referId, rawTrackingNumber and metadata.carrierCode, and no others.

Carriers: only a column named carrierCode (or mapped to it) and the JSON member
metadata.carrierCode are sent as written. There, a value that is plainly a name
(capital letters or spaces: UPS, DHL Express, Other) is an error, and the error
prints the --carrier-map to type. Names in other columns (Carrier, courier, ...)
are left out. Both are sent if you say which code they stand for: --carrier-map
'DHL Express=dhl', or carriers: in the configuration; no code leaves the carrier
to the service. --accept-odd-values sends a name in carrierCode as it is.

CSV may be separated by comma, semicolon, tab or |, have a byte order mark, be
UTF-16, hold quoted line breaks and cells such as ="00123". Other encodings need
--encoding, such as windows-1252; one that the file contradicts (valid UTF-8, the
byte order mark of another) is an error. Excel workbooks: save as "CSV UTF-8" first.

Rows: every row is judged before anything is sent. Bad ones are shown with file,
line and column, and nothing is sent; --rejects FILE writes them to a file that
can be fixed and read again, --skip-invalid sends the others. A file that changes
while it is read is refused, and nothing is sent. White space around values is cut. Every row of a table has as many cells as its header: one more or
less may have moved a number. Empty cells at the end of every row alike are
passed over.

Values that a spreadsheet damaged (1.23E+15, 12345678901234.0, 1,234,567, Mar-24,
'0012, #N/A, ########, digits turned into zeros) and values that stand for none
(N/A, NULL, TBD, pending, ?, a line of totals) are errors in tracking numbers, as
are identifiers of more than 255 characters. Export again with the column
formatted as text. In referId, where nearly any name may be right, what no order
is called is an error (1.23E+15, #N/A, ########, NULL, N/A, ?) and the rest a note.
--accept-odd-values sends them all as they are.

The same pair of referId and number is created once, however often it stands in
the input and however often the command is run. One referId may have several
numbers: an order in several parcels.

REFs: where a command takes REFs from a file, a column or field with a referId or
a number is enough, and others are passed over: what create reads, and what list,
show and "runs rows" write, can be read. A file of one column without a known name
is a list of REFs, one a line (--format list says so of any file); a JSON array may
hold REFs as strings. Repeats count once. Any bad row is an error, and nothing is
asked.
`

const rowsPage = `Every row of an input is in one of these states, on disk before and after its
request: pending, sending, accepted, rejected, unknown. After any interruption
run the same command again, or "waybill runs resume ID" if the input was
standard input. Several waybills on one store share the work; each row goes out
once.

Accepted: the service's whole answer is on disk and has no sign of an error, or
the service showed the row when it was asked for. Should the service not have
such a row after all, "waybill runs retry 3 --absent" asks for those of a run:
what is not found is unknown from then on.

Rejected: the service refused it. A batch refused because of some rows is sent
again in halves until these stand alone; beyond --max-rejects of them the run
stops. They are not sent again by themselves. Fix them:
  waybill runs rows 3 --state rejected -o csv --out bad.csv
  waybill create bad.csv
or send them as they are: "waybill runs retry 3", "create --retry-rejected".

Superseded: a rejected row is done with when a later input brought in another
number of its referId and that was accepted. Another parcel in the same input does
not count. Dismissed: "waybill runs dismiss 3" settles the other rejected rows of
a run, with --row REF those of one order or number. Both kinds stay in the state
rejected, with their reason, and are counted apart: they are in no exit status, and
only "waybill runs retry 3 --row REF" sends one again.

That a service stored nothing of a batch that it refused because of rows (400,
422; 409), or answered with a request for a pause (429), is an assumption. The
first time that an account meets such an answer, the service is asked for up to
three rows of the batch before any is sent again. If it has one, rows of such
batches are unknown from then on. "waybill probe" shows what was found.

Unknown: the request left, and no answer came that can be believed. --unknown
says what is done about such rows:
  reconcile  asks the service. A row that it shows is accepted. A row is sent
             again only if the service says that it does not have it, says so
             once more after --settle (the first request may take effect late),
             and finds every accepted row that it is asked for before and after
             (up to three), in the same way. All others stay unknown, with the
             reason ("waybill runs rows 3").
  resend-one likewise. Where no row of the account was ever accepted, so that
             nothing can be proven, it sends one of them again alone and asks
             for it; once found, it is the accepted row that the others need.
             This one row may be created twice.
  resend     sends them again without asking. This may create them twice.
  keep       leaves them as they are.

A new store: before the first row of an account goes out from a store that never
sent one of it, the service is asked for that row. If it is there, another store
has sent it: nothing is sent, and the rows stay pending until --check-first (of
create or runs resume), which asks for every one. --canary=false changes nothing
about that. An answer that proves nothing stops nothing (-v says so).

First contact: before the first run of an account with more than one batch, one
row is sent alone and asked for; the rest goes when the service shows it.
--canary=false goes without.

--check-first is for a lost store or another machine: rows that this store does
not know, and in a store that never sent any all pending ones, are asked for
before they are sent. One that the service has is
accepted without being sent; one that it proves not to have is sent; others
stay unknown.
`

const outputPage = `Standard output has the result and nothing else; progress, notes, warnings and
errors go to standard error.

  -o table   aligned columns on a terminal, tab-separated values otherwise
  -o json    one object for one result, an array for lists
  -o jsonl   one object a line
  -o csv     for spreadsheets: identifiers that they would change are ="00123",
             other cells that they would run begin with '; not so with --csv-raw
  --excel    CSV that Excel opens by double click: a byte order mark, CRLF, the
             separator of your locale (--excel=semicolon or --excel=comma sets
             it), local times without an offset
  --columns NAMES
             only these columns of a table or of CSV, in this order; on a narrow
             terminal the others leave out what matters least
  --jq EXPR  a jq filter over the JSON
  --out FILE the result into a file, whole or not at all

With json and jsonl every line on standard error is a JSON object with a type:
note, warning, error, and with -v progress. The error comes last and has code (a
word of "waybill help exit-codes"), message, hint, nextCommand, and where there
are any httpStatus, retryAfterSeconds and errors [{file, line, column, value,
message, hint}]. Fields are only ever added. Our times are RFC 3339 in UTC; the
service's are as it sent them. What the service sent and waybill does not know
stands in "raw", untouched.

Without a terminal there is no colour, no spinner, no prompt. NO_COLOR,
CLICOLOR_FORCE, TERM=dumb and --color are honoured. Characters that could steer a
terminal are shown as escapes such as \u{1b}.
`
