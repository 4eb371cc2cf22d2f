-- What the fifth version of the store adds.

-- Evidence of refusals is kept by class, remote address and hour, and each
-- piece counts as 16 KiB at least, so that its bytes bound its number too.
ALTER TABLE refused ADD COLUMN class BIGINT NOT NULL DEFAULT 0; -- 0: no well-formed signature, 1: one, 2: one, from an address that verified deliveries came from
ALTER TABLE refused ADD COLUMN source TEXT NOT NULL DEFAULT ''; -- remote without the port
ALTER TABLE refused ADD COLUMN hour BIGINT NOT NULL DEFAULT 0;  -- of receipt, since 1970
CREATE INDEX deliveries_sources ON deliveries (rtrim(remote, '0123456789')) WHERE verified = 'yes';
UPDATE refused SET
	bytes = CASE WHEN bytes < 16384 THEN 16384 ELSE bytes END,
	source = rtrim(rtrim(remote, '0123456789'), ':'),
	hour = received / 3600000,
	class = CASE
		WHEN reason NOT IN ('signature_mismatch', 'timestamp_malformed', 'timestamp_too_old', 'timestamp_in_future') THEN 0
		WHEN EXISTS (SELECT 1 FROM deliveries d WHERE d.verified = 'yes' AND rtrim(d.remote, '0123456789') = rtrim(refused.remote, '0123456789')) THEN 2
		ELSE 1 END;
DROP INDEX refused_bytes;
CREATE INDEX refused_groups ON refused (class, source, hour, seq, bytes);
-- A number by chance that tells this store from every other: a connection that
-- is opened later finds the same one, or another file.
CREATE TABLE identity (id BLOB NOT NULL);
INSERT INTO identity (id) VALUES (randomblob(16));
