-- A xorb's hash covers its chunks and not their encoding, so a row says which
-- stored copy it describes: tag is in the name of the copy's file, and in the
-- terms that lead to it; digest is XXH3 of its bytes.  Rows of before have
-- tag 0, which is not in the name, and no digest: nobody knows if such a copy
-- is whole, and the next upload of its xorb takes its place.
--
-- damaged_at: since when a copy is known to be missing, cut or damaged.  Until
-- it is healed nothing new may refer to it.

ALTER TABLE xet.xorbs
    ADD COLUMN tag integer NOT NULL DEFAULT 0,
    ADD COLUMN digest bytea,
    ADD COLUMN damaged_at timestamptz,
    ADD CHECK (length(digest) = 16);

CREATE INDEX xorbs_damaged ON xet.xorbs (id) WHERE damaged_at IS NOT NULL;


-- Packed terms have 52 bytes, the last four are the tag.

DO $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT conrelid::regclass AS name, conname
               FROM pg_constraint
              WHERE conrelid IN ('xet.files'::regclass, 'xet.terms'::regclass)
                AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%48%'
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', c.name, c.conname);
    END LOOP;
END;
$$;

CREATE FUNCTION pg_temp.tagged(packed bytea) RETURNS bytea
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT string_agg(substring(packed FROM 48 * g + 1 FOR 48)
                      || '\x00000000'::bytea, ''::bytea ORDER BY g)
      FROM generate_series(0, length(packed) / 48 - 1) AS g;
$$;

UPDATE xet.files SET packed = pg_temp.tagged(packed) WHERE length(packed) > 0;
UPDATE xet.terms SET packed = pg_temp.tagged(packed);

DELETE FROM xet.staged;

ALTER TABLE xet.files
    ADD CHECK (packed IS NULL OR length(packed) = 52 * term_count);

ALTER TABLE xet.terms
    ADD CHECK (length(packed) > 0 AND length(packed) % 52 = 0);


-- Which folder the rows describe: its file "identity" has the same text.  A
-- row that is not confirmed says that the file may not have been made yet.

CREATE TABLE xet.store (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    identity   text    NOT NULL,
    confirmed  boolean NOT NULL DEFAULT false
);
