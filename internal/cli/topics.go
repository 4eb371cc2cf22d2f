package cli

// Texts of help topics. Headings are in capitals.

const environmentText = `Each setting has a flag, an environment variable and a key in the configuration
files. The first of these that sets it wins:

  1. the flag
  2. the environment variable
  3. .waybill.yaml in the current folder, for settings that a project may set
  4. your configuration file; "waybill config path" shows where it is
  5. the default

"waybill config list --origin" shows each value and where it comes from. Secrets
have no flag.

PROFILES

Your configuration file may hold several sets of settings: "profiles: {test:
{base_url: https://...}}". --profile test, WAYBILL_PROFILE=test or "profile:
test" selects one. Its keys override those at the top of the file. "waybill
config profiles" shows them, "waybill config use test" writes the choice into the
file. The settings at the top are the profile default.

THE API KEY

"waybill init" and "waybill auth login" store it in your configuration file, mode
0600, or with --keyring in the keyring of your system: the file then has its name
there, api_key_keyring. Of api_key, api_key_file and api_key_keyring a profile may
set one. A keyring that does not answer within 30 seconds is an error.

PERMISSIONS

waybill refuses your configuration file, files with secrets and the store if
another user (except root) owns them or everybody may write them. It also refuses
your configuration file and files with secrets if a group may write them, or if
others may write in their folder. It uses a store that a group may write, and
reads one of another user, and prints a note. It follows no symbolic link to your
configuration file or to the store that another user put where others may write.

SETTINGS

`

