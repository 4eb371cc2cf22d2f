-- How much is kept of deliveries that did not verify.
CREATE INDEX deliveries_unverified ON deliveries ((length(body) + length(header))) WHERE verified <> 'yes' AND body IS NOT NULL;

-- Standing events that did not verify, which are shown beside what is known.
CREATE INDEX events_unverified ON events (UPPER(REPLACE(REPLACE(tracking_number, ' ', ''), '-', ''))) WHERE verified <> 'yes' AND mark = '';

-- The service's own identifier of a tracking, once an answer has told it.
ALTER TABLE sightings ADD COLUMN router_id TEXT NOT NULL DEFAULT '';
CREATE INDEX sightings_by_router ON sightings (router_id) WHERE router_id <> '';

-- When it was so, which an event tells later. What was so last counts.
ALTER TABLE sightings ADD COLUMN as_of BIGINT NOT NULL DEFAULT 0;
UPDATE sightings SET as_of = seen;

-- The event it was learnt from, 0: none; and how many trackings that was about.
ALTER TABLE sightings ADD COLUMN event BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sightings ADD COLUMN shared BIGINT NOT NULL DEFAULT 0;
CREATE INDEX sightings_by_event ON sightings (event) WHERE event > 0;

-- A tracking without referId belongs to no account.
UPDATE OR REPLACE sightings SET account_id = 0 WHERE refer_id = '';

-- The last event that was carried over to what is known of trackings.
INSERT INTO counters (name, value) VALUES ('followed', 0);

-- What sinks sent before it verified. When it does, they have it already.
CREATE TABLE sent_unverified (
	sink     BIGINT NOT NULL,
	delivery BIGINT NOT NULL,
	PRIMARY KEY (sink, delivery)
) WITHOUT ROWID;
