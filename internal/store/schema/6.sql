-- What the sixth version of the store adds.

-- When the service last answered a query about a referId; 0: it was never asked.
ALTER TABLE answers ADD COLUMN asked BIGINT NOT NULL DEFAULT 0;
UPDATE answers SET asked = seen;
