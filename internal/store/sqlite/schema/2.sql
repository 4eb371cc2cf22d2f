-- Whether a row sent for the account was found by a query once: 0, 1. An
-- account that has accepted rows is taken to have passed that.
ALTER TABLE accounts ADD COLUMN contacted BIGINT NOT NULL DEFAULT 0;

UPDATE accounts SET contacted = 1 WHERE EXISTS (
	SELECT 1 FROM runs n JOIN batches b ON b.run_id = n.id WHERE n.account_id = accounts.id AND b.state = 'accepted');

-- The first proven absence of a row while it is unknown in that batch.
CREATE TABLE doubts (
	row_id   INTEGER PRIMARY KEY,
	batch_id BIGINT NOT NULL,
	absent   BIGINT NOT NULL,
	look     TEXT NOT NULL
);

-- The largest batch that the service may take, where one was too large.
CREATE TABLE batch_limits (
	account_id BIGINT NOT NULL,
	mode       TEXT NOT NULL,
	rows       BIGINT NOT NULL,
	PRIMARY KEY (account_id, mode)
) WITHOUT ROWID;
