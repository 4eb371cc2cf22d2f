-- What the eighth version of the store adds.

-- What was met of the service: statuses, event kinds, fields and the like.
CREATE TABLE observed (
	account_id BIGINT NOT NULL, -- 0: of deliveries, which name none
	kind       TEXT NOT NULL,
	name       TEXT NOT NULL,
	count      BIGINT NOT NULL,
	first_seen BIGINT NOT NULL,
	last_seen  BIGINT NOT NULL,
	sample     TEXT NOT NULL, -- redacted
	PRIMARY KEY (account_id, kind, name)
) WITHOUT ROWID;

-- Rows that were erased, so that they are not sent again.
CREATE TABLE erased (
	account_id BIGINT NOT NULL,
	hash       BLOB NOT NULL, -- keyed
	at         BIGINT NOT NULL,
	PRIMARY KEY (account_id, hash)
) WITHOUT ROWID;