const inputPage = `create, check, list, show and wait --from read XLSX, CSV, TSV, JSON and
JSONL files. The name - is standard input.

FORMATS

The content of a file decides its format; --format sets it. CSV may be separated
by comma, semicolon, tab or |. Byte order marks, UTF-16, quoted line breaks and
cells such as ="00123" are understood. Other encodings need --encoding, such as
windows-1252. An encoding that the file contradicts (valid UTF-8, or the byte
order mark of another encoding) is an error.

JSON is an array of items, or an object with the array in "data". JSONL has one
item per line. Items have the members referId, rawTrackingNumber and
metadata.carrierCode, and no others.

WORKBOOKS

Of an XLSX workbook, the sheet is read that has the columns. If several have them,
--sheet NAME or --sheet N chooses one. The header may be below a title, and its
cells may be merged. Problems are shown with the cell, such as Orders!B17. Hidden
rows and columns are read as well, with a warning.

Formulas have the values that were saved with them. Identifiers should be text: a
number has lost zeros at its beginning, unless its format (00000) shows them. It is
an error if an identifier is a number of more than 15 digits, shown as 1.23E+11 or
1,234, or a date.

A workbook with a password, and the formats .xls, .xlsb and .ods, are not read: save
them as XLSX without a password.

Standard input and FIFOs are copied to a temporary file first: at most 4 GiB,
and nine tenths of the free space there. The file has no name and is gone when
the command ends. Devices are refused.

COLUMNS

referId and rawTrackingNumber are required, carrierCode is optional. Common names
such as Order ID, Tracking No. and AWB are recognized, in English, German, French,
Spanish, Italian, Portuguese, Dutch and Polish. Up to 19 lines above the header are
passed over. Map a column with another name:

  waybill create export.csv --map referId="Order No"

Save the mapping with --save-map NAME, and use it with --map @NAME. It is kept in
your configuration file under maps:. An error about a header names the saved
mappings that fit it.

What "waybill list", "show" and "runs rows" print as JSON or CSV is read too.

CARRIERS

A column named carrierCode (or mapped to it) and the JSON member
metadata.carrierCode are sent unchanged, with a warning for what looks like a name
(capital letters or spaces: UPS, DHL Express). Placeholders (n/a, -, null, 0) are
errors. Names in other columns (Carrier, courier, ...) are not sent.

To send a name as a code, map it with --carrier-map 'DHL Express=dhl', or with
carriers: in the configuration. An empty code leaves the carrier to the service.

CHECKS

All rows are checked before anything is sent. If rows are bad, waybill shows each
with file, line and column, and sends nothing. --rejects FILE writes the bad rows
to a file of the same format that you can fix and read again. --skip-invalid sends
the other rows. If a file changes while it is checked, waybill refuses it and sends
nothing. A large file is read again while it is sent: if it changes then, create
stops with exit status 6, and rows of its first version may have been sent.

White space around values is removed. Each row of a table must have as many cells
as the header: one more or less may have moved a number. Empty cells at the end of
every row are ignored.

Values that a spreadsheet damaged (1.23E+15, 12345678901234.0, 1,234,567, Mar-24,
'0012, #N/A, ########, digits turned into zeros) and placeholders (N/A, NULL, TBD,
pending, ?, a line of totals) are errors in tracking numbers. So are identifiers
of more than 255 characters. Export the file again, with the column formatted as
text. In referId, values that cannot name an order are errors (1.23E+15, #N/A,
########, NULL, N/A, ?), and the others are notes. --accept-odd-values sends all
of them unchanged.

WARNINGS

"waybill check" and "waybill create" warn of values that are sent, but are likely
wrong: create counts them and shows the first. With --strict they are errors.
Nothing is changed or left out.

  check-digit      the check digit is wrong in every form that the number has
  look-alike       Cyrillic, Greek or full-width letters; O for 0, I for 1, S for 5, 2Z for 1Z
  lost-zeros       shorter than nearly all others, and right with zeros before it
  markup, quotes   HTML entities, URL characters, quotes around a value
  no-form          no carrier's form, unlike nearly all others: URLs, words, a 1Z number too short
  other-carrier    a number of another carrier than the row's
  several-in-cell  more than one number in a cell
  contradiction    one tracking with two carrier codes (an error)
  shared-number    one number under two orders
  spelling         the same number or order, written in two ways
  hidden-row       the sheet does not show the row, which is read all the same
  hidden-column    the same of a column in use
  exchanged        the two columns look exchanged (in all rows: an error)

Check digits are checked where the carrier publishes the rule: UPS 1Z, USPS IMpb,
FedEx with 12, 15, 20, 22, 32 and 34 digits, S10 of postal services, DHL, DPD, GLS,
Canada Post, Purolator, Colissimo, Yamato, Aramex, SSCC and others. Amazon, OnTrac,
PostNL, LaserShip and others have none.

DUPLICATES

Each pair of referId and tracking number is created once, however often it is in
the input and however often you run the command. A referId may have several
numbers: an order in several parcels.

REFS

A file of REFs needs a column or field with a referId or a number; other columns
are ignored. Files for create can be read, and what list, show and "runs rows"
print. A file with one column of no known name is a list of REFs, one per line;
--format list says so for any file. A JSON array may hold REFs as strings. A
repeated REF counts once. If a row is bad, waybill sends no request.
`

