-- NOT NULL ON CONFLICT ROLLBACK is a plain NOT NULL, but that a statement with
-- many rows need not keep the pages it changes for undoing itself alone.
--
-- Times are milliseconds since 1970, 0 for never. States and other words are
-- those of packages ledger and inbox.

CREATE TABLE accounts (
	id   INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	salt BLOB NOT NULL -- key of the fingerprints of its API keys
);

CREATE TABLE keyprints (
	account_id BIGINT NOT NULL,
	print      BLOB NOT NULL,
	PRIMARY KEY (account_id, print)
) WITHOUT ROWID;

-- The last numbers that were given away: 'run' and 'row', for what is visible.
-- Rows beyond it are being staged.
CREATE TABLE counters (
	name  TEXT NOT NULL PRIMARY KEY,
	value BIGINT NOT NULL
) WITHOUT ROWID;

INSERT INTO counters (name, value) VALUES ('run', 0), ('row', 0), ('numbered', 0);

CREATE TABLE runs (
	id            INTEGER PRIMARY KEY,
	account_id    BIGINT NOT NULL,
	state         TEXT NOT NULL, -- staged, open
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
	last_sent     BIGINT NOT NULL
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
	reason      TEXT NOT NULL
);
CREATE INDEX batches_of_run ON batches (run_id);
CREATE INDEX batches_pending ON batches (run_id) WHERE state = 'pending';
CREATE INDEX batches_sending ON batches (run_id, owner) WHERE state = 'sending';

CREATE TABLE batch_answers (
	batch_id INTEGER PRIMARY KEY,
	cut      BIGINT NOT NULL, -- 1: the answer was longer
	raw      BLOB NOT NULL    -- gzip
);

CREATE TABLE rows (
	id         INTEGER PRIMARY KEY,
	account_id BIGINT NOT NULL ON CONFLICT ROLLBACK,
	refer_id   TEXT NOT NULL ON CONFLICT ROLLBACK,
	number     TEXT NOT NULL ON CONFLICT ROLLBACK,
	carrier    TEXT NOT NULL ON CONFLICT ROLLBACK,
	batch_id   BIGINT NOT NULL ON CONFLICT ROLLBACK,
	file       BIGINT NOT NULL ON CONFLICT ROLLBACK, -- index in the run's files
	line       BIGINT NOT NULL ON CONFLICT ROLLBACK,
	state      TEXT, -- NULL: that of the batch
	reason     TEXT,
	UNIQUE (account_id, refer_id, number)
);
CREATE INDEX rows_apart ON rows (batch_id) WHERE state IS NOT NULL;

-- The rows of earlier runs that a run's input names, at their first mention.
CREATE TABLE known (
	run_id  BIGINT NOT NULL ON CONFLICT ROLLBACK,
	pos     BIGINT NOT NULL ON CONFLICT ROLLBACK, -- the number that the record took
	row_id  BIGINT NOT NULL ON CONFLICT ROLLBACK,
	file    BIGINT NOT NULL ON CONFLICT ROLLBACK,
	line    BIGINT NOT NULL ON CONFLICT ROLLBACK,
	carrier TEXT, -- in this input; NULL: the row's
	PRIMARY KEY (run_id, pos)
) WITHOUT ROWID;
CREATE UNIQUE INDEX known_rows ON known (run_id, row_id);

-- The records that name a pair again which stands earlier in the same input.
CREATE TABLE repeats (
	run_id BIGINT NOT NULL ON CONFLICT ROLLBACK,
	pos    BIGINT NOT NULL ON CONFLICT ROLLBACK,
	row_id BIGINT NOT NULL ON CONFLICT ROLLBACK,
	file   BIGINT NOT NULL ON CONFLICT ROLLBACK,
	line   BIGINT NOT NULL ON CONFLICT ROLLBACK,
	PRIMARY KEY (run_id, pos)
) WITHOUT ROWID;

