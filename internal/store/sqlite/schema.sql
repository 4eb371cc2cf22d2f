-- The tables of a store. Those of a server have the same names and columns.
--
-- NOT NULL ON CONFLICT ROLLBACK is a plain NOT NULL, but that a statement with
-- many rows need not keep the pages it changes for undoing itself alone.
--
-- Times are milliseconds since 1970, 0 for never. States and other words are
-- those of packages ledger and inbox.

-- The last numbers that were given away: 'run' and 'row', for what is visible.
-- Rows beyond it are being staged. How far work has come: 'indexed' is the last row in
-- table numbers, 'followed' the last event that was taken to what is known of trackings,
-- 'observed' the last event whose contents are in table observed. 'schema' is a digest of
-- this text, and 'identity' a number by chance that tells this store from every other: a
-- connection that is opened later finds the same one, or another file. 'sweep …' is when
-- a command began that asks about many trackings and has not asked about all of them: a
-- hash of what selects them follows the word.
CREATE TABLE counters (
	name  TEXT NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('run', 0), ('row', 0), ('indexed', 0), ('followed', 0), ('observed', 0), ('refused_dropped', 0), ('identity', random() & 0x7fffffffffffffff);

-- The account that the store belongs to: one row, once something was kept of it.
CREATE TABLE account (
	id     INTEGER PRIMARY KEY,  -- 1
	name   TEXT NOT NULL,        -- empty while the store belongs to none
	salt   BLOB NOT NULL,        -- key of the fingerprints of its API keys, and of what was erased
	key_prints TEXT NOT NULL DEFAULT '', -- the fingerprints of the API keys seen, one behind the other
	max_v1 BIGINT NOT NULL DEFAULT 0, -- the largest batch that the service may take, where one was too large
	max_v2 BIGINT NOT NULL DEFAULT 0
);

-- What queries proved of the answers to creates, see package ledger.
CREATE TABLE proofs (
	shape      TEXT NOT NULL,
	state      TEXT NOT NULL, -- of the rows of a batch with that answer: accepted, pending, unknown
	proven     BIGINT NOT NULL,
	run_id     BIGINT NOT NULL, -- whose rows proved it
	PRIMARY KEY (shape)
) WITHOUT ROWID;

-- What was met of the service: statuses, event kinds, fields and the like.
CREATE TABLE observed (
	origin     TEXT NOT NULL, -- responses, verified, unverified: what it was met in
	kind       TEXT NOT NULL,
	name       TEXT NOT NULL, -- empty: what was met beyond the limit
	count      BIGINT NOT NULL,
	first_seen BIGINT NOT NULL,
	last_seen  BIGINT NOT NULL,
	documented BIGINT NOT NULL, -- 0, 1
	PRIMARY KEY (origin, kind, name)
) WITHOUT ROWID;

-- Shipments that were erased, so that they are neither sent nor kept again.
CREATE TABLE erased (
	hash       BLOB NOT NULL PRIMARY KEY, -- keyed by the salt of the account
	at         BIGINT NOT NULL
) WITHOUT ROWID;

-- What was sent, and what became of it.

CREATE TABLE runs (
	id            INTEGER PRIMARY KEY,
	state         TEXT NOT NULL, -- staged, open, pruned
	owner         TEXT NOT NULL, -- who works on it, see owners
	created       BIGINT NOT NULL,
	files         TEXT NOT NULL, -- JSON array
	mode          TEXT NOT NULL,
	batch_size    BIGINT NOT NULL,
	first_row     BIGINT NOT NULL, -- every record of the input took one number
	last_row      BIGINT NOT NULL,
	new_rows      BIGINT NOT NULL,
	known_rows    BIGINT NOT NULL,
	known_pending BIGINT NOT NULL,
	known_open    BIGINT NOT NULL,
	other_carrier BIGINT NOT NULL,
	repeats       BIGINT NOT NULL,
	requests      BIGINT NOT NULL,
	last_sent     BIGINT NOT NULL,
	-- Whether its input was staged to its end: 0; else the batch that is being filled, -1 if
	-- there is none. A run is sent while the rest of its input is staged, and that batch
	-- once it is full.
	filling       BIGINT NOT NULL DEFAULT 0,
	skipped       BIGINT NOT NULL DEFAULT 0, -- bad rows of the input, which are not in the store
	erased        BIGINT NOT NULL DEFAULT 0, -- records of the input that were erased, before it was staged or since
	own           TEXT -- JSON array: the columns of its input that its rows keep; NULL: none
);
CREATE INDEX runs_by_row ON runs (first_row, id);

CREATE TABLE batches (
	id          INTEGER PRIMARY KEY,
	run_id      BIGINT NOT NULL,
	state       TEXT NOT NULL,   -- of its rows, but for those that have their own
	rows        BIGINT NOT NULL, -- number of its rows
	first_row   BIGINT NOT NULL, -- they lie between these
	last_row    BIGINT NOT NULL,
	owner       TEXT,            -- who is sending it
	claimed     BIGINT NOT NULL,
	began       BIGINT NOT NULL,
	took        BIGINT NOT NULL, -- microseconds
	http_status BIGINT NOT NULL,
	reason      TEXT NOT NULL,
	shape       TEXT NOT NULL DEFAULT '', -- of its answer, that its unknown rows wait for a proof of
	cut         BIGINT NOT NULL DEFAULT 0, -- 1: the answer was longer
	answer      BLOB             -- gzip; NULL: none came, or it was removed
);
CREATE INDEX batches_of_run ON batches (run_id);
CREATE INDEX batches_pending ON batches (run_id) WHERE state = 'pending';
CREATE INDEX batches_sending ON batches (run_id, owner) WHERE state = 'sending';

CREATE TABLE rows (
	id         INTEGER PRIMARY KEY,
	refer_id   TEXT NOT NULL ON CONFLICT ROLLBACK,
	number     TEXT NOT NULL ON CONFLICT ROLLBACK,
	carrier    TEXT NOT NULL ON CONFLICT ROLLBACK,
	batch_id   BIGINT NOT NULL ON CONFLICT ROLLBACK,
	file       BIGINT NOT NULL ON CONFLICT ROLLBACK, -- index in the run's files
	line       BIGINT NOT NULL ON CONFLICT ROLLBACK, -- from bit 32 on by how many lines that is beyond its row; bit 62: it has none
	state      TEXT, -- NULL: that of the batch
	reason     TEXT,
	dismissed  BIGINT, -- when the user settled a rejected row without a tracking; NULL: never
	own        TEXT, -- what its input says beside, a JSON object of texts; NULL: nothing
	UNIQUE (refer_id, number)
);
-- Rows whose state is not that of their batch: those of a batch, and those in a state.
CREATE INDEX rows_apart ON rows (batch_id) WHERE state IS NOT NULL;
CREATE INDEX rows_by_state ON rows (state) WHERE state IS NOT NULL;

-- The rows of earlier runs that a run's input names, at their first mention:
-- ranges of rows that follow each other there as they do here. An input that is
-- sent again takes one range, however long it is. A record that names a pair again
-- which stands earlier in the same input is here too: 0 rows, from its row's negative number.
CREATE TABLE run_known_rows (
	run_id  BIGINT NOT NULL ON CONFLICT ROLLBACK,
	pos     BIGINT NOT NULL ON CONFLICT ROLLBACK, -- the number that the first record took
	row_id  BIGINT NOT NULL ON CONFLICT ROLLBACK, -- the row that it names
	rows    BIGINT NOT NULL ON CONFLICT ROLLBACK,
	file    BIGINT NOT NULL ON CONFLICT ROLLBACK,
	line    BIGINT NOT NULL ON CONFLICT ROLLBACK, -- of the first record
	step    BIGINT NOT NULL ON CONFLICT ROLLBACK, -- lines from one record to the next
	carrier TEXT, -- in this input; NULL: each row's own
	PRIMARY KEY (run_id, pos)
) WITHOUT ROWID;
CREATE INDEX run_known_rows_by_row ON run_known_rows (run_id, row_id);

-- How many distinct rows of a run's input are in which batch.
CREATE TABLE run_batches (
	run_id   BIGINT NOT NULL,
	batch_id BIGINT NOT NULL,
	rows     BIGINT NOT NULL,
	PRIMARY KEY (run_id, batch_id)
) WITHOUT ROWID;
CREATE INDEX run_batches_by_batch ON run_batches (batch_id);

-- The first proven absence of a row while it is unknown in that batch.
CREATE TABLE absences (
	row_id      INTEGER PRIMARY KEY,
	batch_id    BIGINT NOT NULL,
	absent      BIGINT NOT NULL,
	fingerprint TEXT NOT NULL,
	-- When it was proven by a clock that nobody sets, beside the one on the wall:
	-- milliseconds since the machine was started, and which start that was.
	boot        TEXT NOT NULL DEFAULT '', -- empty: not told
	uptime      BIGINT NOT NULL DEFAULT 0
);

-- What is known of trackings.

-- Rows by tracking number, folded by fold_number of the program: case, spaces and
-- hyphens in the sense of Unicode. It has the rows up to the counter 'indexed', and is
-- brought up to date when somebody asks.
CREATE TABLE numbers (
	folded     TEXT NOT NULL,
	row_id     BIGINT NOT NULL,
	PRIMARY KEY (folded, row_id)
) WITHOUT ROWID;

-- The statuses that sightings have. All texts are empty for rows without a sighting, as
-- far as they are visible.
CREATE TABLE statuses (
	id           INTEGER PRIMARY KEY,
	phase        TEXT NOT NULL,
	status       TEXT NOT NULL,
	status_label TEXT NOT NULL,
	status_track TEXT NOT NULL,
	UNIQUE (phase, status, status_label, status_track)
);

-- The sighting of a visible row has the row's id, other sightings have negative
-- ids. What is known of a number alone has no referId.
CREATE TABLE sightings (
	id           INTEGER PRIMARY KEY,
	refer_id     TEXT NOT NULL,
	number       TEXT NOT NULL,
	folded       TEXT NOT NULL, -- number as in numbers
	status_id    BIGINT NOT NULL,
	phase        TEXT NOT NULL,
	status       TEXT NOT NULL,
	status_label TEXT NOT NULL,
	status_track TEXT NOT NULL,
	latest_event TEXT NOT NULL,
	latest_time  TEXT NOT NULL,
	carrier      TEXT NOT NULL,
	seen         BIGINT NOT NULL,
	source       TEXT NOT NULL,
	router_id    TEXT NOT NULL, -- the service's own identifier of a tracking, once an answer has told it
	as_of        BIGINT NOT NULL, -- when it was so, which an event tells later: what was so last counts
	event        BIGINT NOT NULL, -- that it was learnt from, 0: none
	shared       BIGINT NOT NULL, -- how many trackings that was about
	checkpoint   BIGINT NOT NULL, -- by the service's own times, as is updated
	updated      BIGINT NOT NULL,
	transit      BIGINT NOT NULL DEFAULT 0, -- from the first to the last checkpoint of what was delivered, milliseconds; 0: not known
	error        TEXT NOT NULL DEFAULT '', -- JSON literal of phase error
	UNIQUE (refer_id, number)
);
CREATE INDEX sightings_by_number ON sightings (folded);
CREATE INDEX sightings_by_router ON sightings (router_id) WHERE router_id <> '';
CREATE INDEX sightings_by_status ON sightings (status_id);

-- How many rows, and sightings without a row, are alike. It says what a scan of both
-- would: whatever changes these changes it in the same transaction. Staged rows count from
-- the beginning, for their run.
CREATE TABLE tracking_counts (
	run_id       BIGINT NOT NULL, -- that brought the row in, 0: a sighting without a row, -1: one of a number alone
	status_id    BIGINT NOT NULL, -- in statuses, 0: no sighting
	carrier      TEXT NOT NULL,   -- of the sighting, else of the row
	transit_days BIGINT NOT NULL, -- rounded, -1: not known
	trackings    BIGINT NOT NULL,
	PRIMARY KEY (run_id, status_id, carrier, transit_days)
) WITHOUT ROWID;

CREATE TABLE answers (
	refer_id   TEXT NOT NULL,
	seen       BIGINT NOT NULL,
	raw        BLOB NOT NULL, -- gzip
	asked      BIGINT NOT NULL DEFAULT 0, -- when the service last answered a query about it, 0: it was never asked
	PRIMARY KEY (refer_id)
);

-- What was received.

CREATE TABLE deliveries (
	seq                INTEGER PRIMARY KEY,
	received           BIGINT NOT NULL ON CONFLICT ROLLBACK,
	method             TEXT NOT NULL ON CONFLICT ROLLBACK,
	path               BLOB NOT NULL ON CONFLICT ROLLBACK, -- as sent, in any encoding
	raw_query          BLOB NOT NULL ON CONFLICT ROLLBACK,
	remote             TEXT NOT NULL ON CONFLICT ROLLBACK,
	verified           TEXT NOT NULL ON CONFLICT ROLLBACK,
	reason             TEXT NOT NULL ON CONFLICT ROLLBACK,
	scheme             TEXT NOT NULL ON CONFLICT ROLLBACK,
	secret_name        TEXT NOT NULL ON CONFLICT ROLLBACK,
	body_authenticated BIGINT NOT NULL ON CONFLICT ROLLBACK, -- 0, 1
	single             BIGINT NOT NULL ON CONFLICT ROLLBACK, -- 0, 1
	anomaly            TEXT NOT NULL ON CONFLICT ROLLBACK,
	refused            BIGINT NOT NULL ON CONFLICT ROLLBACK DEFAULT 0, -- the number that it had among refused ones, before it was readmitted; 0: none
	-- That it verified after it was stored: numbers in that order, for sinks that have passed it
	-- already. 0: it did not.
	released           BIGINT NOT NULL ON CONFLICT ROLLBACK DEFAULT 0,
	header             BLOB NOT NULL ON CONFLICT ROLLBACK,
	body               BLOB -- NULL once pruned
);
-- What became of a refused delivery.
CREATE INDEX deliveries_readmitted ON deliveries (refused) WHERE refused > 0;
CREATE INDEX deliveries_released ON deliveries (released) WHERE released > 0;
-- Whether a verified delivery came from an address.
CREATE INDEX deliveries_sources ON deliveries (rtrim(remote, '0123456789')) WHERE verified = 'yes';
-- How much is kept of deliveries that did not verify.
CREATE INDEX deliveries_unverified ON deliveries ((length(body) + length(header) + length(path) + length(raw_query))) WHERE verified <> 'yes' AND body IS NOT NULL;

CREATE TABLE events (
	seq                INTEGER PRIMARY KEY,
	delivery           BIGINT NOT NULL ON CONFLICT ROLLBACK,
	received           BIGINT NOT NULL ON CONFLICT ROLLBACK, -- of its delivery, as are verified, reason and body_authenticated
	place              BIGINT NOT NULL ON CONFLICT ROLLBACK, -- in the array
	start              BIGINT NOT NULL ON CONFLICT ROLLBACK, -- in the body
	length             BIGINT NOT NULL ON CONFLICT ROLLBACK,
	event_key          BLOB, -- NULL for an anomaly
	sum                BLOB, -- SHA-256 of its bytes, NULL for an anomaly
	event_id           TEXT NOT NULL ON CONFLICT ROLLBACK,
	kind               TEXT NOT NULL ON CONFLICT ROLLBACK,
	event_time         TEXT NOT NULL ON CONFLICT ROLLBACK,
	tracking_number    TEXT NOT NULL ON CONFLICT ROLLBACK,
	status             TEXT NOT NULL ON CONFLICT ROLLBACK,
	status_track       TEXT NOT NULL ON CONFLICT ROLLBACK,
	status_label       TEXT NOT NULL ON CONFLICT ROLLBACK,
	latest_event       TEXT NOT NULL ON CONFLICT ROLLBACK,
	router_id          TEXT NOT NULL ON CONFLICT ROLLBACK,
	verified           TEXT NOT NULL ON CONFLICT ROLLBACK,
	reason             TEXT NOT NULL ON CONFLICT ROLLBACK,
	body_authenticated BIGINT NOT NULL ON CONFLICT ROLLBACK,
	mark               TEXT NOT NULL ON CONFLICT ROLLBACK,
	anomaly            TEXT NOT NULL ON CONFLICT ROLLBACK,
	folded             TEXT NOT NULL ON CONFLICT ROLLBACK DEFAULT '', -- tracking_number as in numbers
	synthetic          BIGINT NOT NULL ON CONFLICT ROLLBACK DEFAULT 0 -- 0, 1: waybill made it up, as its delivery says
);
CREATE INDEX events_by_key ON events (event_key, mark, verified);
CREATE INDEX events_by_delivery ON events (delivery);
CREATE INDEX events_by_number ON events (folded);
-- Events that did not verify: standing ones are shown beside what is known, and all of them are counted.
CREATE INDEX events_unverified ON events (folded, mark, synthetic) WHERE verified <> 'yes';
-- eventIds that are no UUIDs, for those who write only their beginning.
CREATE INDEX events_by_other_id ON events (event_id) WHERE length(event_key) > 16 AND event_id <> '';

-- Evidence of what was refused, within bounds. Its numbers are not used again. It is kept
-- by class, remote address and minute, and each piece counts as 16 KiB at least, so that
-- its bytes bound its number too.
CREATE TABLE refused (
	seq                INTEGER PRIMARY KEY AUTOINCREMENT,
	received           BIGINT NOT NULL,
	method             TEXT NOT NULL,
	path               BLOB NOT NULL,
	raw_query          BLOB NOT NULL,
	remote             TEXT NOT NULL,
	verified           TEXT NOT NULL,
	reason             TEXT NOT NULL,
	scheme             TEXT NOT NULL,
	secret_name        TEXT NOT NULL,
	body_authenticated BIGINT NOT NULL,
	single             BIGINT NOT NULL,
	anomaly            TEXT NOT NULL,
	header             BLOB NOT NULL,
	body               BLOB,
	bytes              BIGINT NOT NULL, -- of header and body
	class              BIGINT NOT NULL DEFAULT 0, -- 0: no well-formed signature, 1: one, 2: one, from an address that verified deliveries came from
	source             TEXT NOT NULL DEFAULT '', -- remote without the port
	minute             BIGINT NOT NULL DEFAULT 0, -- of receipt, since 1970
	lot                BIGINT NOT NULL DEFAULT 0 -- at random: of its class, address and minute the least gives way
);
CREATE INDEX refused_groups ON refused (class, source, minute, lot, bytes);

-- Whoever passes deliveries on, and how far each has come.
CREATE TABLE sinks (
	id       INTEGER PRIMARY KEY,
	name     TEXT NOT NULL,
	url      TEXT NOT NULL,
	filter   TEXT NOT NULL,
	passed   BIGINT NOT NULL, -- number of the last delivery that was looked at
	released BIGINT NOT NULL, -- likewise of the last that verified after it was stored, see deliveries
	UNIQUE (name, url, filter)
);

-- The outboxes of all sinks. What was sent is not here any more.
CREATE TABLE outbox (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: a late outcome finds its own or nothing
	sink       BIGINT NOT NULL,
	delivery   BIGINT NOT NULL,
	added      BIGINT NOT NULL,
	blocked    BIGINT NOT NULL, -- how many of its tracking numbers an earlier one has too
	owner      TEXT NOT NULL,   -- who is sending it, see owners; empty: nobody
	due        BIGINT NOT NULL,
	attempts   BIGINT NOT NULL, -- begun
	failures   BIGINT NOT NULL,
	first_fail BIGINT NOT NULL,
	dead       BIGINT NOT NULL, -- when it was given up, 0: it is not
	status     BIGINT NOT NULL, -- of the last answer, 0: there was none
	problem    TEXT NOT NULL,
	reply      BLOB NOT NULL,   -- start of the last answer
	UNIQUE (sink, delivery)
);
CREATE INDEX outbox_ready ON outbox (sink, due, seq) WHERE blocked = 0 AND owner = '' AND dead = 0;
CREATE INDEX outbox_claimed ON outbox (sink, owner) WHERE owner <> '';
CREATE INDEX outbox_dead ON outbox (sink, seq) WHERE dead <> 0;

-- The tracking numbers of what waits in the outboxes, as in table numbers.
CREATE TABLE outbox_numbers (
	sink   BIGINT NOT NULL,
	folded TEXT NOT NULL,
	entry  BIGINT NOT NULL,
	PRIMARY KEY (sink, folded, entry)
) WITHOUT ROWID;
CREATE INDEX outbox_numbers_of ON outbox_numbers (entry);

-- Attempts to send a delivery to a sink, the last ones.
CREATE TABLE attempts (
	delivery   BIGINT NOT NULL,
	sink       BIGINT NOT NULL,
	at         BIGINT NOT NULL, -- when it ended
	attempt    BIGINT NOT NULL, -- its number in the outbox
	status     BIGINT NOT NULL, -- of the answer, 0 without one
	micros     BIGINT NOT NULL, -- how long it took
	sent       BIGINT NOT NULL, -- 0, 1: the sink has it since
	unverified BIGINT NOT NULL, -- 0, 1: sent before it verified; when it does, the sink has it already
	PRIMARY KEY (delivery, sink, at, attempt)
) WITHOUT ROWID;

-- Listeners that run.
CREATE TABLE listeners (
	owner    TEXT NOT NULL, -- see outbox; one that is not alive has ended
	url      TEXT NOT NULL,
	listener TEXT NOT NULL, -- what others may know of it, in JSON
	PRIMARY KEY (owner, url)
) WITHOUT ROWID;
