-- Whoever passes deliveries on, and how far each has come.
CREATE TABLE sinks (
	id       INTEGER PRIMARY KEY,
	name     TEXT NOT NULL,
	url      TEXT NOT NULL,
	filter   TEXT NOT NULL,
	passed   BIGINT NOT NULL, -- number of the last delivery that was looked at
	released BIGINT NOT NULL, -- likewise, of table released
	UNIQUE (name, url, filter)
);

-- Deliveries that were shown to be authentic after they had been stored, for
-- sinks that have passed them already.
CREATE TABLE released (
	seq      INTEGER PRIMARY KEY AUTOINCREMENT,
	delivery BIGINT NOT NULL
);
CREATE TRIGGER deliveries_released AFTER UPDATE OF verified ON deliveries
WHEN new.verified = 'yes' AND old.verified <> 'yes'
BEGIN
	INSERT INTO released (delivery) VALUES (new.seq);
END;

-- The outboxes of all sinks. What was sent is not here any more.
CREATE TABLE outbox (
	seq        INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again: a late outcome finds its own or nothing
	sink       BIGINT NOT NULL,
	delivery   BIGINT NOT NULL,
	added      BIGINT NOT NULL,
	blocked    BIGINT NOT NULL, -- how many of its tracking numbers an earlier one has too
	owner      TEXT NOT NULL,   -- who is sending it, see owners; empty: nobody
	due        BIGINT NOT NULL,
	attempts   BIGINT NOT NULL, -- begun
	failures   BIGINT NOT NULL,
	first_fail BIGINT NOT NULL,
	dead       BIGINT NOT NULL, -- when it was given up, 0: it is not
	status     BIGINT NOT NULL, -- of the last answer, 0: there was none
	problem    TEXT NOT NULL,
	reply      BLOB NOT NULL,   -- start of the last answer
	UNIQUE (sink, delivery)
);
CREATE INDEX outbox_ready ON outbox (sink, due, seq) WHERE blocked = 0 AND owner = '' AND dead = 0;
CREATE INDEX outbox_claimed ON outbox (sink, owner) WHERE owner <> '';
CREATE INDEX outbox_dead ON outbox (sink, seq) WHERE dead <> 0;

-- The tracking numbers of what waits in the outboxes, as in table numbers.
CREATE TABLE outbox_numbers (
	sink   BIGINT NOT NULL,
	folded TEXT NOT NULL,
	letter BIGINT NOT NULL,
	PRIMARY KEY (sink, folded, letter)
) WITHOUT ROWID;
CREATE INDEX outbox_numbers_of ON outbox_numbers (letter);
