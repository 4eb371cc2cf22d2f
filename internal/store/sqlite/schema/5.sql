-- What the fifth version of the store adds.

-- Evidence of refusals is kept by class, remote address and minute, and each
-- piece counts as 16 KiB at least, so that its bytes bound its number too.
ALTER TABLE refused ADD COLUMN class BIGINT NOT NULL DEFAULT 0; -- 0: no well-formed signature, 1: one, 2: one, from an address that verified deliveries came from
ALTER TABLE refused ADD COLUMN source TEXT NOT NULL DEFAULT ''; -- remote without the port
ALTER TABLE refused ADD COLUMN minute BIGINT NOT NULL DEFAULT 0; -- of receipt, since 1970
CREATE INDEX deliveries_sources ON deliveries (rtrim(remote, '0123456789')) WHERE verified = 'yes';
UPDATE refused SET
	bytes = CASE WHEN bytes < 16384 THEN 16384 ELSE bytes END,
	source = rtrim(rtrim(remote, '0123456789'), ':'),
	minute = received / 60000,
	class = CASE
		WHEN reason NOT IN ('signature_mismatch', 'timestamp_malformed', 'timestamp_too_old', 'timestamp_in_future') THEN 0
		WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.verified = 'yes' AND rtrim(d.remote, '0123456789') = rtrim(refused.remote, '0123456789')) THEN 2
		ELSE 1 END;
DROP INDEX refused_bytes;
CREATE INDEX refused_groups ON refused (class, source, minute, seq, bytes);

-- A number by chance that tells this store from every other: a connection that
-- is opened later finds the same one, or another file.
CREATE TABLE identity (id BLOB NOT NULL);
INSERT INTO identity (id) VALUES (randomblob(16));

-- The rows of earlier runs that a run's input names, at their first mention:
-- ranges of rows that follow each other there as they do here. An input that is
-- sent again takes one range, however long it is.
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
CREATE UNIQUE INDEX run_known_rows_by_row ON run_known_rows (run_id, row_id);
INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step, carrier)
	SELECT run_id, MIN(pos), MIN(row_id), COUNT(*), file, MIN(line), 1, carrier
	FROM (SELECT run_id, pos, row_id, file, line, carrier, pos - ROW_NUMBER() OVER (
		PARTITION BY run_id, file, carrier, row_id - pos, line - pos ORDER BY pos) AS island FROM known) AS k
	GROUP BY run_id, file, carrier, row_id - pos, line - pos, island;
DROP TABLE known;

-- Tracking numbers are folded by fold_number, of the program: case, spaces and
-- hyphens in the sense of Unicode. What was folded before by ASCII alone is
-- folded further.
DROP INDEX events_unverified;
ALTER TABLE events ADD COLUMN folded TEXT NOT NULL DEFAULT ''; -- tracking_number as in numbers
UPDATE events SET folded = fold_number(tracking_number) WHERE tracking_number <> '';
CREATE INDEX events_unverified ON events (folded) WHERE verified <> 'yes' AND mark = '';
UPDATE numbers SET folded = fold_number(folded) WHERE folded GLOB '*[^!-~]*';
UPDATE sightings SET folded = fold_number(folded) WHERE folded GLOB '*[^!-~]*';
UPDATE OR REPLACE outbox_numbers SET folded = fold_number(folded) WHERE folded GLOB '*[^!-~]*';
DELETE FROM outbox_numbers WHERE folded = '';
UPDATE outbox SET blocked = (SELECT COUNT(*) FROM outbox_numbers n WHERE n.letter = outbox.seq AND
	EXISTS (SELECT 1 FROM outbox_numbers o WHERE o.sink = n.sink AND o.folded = n.folded AND o.letter < n.letter));

-- What the service's own times say of when a sighting was so: those of the
-- latest checkpoint and of its record.
ALTER TABLE sightings ADD COLUMN checkpoint BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sightings ADD COLUMN updated BIGINT NOT NULL DEFAULT 0;
UPDATE sightings SET checkpoint = COALESCE(CAST(ROUND(unixepoch(latest_time, 'subsec') * 1000) AS INTEGER), 0)
	WHERE latest_time GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z';

-- What asking the service showed of an account's assumptions, see package
-- ledger; and the assumption that unknown rows of a batch wait for.
CREATE TABLE assumptions (
	account_id BIGINT NOT NULL,
	name       TEXT NOT NULL,
	holds      BIGINT NOT NULL, -- 0, 1
	checked    BIGINT NOT NULL,
	PRIMARY KEY (account_id, name)
) WITHOUT ROWID;
ALTER TABLE batches ADD COLUMN assumption TEXT NOT NULL DEFAULT '';

-- Tables get the names that the code uses.
ALTER TABLE parts RENAME TO run_batches;
DROP INDEX parts_of_batch;
CREATE INDEX run_batches_by_batch ON run_batches (batch_id);
ALTER TABLE doubts RENAME TO absences;
ALTER TABLE absences RENAME COLUMN look TO fingerprint;

-- When an absence was proven by a clock that nobody sets, beside the one on the
-- wall: milliseconds since the machine was started, and which start that was.
ALTER TABLE absences ADD COLUMN boot TEXT NOT NULL DEFAULT ''; -- empty: not told
ALTER TABLE absences ADD COLUMN uptime BIGINT NOT NULL DEFAULT 0;
