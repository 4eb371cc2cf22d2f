-- How much is kept of deliveries that did not verify.
CREATE INDEX deliveries_unverified ON deliveries ((length(body) + length(header))) WHERE verified <> 'yes' AND body IS NOT NULL;

-- Standing events that did not verify, which are shown beside what is known.
CREATE INDEX events_unverified ON events (tracking_number) WHERE verified <> 'yes' AND mark = '';

-- The service's own identifier of a tracking, once an answer has told it.
ALTER TABLE sightings ADD COLUMN router_id TEXT NOT NULL DEFAULT '';
CREATE INDEX sightings_by_router ON sightings (account_id, router_id) WHERE router_id <> '';
