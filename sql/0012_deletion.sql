-- What nobody needs is found without looking for it: whatever takes a need
-- away leaves a note here, and the collector (xet.gc_*() in functions.sql)
-- reviews the notes, under the locks of the rows that they are about.  A note
-- is no verdict: the review may find that the file or xorb is needed.
--
-- A file is needed while it is held, which is what a registration without a
-- repo does, or while a repo has it.  Of files of before nobody knows how they
-- were registered, so all of them are held; see xet.files_release().
--
-- A file without a hash was deleted: nobody finds it, and it goes with its
-- terms and references as fast as the collector comes to it.

ALTER TABLE xet.files
    ALTER COLUMN hash DROP NOT NULL,
    ADD COLUMN held boolean NOT NULL DEFAULT true;

ALTER TABLE xet.files ALTER COLUMN held SET DEFAULT false;


-- Files that somebody has let go of.

CREATE TABLE xet.gc_files (
    file_id  bigint      PRIMARY KEY,
    since    timestamptz NOT NULL DEFAULT now()
);


-- Xorbs that are new, or have lost a reference, since when.

CREATE TABLE xet.gc_xorbs (
    xorb_id  bigint      PRIMARY KEY,
    since    timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX gc_xorbs_since ON xet.gc_xorbs (since, xorb_id);


-- Stored copies whose rows are gone, and whose files are to be removed.

CREATE TABLE xet.gc_copies (
    hash         bytea       NOT NULL,
    tag          integer     NOT NULL,
    stored_size  bigint      NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (hash, tag),
    CHECK (length(hash) = 32)
);


INSERT INTO xet.gc_xorbs (xorb_id, since)
SELECT x.id, x.created_at
  FROM xet.xorbs x
 WHERE NOT EXISTS (SELECT FROM xet.file_xorbs fx WHERE fx.xorb_id = x.id);


-- The notes are made whatever writes.  A note that is there is written again,
-- and not left alone: the collector may be about to drop it, for a need that
-- it still sees and that ends with this transaction.  So either this waits for
-- the collector, or the collector passes over the note.
--
-- In one order everywhere, or two transactions could wait for each other.

CREATE FUNCTION xet.repo_files_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.gc_files AS n (file_id)
    SELECT DISTINCT g.file_id FROM gone g ORDER BY g.file_id
    ON CONFLICT (file_id) DO UPDATE SET since = excluded.since;

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER DELETE ON xet.repo_files
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION xet.repo_files_gone();


CREATE FUNCTION xet.file_xorbs_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.gc_xorbs AS n (xorb_id)
    SELECT DISTINCT g.xorb_id FROM gone g ORDER BY g.xorb_id
    ON CONFLICT (xorb_id) DO UPDATE SET since = excluded.since;

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER DELETE ON xet.file_xorbs
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION xet.file_xorbs_gone();


CREATE FUNCTION xet.xorbs_new()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.gc_xorbs AS n (xorb_id)
    SELECT x.id FROM new x ORDER BY x.id
    ON CONFLICT (xorb_id) DO UPDATE SET since = excluded.since;

    RETURN NULL;
END;
$$;

CREATE TRIGGER new AFTER INSERT ON xet.xorbs
    REFERENCING NEW TABLE AS new
    FOR EACH STATEMENT EXECUTE FUNCTION xet.xorbs_new();


-- A file that was deleted gets no place in a repo: the key of its row is still
-- there, so the reference alone would not tell.  XT003 is "come again".

CREATE OR REPLACE FUNCTION xet.repo_files_place()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    SELECT CASE WHEN r.public THEN NEW.file_id END INTO NEW.public_file
      FROM xet.repos r
     WHERE r.id = NEW.repo_id
       FOR SHARE;

    PERFORM FROM xet.files f
      WHERE f.id = NEW.file_id AND f.hash IS NOT NULL
        FOR KEY SHARE;

    IF NOT FOUND THEN
        RAISE EXCEPTION 'the file was deleted meanwhile'
              USING ERRCODE = 'XT003';
    END IF;

    RETURN NEW;
END;
$$;


CREATE FUNCTION xet.files_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.gc_files AS n (file_id) VALUES (NEW.id)
    ON CONFLICT (file_id) DO UPDATE SET since = excluded.since;

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER UPDATE OF held ON xet.files
    FOR EACH ROW WHEN (OLD.held AND NOT NEW.held)
    EXECUTE FUNCTION xet.files_gone();
