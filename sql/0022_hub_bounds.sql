-- Bytes of metadata are counted as bytes of content are: what the rows of a Hub
-- take of the database, rows of folders, commits and references included
-- (xet.hub_weight() in functions.sql).

ALTER TABLE xet.usage ADD COLUMN metadata bigint NOT NULL DEFAULT 0;

ALTER TABLE xet.quotas
    ADD COLUMN metadata bigint,
    ADD CHECK (metadata >= 0);


-- For whom they are counted, as in xet.usage: a row of a bucket is freed alone,
-- the rows of a commit only with their repo.

ALTER TABLE xet.hub_commits
    ADD COLUMN subject bytea,
    ADD COLUMN metadata bigint NOT NULL DEFAULT 0;

ALTER TABLE xet.hub_refs ADD COLUMN subject bytea;

ALTER TABLE xet.hub_paths ADD COLUMN subject bytea;


DROP FUNCTION xet.usage_add(bytea, bigint, bigint, bigint);

CREATE FUNCTION xet.usage_add(owner bytea, stored bigint, logical bigint,
    files bigint, metadata bigint DEFAULT 0)
    RETURNS void
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    row_id bigint;
BEGIN
    IF $2 = 0 AND $3 = 0 AND $4 = 0 AND $5 = 0 THEN
        RETURN;
    END IF;

    SELECT u.id INTO row_id
      FROM xet.usage u
     WHERE u.owner = $1
     ORDER BY u.id
     LIMIT 1
       FOR NO KEY UPDATE SKIP LOCKED;

    IF row_id IS NULL THEN
        INSERT INTO xet.usage (owner, stored, logical, files, metadata)
        VALUES ($1, $2, $3, $4, $5);

    ELSE
        UPDATE xet.usage AS u
           SET stored = u.stored + $2, logical = u.logical + $3,
               files = u.files + $4, metadata = u.metadata + $5
         WHERE u.owner = $1 AND u.id = row_id;
    END IF;
END;
$$;


-- The files that are being read for a commit, to prove what it claims of them:
-- so that none is read twice at once.  The row of a commit that nobody hears of
-- any more is good for nothing when its time is over.

CREATE TABLE xet.hub_proofs (
    file_id  bigint      PRIMARY KEY,
    upload   bytea       NOT NULL,
    owner    bytea       NOT NULL,        -- as of xet.usage
    size     bigint      NOT NULL,
    until    timestamptz NOT NULL
);

CREATE INDEX hub_proofs_upload ON xet.hub_proofs (upload);


-- How many bytes were read in vain for somebody on a day: what he claimed was
-- false, or he left.

CREATE TABLE xet.hub_vain (
    owner  bytea  PRIMARY KEY,
    day    date   NOT NULL,
    bytes  bigint NOT NULL
);
