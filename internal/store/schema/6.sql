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
