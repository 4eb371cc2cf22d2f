-- What the sixth version of the store adds.

-- When the service last answered a query about a referId; 0: it was never asked.
ALTER TABLE answers ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
UPDATE answers SET asked = seen;

-- Rejected rows that the user settled without a tracking, and when.
CREATE TABLE dismissals (
	row_id    INTEGER PRIMARY KEY,
	dismissed BIGINT NOT NULL
);