-- How many distinct rows of a run's input are in which batch.
CREATE TABLE parts (
	run_id   BIGINT NOT NULL,
	batch_id BIGINT NOT NULL,
	rows     BIGINT NOT NULL,
	PRIMARY KEY (run_id, batch_id)
) WITHOUT ROWID;
CREATE INDEX parts_of_batch ON parts (batch_id);

-- Rows by tracking number, without spaces, hyphens and case, up to the row that
-- the counter 'numbered' says. It is brought up to date when somebody asks.
CREATE TABLE numbers (
	account_id BIGINT NOT NULL,
	folded     TEXT NOT NULL,
	row_id     BIGINT NOT NULL,
	PRIMARY KEY (account_id, folded, row_id)
) WITHOUT ROWID;

CREATE TABLE sightings (
	id           INTEGER PRIMARY KEY,
	account_id   BIGINT NOT NULL,
	refer_id     TEXT NOT NULL,
	number       TEXT NOT NULL,
	folded       TEXT NOT NULL, -- number as in numbers
	phase        TEXT NOT NULL,
	status       TEXT NOT NULL,
	status_label TEXT NOT NULL,
	status_track TEXT NOT NULL,
	latest_event TEXT NOT NULL,
	latest_time  TEXT NOT NULL,
	carrier      TEXT NOT NULL,
	seen         BIGINT NOT NULL,
	source       TEXT NOT NULL,
	UNIQUE (account_id, refer_id, number)
);
CREATE INDEX sightings_by_number ON sightings (account_id, folded);

CREATE TABLE answers (
	account_id BIGINT NOT NULL,
	refer_id   TEXT NOT NULL,
	seen       BIGINT NOT NULL,
	raw        BLOB NOT NULL, -- gzip
	PRIMARY KEY (account_id, refer_id)
);

CREATE TABLE deliveries (
	seq                INTEGER PRIMARY KEY,
	received           BIGINT NOT NULL,
	method             TEXT NOT NULL,
	path               BLOB NOT NULL, -- as sent, in any encoding
	raw_query          BLOB NOT NULL,
	remote             TEXT NOT NULL,
	verified           TEXT NOT NULL,
	reason             TEXT NOT NULL,
	scheme             TEXT NOT NULL,
	secret_name        TEXT NOT NULL,
	body_authenticated BIGINT NOT NULL, -- 0, 1
	single             BIGINT NOT NULL, -- 0, 1
	anomaly            TEXT NOT NULL,
	header             BLOB NOT NULL,
	body               BLOB -- NULL once pruned
);

CREATE TABLE events (
	seq             INTEGER PRIMARY KEY,
	delivery        BIGINT NOT NULL,
	received        BIGINT NOT NULL, -- of its delivery, as are verified, reason and body_authenticated
	place           BIGINT NOT NULL, -- in the array
	start           BIGINT NOT NULL, -- in the body
	length          BIGINT NOT NULL,
	event_key       BLOB, -- NULL for an anomaly
	sum             BLOB, -- SHA-256 of its bytes, NULL for an anomaly
	event_id        TEXT NOT NULL,
	kind            TEXT NOT NULL,
	event_time      TEXT NOT NULL,
	tracking_number TEXT NOT NULL,
	status          TEXT NOT NULL,
	status_track    TEXT NOT NULL,
	status_label    TEXT NOT NULL,
	latest_event    TEXT NOT NULL,
	router_id       TEXT NOT NULL,
	verified           TEXT NOT NULL,
	reason             TEXT NOT NULL,
	body_authenticated BIGINT NOT NULL,
	mark               TEXT NOT NULL,
	anomaly            TEXT NOT NULL
);
CREATE INDEX events_by_key ON events (event_key, mark, verified);
CREATE INDEX events_by_delivery ON events (delivery);

-- Evidence of what was refused, within bounds. Its numbers are not used again.
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
	bytes              BIGINT NOT NULL -- of header and body
);
CREATE INDEX refused_bytes ON refused (seq, bytes);
