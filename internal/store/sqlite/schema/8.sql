-- What the eighth version of the store adds.

-- What was met of the service: statuses, event kinds, fields and the like.
CREATE TABLE observed (
	account_id BIGINT NOT NULL, -- 0: of deliveries, which name none; -1: of those that did not verify
	kind       TEXT NOT NULL,
	name       TEXT NOT NULL, -- empty: what was met beyond the limit
	count      BIGINT NOT NULL,
	first_seen BIGINT NOT NULL,
	last_seen  BIGINT NOT NULL,
	sample     TEXT NOT NULL, -- masked
	documented BIGINT NOT NULL, -- 0, 1
	PRIMARY KEY (account_id, kind, name)
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('observed', 0); -- number of the last event whose contents are in it

-- Shipments that were erased, so that they are neither sent nor kept again.
CREATE TABLE erased (
	hash       BLOB NOT NULL PRIMARY KEY, -- keyed by the account's salt
	account_id BIGINT NOT NULL,
	at         BIGINT NOT NULL
) WITHOUT ROWID;

-- Records of the input that were erased, before it was staged or since.
ALTER TABLE runs ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;
