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

-- Listeners that run, and where they take deliveries.
CREATE TABLE listeners (
	owner TEXT NOT NULL, -- see outbox; one that is not alive has ended
	url   TEXT NOT NULL,
	PRIMARY KEY (owner, url)
) WITHOUT ROWID;