const rowsPage = `Each row of the input has a state: pending, sending, accepted, rejected or unknown.
waybill writes the state to disk before and after each request.

After an interruption, re-run the same command to continue. If the input was
standard input, run "waybill runs resume ID". Several waybill processes with the
same store share the work, and each row is sent once.

ACCEPTED

The complete response of the service is on disk and has no sign of an error, or a
query found the row. If you think that the service lost rows, check those of a
run. Rows that are not found become unknown:

  waybill runs retry 3 --absent

REJECTED

The service refused the row. When it refuses a batch because of some rows,
waybill sends the batch again in halves until the bad rows are alone. After more
than --max-rejects rejected rows no other batch begins: up to --concurrency of them
are under way, and end. Rejected rows are not sent again unless you ask for it. Fix
them:

  waybill runs rows 3 --status rejected -o csv --out bad.csv
  waybill create bad.csv

or send them unchanged:

  waybill runs retry 3
  waybill create orders.csv --retry-rejected

SUPERSEDED AND DISMISSED

A rejected row is superseded when a later input has another number for its
referId and that row is accepted. Another parcel in the same input does not
count. "waybill runs dismiss 3" dismisses the other rejected rows of a run;
with --row REF, those of one order or number.

Both stay in the state rejected, with their reason. They are counted separately,
do not change the exit code, and are sent again only by "waybill runs retry 3
--row REF".

UNKNOWN

The request was sent, and no reliable response came. --unknown selects what
happens to these rows:

  reconcile   Query the service. A row that it returns is accepted. A row is sent
              again only if the service reports twice, --settle apart, that it
              does not exist (the first request may take effect late), and if it
              finds accepted rows (up to three) in the same way before and after.
              All other rows stay unknown; "waybill runs rows 3" shows why.
  resend-one  The same. If no row of the account was ever accepted, there is no
              row to compare with: send one row again alone and query it. This
              row may be created twice.
  resend      Send them again without a query. They may be created twice.
  keep        Leave them unchanged.

PROOFS

What a response to a create means is not documented. So waybill queries up to three
rows of the first batch that gets a response of a new form (HTTP status, names and
kinds of its top members, counts) before it acts on it. If the service has the
rows, such responses mean accepted. If it provably has none, rows of such batches
are sent again. Otherwise each row is checked. An account for which nothing is
proven gets one row first.

Each run also queries the first row that it is about to send, and up to three rows
of its first batch while the next ones are sent. If the service already has the
first row, this store does not know all that was sent: nothing is sent, and the
rows stay pending until you run create or "runs resume" with --check-first.

"waybill doctor" lists what is proven. A proof is forgotten after 30 days, or when
it fails once. --skip-proof sends without these queries.

CHECK FIRST

--check-first is for a lost store, a restored backup or another computer. It queries
the rows of the input that are new or pending before it sends them. Rows that the
service has are accepted and not sent. Rows that provably do not exist are sent. The
others stay unknown.
`

const outputText = `Standard output has the result and nothing else. Progress, notes, warnings and
errors go to standard error.

FORMATS

  -o table    aligned columns on a terminal, values separated by tabs elsewhere
  -o json     an object for one result, an array for a list
  -o jsonl    one object per line
  -o csv      CSV (RFC 4180) with the names of JSON as headers; cells unchanged,
              times of waybill in UTC
  --excel     CSV that Excel opens by double click: byte order mark, CRLF, the
              separator of your locale (or --excel=semicolon, --excel=comma),
              local times without offset; identifiers that it would change become
              ="00123", other cells that it would execute begin with '
  -o xlsx     a workbook, with --out FILE: identifiers as text, counts as numbers,
              local times; a header that stays in view, and filters
  --jq EXPR   the JSON, filtered by a jq expression
  --out FILE  the result in a file, complete or not at all

JSON

Members keep their names and meaning; new ones may be added. Names are those of
the service where it has one. Times of waybill are RFC 3339 in UTC; times of the
service are unchanged. Data of the service that waybill does not know is in
"raw", unchanged.

An object of show and wait is an order: its first tracking is in the object itself,
further ones are in "others". In the last line of wait --watch, "trackings" counts
trackings; "met", "left" and "failed" count orders.

With -o json and -o jsonl each line on standard error is a JSON object with a
type: note, warning, error, and with -v progress. The error is the last one. It
has code (a word of "waybill help exit-codes"), message, hint and nextCommand,
and where they apply httpStatus, retryAfterSeconds and errors: [{file, line,
column, value, message, hint}], of a workbook with sheet and cell. The reason of a
usage error is "arguments" (an unknown command or flag, a wrong argument), "input"
(bad rows, an unreadable file), "setting" (missing, unknown or wrong) or "exists"
(what would be made is there already).

"state" of a tracking is that of its row here: accepted, rejected, unknown, pending,
sending; empty if it was not created here. "phase" is what is known of it: processed,
processing, absent, undecided, rejected, notSent, notAsked. "delivery" is a number;
"id" is the name that commands take.

TERMINALS

Without a terminal there is no color and no prompt; in place of a progress display,
a line every few seconds.
NO_COLOR, CLICOLOR_FORCE, TERM=dumb and --color are honored. Characters that
could control a terminal are shown as escapes such as \u{1b}.

COLUMNS

--columns NAMES selects the columns of a table or of CSV, in that order:

  waybill list --columns reference,status,checkpoint

Without it, a narrow terminal shows fewer columns. A header in CSV is a name too,
in upper or lower case. These are the names for each command:
`
