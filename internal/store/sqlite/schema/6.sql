-- What the sixth version of the store adds.

-- What answers say of status and timeline, in short: NULL of an answer from
-- before, empty of one that says nothing; and when the first of the answers in a
-- row came that say the same.
ALTER TABLE answers ADD COLUMN digest BLOB;
ALTER TABLE answers ADD COLUMN first_seen BIGINT NOT NULL DEFAULT 0;

-- Earlier answers about a referId that said something else: the first one and
-- the latest 99. One that says nothing is kept between others only.
CREATE TABLE answer_versions (
	id         INTEGER PRIMARY KEY,
	account_id BIGINT NOT NULL,
	refer_id   TEXT NOT NULL,
	first_seen BIGINT NOT NULL,
	seen       BIGINT NOT NULL,
	digest     BLOB,
	raw        BLOB NOT NULL -- gzip, or as it is
);
CREATE INDEX answer_versions_by_refer ON answer_versions (account_id, refer_id);
CREATE TRIGGER answers_changed AFTER UPDATE OF digest ON answers
WHEN old.digest IS NOT new.digest AND (old.digest IS NULL OR old.digest <> x'' OR
	EXISTS (SELECT 1 FROM answer_versions WHERE account_id = old.account_id AND refer_id = old.refer_id))
BEGIN
	INSERT INTO answer_versions (account_id, refer_id, first_seen, seen, digest, raw)
		VALUES (old.account_id, old.refer_id, old.first_seen, old.seen, old.digest, old.raw);
	DELETE FROM answer_versions WHERE account_id = old.account_id AND refer_id = old.refer_id
		AND id <= (SELECT id FROM answer_versions WHERE account_id = old.account_id AND refer_id = old.refer_id ORDER BY id DESC LIMIT 1 OFFSET 99)
		AND id > (SELECT MIN(id) FROM answer_versions WHERE account_id = old.account_id AND refer_id = old.refer_id);
END;

-- When the service last answered a query about a referId; 0: it was never asked.
ALTER TABLE answers ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
UPDATE answers SET asked = seen, first_seen = seen;

-- Rejected rows that the user settled without a tracking, and when.
CREATE TABLE dismissals (
	row_id    INTEGER PRIMARY KEY,
	dismissed BIGINT NOT NULL
);

-- Events of one tracking.
CREATE INDEX events_by_number ON events (folded);

-- Whether the input of a run was staged to its end: 0; else the batch that is
-- being filled, -1 if there is none. A run is sent while the rest of its input is
-- staged, and that batch once it is full.
ALTER TABLE runs ADD COLUMN filling BIGINT NOT NULL DEFAULT 0;

-- The statuses that sightings have, and how many of them have each. All texts are
-- empty for rows without a sighting, as far as table numbers knows them.
CREATE TABLE statuses (
	id           INTEGER PRIMARY KEY,
	account_id   BIGINT NOT NULL,
	phase        TEXT NOT NULL,
	status       TEXT NOT NULL,
	status_label TEXT NOT NULL,
	status_track TEXT NOT NULL,
	trackings    BIGINT NOT NULL,
	UNIQUE (account_id, phase, status, status_label, status_track)
);
INSERT INTO statuses (account_id, phase, status, status_label, status_track, trackings)
	SELECT account_id, phase, status, status_label, status_track, COUNT(*) FROM sightings GROUP BY 1, 2, 3, 4, 5;

-- The sighting of a row that table numbers knows has the row's id, others have
-- negative ones.
CREATE TABLE sightings_of_rows (
	id           INTEGER PRIMARY KEY,
	account_id   BIGINT NOT NULL,
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
	router_id    TEXT NOT NULL,
	as_of        BIGINT NOT NULL, -- when it was so, which an event tells later
	event        BIGINT NOT NULL, -- that it was learnt from, 0: none
	shared       BIGINT NOT NULL, -- how many trackings that was about
	checkpoint   BIGINT NOT NULL, -- by the service's own times, as is updated
	updated      BIGINT NOT NULL,
	UNIQUE (account_id, refer_id, number)
);
INSERT INTO sightings_of_rows SELECT COALESCE(r.id, -s.id), s.account_id, s.refer_id, s.number, s.folded, t.id, s.phase, s.status, s.status_label, s.status_track,
	s.latest_event, s.latest_time, s.carrier, s.seen, s.source, s.router_id, s.as_of, s.event, s.shared, s.checkpoint, s.updated
	FROM sightings s CROSS JOIN statuses t ON t.account_id = s.account_id AND t.phase = s.phase AND t.status = s.status AND t.status_label = s.status_label AND t.status_track = s.status_track
	LEFT JOIN rows r ON r.account_id = s.account_id AND r.refer_id = s.refer_id AND r.number = s.number AND r.id <= (SELECT value FROM counters WHERE name = 'row');
DROP TABLE sightings;
ALTER TABLE sightings_of_rows RENAME TO sightings;
CREATE INDEX sightings_by_number ON sightings (account_id, folded);
CREATE INDEX sightings_by_router ON sightings (router_id) WHERE router_id <> '';
CREATE INDEX sightings_by_event ON sightings (event) WHERE event > 0;
CREATE INDEX sightings_by_status ON sightings (status_id);

-- Table numbers is filled again: what it knows of a row has new consequences.
DELETE FROM numbers;
UPDATE counters SET value = 0 WHERE name = 'numbered';

-- Rows whose state is not that of their batch.
CREATE INDEX rows_by_state ON rows (state) WHERE state IS NOT NULL;

-- Commands that ask about many trackings and have not asked about all of them.
CREATE TABLE sweeps (
	account_id BIGINT NOT NULL,
	name       TEXT NOT NULL, -- what selects the trackings
	began      BIGINT NOT NULL,
	PRIMARY KEY (account_id, name)
) WITHOUT ROWID;
