-- What the seventh version of the store adds.

-- Events that waybill made up, as their delivery says.
ALTER TABLE events ADD COLUMN synthetic BIGINT NOT NULL DEFAULT 0; -- 0, 1
DROP INDEX events_unverified;
CREATE INDEX events_unverified ON events (folded) WHERE verified <> 'yes' AND mark = '' AND synthetic = 0;

-- eventIds that are no UUIDs, for those who write only their beginning.
CREATE INDEX events_by_other_id ON events (event_id) WHERE length(event_key) > 16 AND event_id <> '';

-- What became of refused deliveries that were readmitted.
CREATE TABLE readmitted (
	refused  INTEGER PRIMARY KEY,
	delivery BIGINT NOT NULL
);

-- Deliveries that sinks sent.
CREATE TABLE forwarded (
	delivery BIGINT NOT NULL,
	sink     BIGINT NOT NULL,
	attempts BIGINT NOT NULL, -- this one included
	sent     BIGINT NOT NULL, -- when
	status   BIGINT NOT NULL, -- of the answer
	PRIMARY KEY (delivery, sink)
) WITHOUT ROWID;

-- Listeners that run: where they take deliveries, and sink:ID for each sink they send to.
CREATE TABLE listeners (
	owner TEXT NOT NULL, -- see outbox; one that is not alive has ended
	url   TEXT NOT NULL,
	PRIMARY KEY (owner, url)
) WITHOUT ROWID;

-- The time from the first to the last checkpoint of a delivered tracking in
-- milliseconds, 0: not known, as of all that was recorded before.
ALTER TABLE sightings ADD COLUMN transit BIGINT NOT NULL DEFAULT 0;

-- How many numbered rows, and sightings without one, are alike. It says what a
-- scan of both would: whatever changes these changes it in the same transaction.
CREATE TABLE tracking_counts (
	account_id   BIGINT NOT NULL,
	run_id       BIGINT NOT NULL, -- that brought the row in, 0: a sighting without a numbered row
	status_id    BIGINT NOT NULL, -- in statuses, 0: no sighting
	carrier      TEXT NOT NULL,   -- of the sighting, else of the row
	transit_days BIGINT NOT NULL, -- rounded, -1: not known
	trackings    BIGINT NOT NULL,
	seen         BIGINT NOT NULL, -- none of them was seen later
	PRIMARY KEY (account_id, run_id, status_id, carrier, transit_days)
) WITHOUT ROWID;
INSERT INTO tracking_counts (account_id, run_id, status_id, carrier, transit_days, trackings, seen)
	SELECT r.account_id, n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier), -1, COUNT(*), COALESCE(MAX(s.seen), 0)
	FROM runs n CROSS JOIN rows r ON r.id BETWEEN n.first_row AND n.last_row LEFT JOIN sightings s ON s.id = r.id
	WHERE n.state <> 'staged' AND r.id <= (SELECT value FROM counters WHERE name = 'numbered') GROUP BY 1, 2, 3, 4;
INSERT INTO tracking_counts (account_id, run_id, status_id, carrier, transit_days, trackings, seen)
	SELECT account_id, 0, status_id, carrier, -1, COUNT(*), MAX(seen) FROM sightings
	WHERE id < 0 OR id > (SELECT value FROM counters WHERE name = 'numbered') GROUP BY 1, 2, 3, 4;
ALTER TABLE statuses DROP COLUMN trackings;
