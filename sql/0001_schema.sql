-- The tables of a store: version 1 of the schema "xet".
--
-- "xet migrate" applies this file once, after migrate.sql, which creates the
-- schema and the table xet.migrations.  To change the tables, add a new file,
-- 0002_name.sql, and never edit this file; migrate.sql has the rules.  The
-- functions that the module calls are in the other files.  This file has only
-- the trigger functions, which keep the tables consistent, whatever program
-- writes to them.
--
-- Hashes are the raw 32 bytes.  Integers in packed values are little-endian,
-- as the core writes them.


-- ---------------------------------------------------------------------------
-- The store

-- One row, for the folder or bucket that this database describes.  identity
-- repeats the text of the file "identity" in that folder or bucket.  While
-- confirmed is false, the file may not exist yet.
--
-- tables: tells whether this database knows all copies of the store, except
-- copies that remain after a crash.  Its value is the result of
-- xet.store_tables() at the time when all copies were known.  After a dump is
-- restored, that function returns another value: then a copy without a row may
-- be the only copy of a xorb, and is not an orphan, however old it is.  NULL:
-- "xet rebuild" has started and not finished.
--
-- since: copies older than this time were stored before this database existed.

CREATE TABLE xet.store (
    one        boolean     PRIMARY KEY DEFAULT true CHECK (one),
    identity   text        NOT NULL,
    confirmed  boolean     NOT NULL DEFAULT false,
    tables     text,
    since      timestamptz NOT NULL DEFAULT now()
);


-- Copy ids are allocated in blocks of 256; next is the number of the
-- next block.  The number is in a row, and not in a sequence, because a value
-- of a sequence is not durable before another transaction commits.

CREATE TABLE xet.copy_ids (
    one   bigint  PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    next  bigint  NOT NULL DEFAULT 0,
    salt  uuid    NOT NULL DEFAULT gen_random_uuid()
);

INSERT INTO xet.copy_ids DEFAULT VALUES;


-- Advances when xorbs that a client may remember were lost, or can no longer be
-- referred to by everyone who could: xet.clients_forget() and
-- xet.token_epoch() in store.sql.

CREATE SEQUENCE xet.epochs;


-- Counts the commits after which callers could no longer refer to chunks of a
-- repo: xet.hide().  Unlike a sequence, the row changes with the commit.

CREATE TABLE xet.hidings (
    one     bigint  PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    number  bigint  NOT NULL DEFAULT 1
);

INSERT INTO xet.hidings DEFAULT VALUES;


-- The callers, each a repo and a subject, whose last shard referred to an
-- unknown xorb, and when: they get a new epoch.

CREATE TABLE xet.refused (
    caller  bytea       PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),

    CHECK (length(caller) = 32)
);


-- Results of statements that may be retried, because their session was lost
-- before the response arrived.  The worker draws an id for each such
-- statement.  A retried statement returns the recorded result and changes
-- nothing (xet.act_said() in base.sql).  Old rows are swept.

CREATE TABLE xet.acts (
    act   bytea       PRIMARY KEY,
    at    timestamptz NOT NULL DEFAULT now(),
    said  jsonb       NOT NULL,

    CHECK (length(act) BETWEEN 8 AND 32)
);

-- rows are inserted in chronological order, so this BRIN index is tiny

CREATE INDEX acts_at ON xet.acts USING brin (at) WITH (pages_per_range = 4);


-- ---------------------------------------------------------------------------
-- Xorbs and chunks

-- One row per xorb, with its complete chunk list: 40 bytes per chunk.  A row
-- is inserted only after the bytes of the xorb are durable under its name.
--
-- The hash of a xorb covers its chunks, but not their encoding.  So the row
-- identifies the stored copy that it describes.  copy_id is in the name of the
-- copy's file, and in the terms that refer to the copy; the name of a copy
-- with copy id 0 has no copy id.  digest is the XXH3 of the copy's bytes.
--
-- advertised_on: the last day on which a dedup response named the xorb.
-- Clients cache such responses and refer to the xorb without an upload.  So
-- the collector keeps the xorb until these cache entries have expired.
--
-- damaged_at: the time at which the copy was found missing, truncated or
-- damaged.  New files must not refer to the xorb until it is healed.

CREATE TABLE xet.xorbs (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash           bytea       NOT NULL UNIQUE,
    chunk_count    integer     NOT NULL,
    raw_size       bigint      NOT NULL,
    stored_size    bigint      NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    chunk_hashes   bytea       NOT NULL,  -- 32 bytes per chunk
    raw_ends       bytea       NOT NULL,  -- u32 per chunk
    stored_ends    bytea       NOT NULL,  -- u32 per chunk
    advertised_on  date,
    copy_id        integer     NOT NULL DEFAULT 0,
    digest         bytea,
    damaged_at     timestamptz,

    -- one constraint, because each takes time in each INSERT

    CHECK (length(hash) = 32
           AND chunk_count BETWEEN 1 AND 8192
           AND length(chunk_hashes) = 32 * chunk_count
           AND length(raw_ends) = 4 * chunk_count
           AND length(stored_ends) = 4 * chunk_count
           AND length(digest) = 16)
);

-- hashes do not compress, and substring() can read slices of uncompressed
-- values only

ALTER TABLE xet.xorbs
    ALTER COLUMN chunk_hashes SET STORAGE EXTERNAL,
    ALTER COLUMN raw_ends SET STORAGE EXTERNAL,
    ALTER COLUMN stored_ends SET STORAGE EXTERNAL;

CREATE INDEX xorbs_damaged ON xet.xorbs (id) WHERE damaged_at IS NOT NULL;


-- The global dedup index.  It has only eligible chunks, about one in a
-- thousand: those with hash mod 1024 = 0, and the first chunk of each file.
--
-- One row per chunk and xorb, with the first index of the chunk in the xorb.
-- A xorb that repeats one chunk 8,191 times has one row, so the cost of a
-- dedup query does not depend on the contents of xorbs.

CREATE TABLE xet.chunks (
    hash     bytea   NOT NULL,
    xorb_id  bigint  NOT NULL,            -- see xet.xorbs_gone()
    idx      integer NOT NULL,

    PRIMARY KEY (hash, xorb_id)
);

CREATE INDEX chunks_xorb ON xet.chunks (xorb_id);


-- Damaged copies that could not be healed, and the time of the next try.  If
-- copy_id differs from copy_id in xet.xorbs, the damaged copy has been
-- replaced.

CREATE TABLE xet.heals (
    xorb_id  bigint      PRIMARY KEY REFERENCES xet.xorbs ON DELETE CASCADE,
    copy_id  integer     NOT NULL,
    tries    integer     NOT NULL,
    next_at  timestamptz NOT NULL
);


-- ---------------------------------------------------------------------------
-- Files and terms

-- One row per file.  packed has the terms of a usual file, 52 bytes each: the
-- hash of the xorb first, the id of its copy last.  So a reconstruction takes
-- one index probe and one row.  If the file has more than 256 terms, packed is
-- NULL and the terms are in xet.terms.
--
-- sha256 is claimed by the uploader; the server may have received only the
-- metadata of the file.  If sha256_proven is set, the server has computed
-- sha256 from the bytes of the file, and may return it as the file's digest.
--
-- A file is in use while held is set, by a registration without a repo, or
-- while a repo has the file.  A file whose hash is NULL was deleted: no
-- request finds it, and the collector removes its terms and references.

CREATE TABLE xet.files (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash           bytea       UNIQUE,
    size           bigint      NOT NULL,
    term_count     bigint      NOT NULL,
    created_at     timestamptz NOT NULL DEFAULT now(),
    sha256         bytea,
    packed         bytea,
    sha256_proven  boolean     NOT NULL DEFAULT false,
    held           boolean     NOT NULL DEFAULT false,

    CHECK (length(hash) = 32
           AND size >= 0
           AND (sha256 IS NULL OR length(sha256) = 32)
           AND (NOT sha256_proven OR sha256 IS NOT NULL)
           AND (packed IS NULL OR length(packed) = 52 * term_count))
);

ALTER TABLE xet.files ALTER COLUMN packed SET STORAGE EXTERNAL;


-- Segments of up to 256 terms of a large file: a request for a byte range of a
-- terabyte reads only the segments of that range.

CREATE TABLE xet.terms (
    file_id       bigint NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    first_offset  bigint NOT NULL,        -- byte offset in the file
    end_offset    bigint NOT NULL,        -- exclusive
    packed        bytea  NOT NULL,

    PRIMARY KEY (file_id, first_offset),
    CHECK (end_offset > first_offset),
    CHECK (length(packed) > 0 AND length(packed) % 52 = 0)
);

ALTER TABLE xet.terms ALTER COLUMN packed SET STORAGE EXTERNAL;


-- The xorbs that a file refers to; a reference keeps the xorb from being
-- collected.  chunks are the ranges of the xorb's chunks that the file uses: a
-- caller who may see the file may know these chunks.

CREATE TABLE xet.file_xorbs (
    file_id  bigint         NOT NULL,     -- see xet.file_xorbs_new()
    xorb_id  bigint         NOT NULL,
    chunks   int4multirange NOT NULL DEFAULT '{}',

    PRIMARY KEY (file_id, xorb_id)
);

-- finds the newest files of a xorb, in order

CREATE INDEX file_xorbs_newest ON xet.file_xorbs (xorb_id, file_id);


-- ---------------------------------------------------------------------------
-- Shards

-- Batches of a shard that is too large for one statement; the statement with
-- the last batch commits all batches.  Old rows, which remain after a crash,
-- are swept.

CREATE TABLE xet.staged (
    upload       bytea       NOT NULL,    -- 16 random bytes
    seq          integer     NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    serials      bigint[]    NOT NULL,    -- file numbers in the upload
    hashes       bytea[]     NOT NULL,
    sizes        bigint[]    NOT NULL,
    sha256       bytea[]     NOT NULL,
    counts       bigint[]    NOT NULL,
    packed       bytea[]     NOT NULL,
    chunks       bytea[]     NOT NULL,
    xorbs        bytea[]     NOT NULL,
    indexes      integer[]   NOT NULL,
    seg_serials  bigint[]    NOT NULL,    -- file numbers of the segments
    seg_firsts   bigint[]    NOT NULL,
    seg_ends     bigint[]    NOT NULL,
    seg_packed   bytea[]     NOT NULL,

    PRIMARY KEY (upload, seq)
);


-- ---------------------------------------------------------------------------
-- Repos and rights

-- With "xet_access repo", a caller sees a file if the token's repo or a public
-- repo has the file.  listed: a public repo of the Hub, whose committed files
-- every caller of the Hub may read by their paths.

CREATE TABLE xet.repos (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL UNIQUE,
    public      boolean     NOT NULL DEFAULT false,
    listed      boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now()
);


-- Files of repos.  public_file repeats file_id if the repo is public: one
-- index look-up tells whether a file is public, however many repos have it.
-- Triggers maintain this column.
--
-- listed_file repeats file_id if the repo is or was listed.  When the repo
-- becomes private, only its own row changes, which readers check.
--
-- subject is the user who put the file into the repo; files have no owner.
-- sha256 is the digest that an upload to the repo claims for the file: a
-- commit of the Hub names its files by this digest.  The claim counts for this
-- repo only, and the server proves it before a commit uses it.  kept is true if
-- the LFS API has acknowledged the file: it stays even if no commit uses it.

CREATE TABLE xet.repo_files (
    repo_id      bigint      NOT NULL,    -- see xet.repo_files_new()
    file_id      bigint      NOT NULL,
    added_at     timestamptz NOT NULL DEFAULT now(),
    public_file  bigint,
    listed_file  bigint,
    subject      bytea,
    sha256       bytea,
    kept         boolean     NOT NULL DEFAULT false,

    PRIMARY KEY (file_id, repo_id),
    CHECK (public_file = file_id
           AND listed_file = file_id
           AND length(subject) = 32)
);

CREATE INDEX repo_files_public ON xet.repo_files (public_file)
    WHERE public_file IS NOT NULL;

CREATE INDEX repo_files_listed ON xet.repo_files (listed_file, repo_id)
    WHERE listed_file IS NOT NULL;

-- Both indexes have both columns, in opposite orders, so a probe of either
-- index finds one row.  Otherwise a cached plan, made while the table was
-- tiny, could scan a whole repo.

CREATE INDEX repo_files_once ON xet.repo_files (repo_id, file_id);

CREATE INDEX repo_files_sha256 ON xet.repo_files (repo_id, sha256)
    WHERE sha256 IS NOT NULL;


-- The repos that have received all bytes of a xorb.  To know the hash of a xorb
-- does not prove to have its bytes: if a chunk is a whole file, the hash of the
-- chunk is a public name.

CREATE TABLE xet.xorb_repos (
    xorb_id  bigint  NOT NULL,            -- see xet.xorbs_gone()
    repo_id  bigint  NOT NULL,            -- see xet.repos_gone()

    PRIMARY KEY (xorb_id, repo_id)
);

-- a second index with both columns, for the reason given at repo_files_once

CREATE INDEX xorb_repos_once ON xet.xorb_repos (repo_id, xorb_id);


-- The subjects that have sent a xorb, or have registered files with chunks of
-- the xorb.  chunks are the ranges of these chunks; [0,) is the whole xorb.
-- subject is the SHA-256 of issuer and subject, since both may be long.

CREATE TABLE xet.xorb_subjects (
    xorb_id  bigint         NOT NULL,     -- see xet.xorbs_gone()
    subject  bytea          NOT NULL,
    chunks   int4multirange NOT NULL,

    PRIMARY KEY (xorb_id, subject),
    CHECK (length(subject) = 32)
);

-- finds the xorbs that a subject sent before and after a xorb; with both
-- columns, for the reason given at repo_files_once

CREATE INDEX xorb_subjects_once ON xet.xorb_subjects (subject, xorb_id);


-- Gives a file that is moved to another repo the visibility of that repo.  The
-- row lock on the repo serializes this statement with a concurrent change of
-- the visibility.
--
-- A deleted file can not be added to a repo, although its row still exists.
-- XT003 means "retry".

CREATE FUNCTION xet.repo_files_place()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    SELECT CASE WHEN r.public THEN NEW.file_id END,
           CASE WHEN r.listed THEN NEW.file_id END
      INTO STRICT NEW.public_file, NEW.listed_file
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

CREATE TRIGGER place BEFORE UPDATE OF repo_id, file_id ON xet.repo_files
    FOR EACH ROW EXECUTE FUNCTION xet.repo_files_place();


-- Updates the files of a repo when the visibility of the repo changes.

CREATE FUNCTION xet.repos_public()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.read_committed();

    UPDATE xet.repo_files rf
       SET public_file = CASE WHEN NEW.public THEN rf.file_id END,
           listed_file = CASE WHEN NEW.listed THEN rf.file_id END
     WHERE rf.repo_id = NEW.id
       AND (rf.public_file IS NULL = NEW.public
            OR rf.listed_file IS NULL = NEW.listed);

    IF OLD.public AND NOT NEW.public THEN
        PERFORM xet.hide();
    END IF;

    RETURN NULL;
END;
$$;

CREATE TRIGGER public AFTER UPDATE ON xet.repos
    FOR EACH ROW WHEN (OLD.public <> NEW.public
                       OR NEW.listed AND NOT OLD.listed)
    EXECUTE FUNCTION xet.repos_public();


-- ---------------------------------------------------------------------------
-- Garbage collection and jobs

-- The collector does not search the store.  When a statement removes a
-- reference, a trigger writes a note to one of the tables xet.gc_*.  The
-- collector (xet.gc_*() in gc.sql) reviews the notes, and locks the rows that
-- they name.  The review may find that the file or xorb is in use.

-- Notes of files that were removed from a repo, or that the store no longer
-- holds.

CREATE TABLE xet.gc_files (
    file_id  bigint      PRIMARY KEY,
    since    timestamptz NOT NULL DEFAULT now()
);


-- Notes of xorbs that are new, or have lost a reference.

CREATE TABLE xet.gc_xorbs (
    xorb_id  bigint      PRIMARY KEY,
    since    timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX gc_xorbs_since ON xet.gc_xorbs (since, xorb_id);


-- Stored copies whose rows are deleted, and whose files must be removed.

CREATE TABLE xet.gc_copies (
    hash         bytea       NOT NULL,
    copy_id      integer     NOT NULL,
    stored_size  bigint      NOT NULL,
    since        timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (hash, copy_id),
    CHECK (length(hash) = 32)
);


-- Background jobs, one per row.  At any time at most one worker of all nodes
-- runs a job.
--
-- holder is the node that has the lease, and until is the end of the lease.
-- turn is incremented each time the lease is taken, so that a worker that has
-- lost the lease can't overwrite the state of the next holder.  cursor is the
-- position at which the current run continues, NULL if no run is in progress.
-- figures are the counts of the current run, or else of the last run.  totals
-- are the counts of all finished runs.

CREATE TABLE xet.jobs (
    name         text        PRIMARY KEY,
    holder       bytea,
    turn         bigint      NOT NULL DEFAULT 0,
    seq          integer     NOT NULL DEFAULT 0,    -- last counted step of turn
    until        timestamptz,
    cursor       text,
    started_at   timestamptz,
    finished_at  timestamptz,
    note         text,               -- why the job waits, or what is left to do
    figures      jsonb       NOT NULL DEFAULT '{}',
    totals       jsonb       NOT NULL DEFAULT '{}',

    CHECK (length(holder) = 16)
) WITH (fillfactor = 50);


-- The following triggers write the notes.  An existing note is written again:
-- the collector may be about to drop the note because it still sees the
-- reference that this transaction removes.  Writing the note makes this
-- transaction wait for the collector, or makes the collector skip the note.
--
-- All statements write notes in the order of ids; otherwise two transactions
-- could deadlock.

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
    INSERT INTO xet.gc_xorbs AS n (xorb_id) VALUES (NEW.id)
    ON CONFLICT (xorb_id) DO UPDATE SET since = excluded.since;

    RETURN NULL;
END;
$$;

CREATE TRIGGER new AFTER INSERT ON xet.xorbs
    FOR EACH ROW EXECUTE FUNCTION xet.xorbs_new();


-- ---------------------------------------------------------------------------
-- Usage and quotas

-- The bytes of a xorb are charged to one repo and one subject, however many
-- use the xorb: first to the repo and the subject that sent the xorb.  When
-- these no longer use the xorb, another repo and subject that use it are
-- charged (xet.usage_settle() in quota.sql).  NULL: nobody is charged.  The
-- charges have their own table because the rows of xet.xorbs are wide.

CREATE TABLE xet.charges (
    xorb_id  bigint PRIMARY KEY,          -- see xet.xorbs_gone()
    repo_id  bigint,
    subject  bytea,
    bytes    bigint NOT NULL,

    CHECK (length(subject) = 32)
);


-- Running sums of the usage, so that a query need not read all files.  owner is
-- the id of a repo, as 8 bytes, or the SHA-256 of a subject.  Concurrent
-- transactions add to different rows of an owner.  Only the sum of these rows
-- is meaningful; a single row may be negative.
--
-- metadata is the approximate size of the Hub rows in the database, including
-- the rows of folders, commits and references (xet.hub_weight() in
-- hub_repos.sql).

CREATE TABLE xet.usage (
    owner     bytea  NOT NULL,
    id        bigint GENERATED ALWAYS AS IDENTITY,
    stored    bigint NOT NULL,
    logical   bigint NOT NULL,
    files     bigint NOT NULL,
    metadata  bigint NOT NULL DEFAULT 0,

    PRIMARY KEY (owner, id)
) WITH (fillfactor = 50);


-- Files that were removed from a repo, and xorbs that the collector has
-- reviewed and kept: their charges must be reviewed.  Transactions only insert
-- rows into this table, so no transaction has to wait.

CREATE TABLE xet.usage_left (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_id  bigint,
    xorb_id  bigint
);


-- Limits in bytes; NULL means no limit.  The owner is the name of a repo, or a
-- subject as issuer, zero byte, subject.  The row with an empty owner has the
-- default for all owners without a row.

CREATE TABLE xet.quotas (
    kind      text   NOT NULL CHECK (kind IN ('repo', 'subject')),
    owner     bytea  NOT NULL,
    stored    bigint CHECK (stored >= 0),
    logical   bigint CHECK (logical >= 0),
    metadata  bigint CHECK (metadata >= 0),

    PRIMARY KEY (kind, owner)
);


-- Updates the stored bytes of repos and subjects in xet.usage when their
-- charges change.  Charges are inserted one by one, and deleted many at a time.

CREATE FUNCTION xet.charges_new()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.usage_add(ARRAY[int8send(NEW.repo_id), NEW.subject], NEW.bytes,
                          0, 0);

    RETURN NULL;
END;
$$;

CREATE TRIGGER count_new AFTER INSERT ON xet.charges
    FOR EACH ROW EXECUTE FUNCTION xet.charges_new();


CREATE FUNCTION xet.charges_count()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.usage_add(ARRAY[int8send(c.repo_id), c.subject], -c.bytes, 0,
                          0)
       FROM (SELECT k.repo_id, k.subject, sum(k.bytes)::bigint AS bytes
               FROM changed k
              GROUP BY k.repo_id, k.subject
             OFFSET 0) c;

    RETURN NULL;
END;
$$;

CREATE TRIGGER count_gone AFTER DELETE ON xet.charges
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.charges_count();


CREATE FUNCTION xet.charges_moved()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.usage_add(ARRAY[int8send(OLD.repo_id), OLD.subject],
                          -OLD.bytes, 0, 0);
    PERFORM xet.usage_add(ARRAY[int8send(NEW.repo_id), NEW.subject], NEW.bytes,
                          0, 0);

    RETURN NULL;
END;
$$;

CREATE TRIGGER moved AFTER UPDATE ON xet.charges
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION xet.charges_moved();


-- Corrects the charge of a healed xorb: the copy that replaces a damaged one
-- may have another size.

CREATE FUNCTION xet.xorbs_healed()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE xet.charges c SET bytes = NEW.stored_size WHERE c.xorb_id = NEW.id;

    RETURN NULL;
END;
$$;

CREATE TRIGGER healed AFTER UPDATE OF stored_size ON xet.xorbs
    FOR EACH ROW WHEN (OLD.stored_size <> NEW.stored_size)
    EXECUTE FUNCTION xet.xorbs_healed();


-- Checks files that are added to repos, and counts their bytes and their number
-- for the repos and the subjects.  This trigger has the place of two foreign
-- keys, and of a trigger for each row: it locks the repos and the files, so
-- that they are neither deleted nor hidden before the commit.  A file gets the
-- visibility of its repo, if the statement that added it did not know better.
--
-- A deleted file can not be added to a repo, although its row still exists.
-- XT003 means "retry".

CREATE FUNCTION xet.repo_files_new()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    a  record;
    r  record;
BEGIN
    FOR a IN
        SELECT k.repo_id, k.subject, sum(f.size)::bigint AS bytes,
               count(f.size) AS n, count(*) AS rows,
               count(k.public_file) AS public, count(k.listed_file) AS listed
          FROM added k
          LEFT JOIN LATERAL (SELECT f.size FROM xet.files f
                              WHERE f.id = k.file_id AND f.hash IS NOT NULL
                             OFFSET 0
                                FOR KEY SHARE) f ON true
         GROUP BY k.repo_id, k.subject
    LOOP
        IF a.n < a.rows THEN
            RAISE EXCEPTION 'the file was deleted meanwhile'
                  USING ERRCODE = 'XT003';
        END IF;

        SELECT k.public, k.listed INTO STRICT r
          FROM xet.repos k
         WHERE k.id = a.repo_id
           FOR SHARE;

        IF a.public <> a.n * r.public::integer
           OR a.listed <> a.n * r.listed::integer
        THEN
            UPDATE xet.repo_files rf
               SET public_file = CASE WHEN r.public THEN rf.file_id END,
                   listed_file = CASE WHEN r.listed THEN rf.file_id END
              FROM added k
             WHERE k.repo_id = a.repo_id
               AND rf.repo_id = k.repo_id AND rf.file_id = k.file_id;
        END IF;

        PERFORM xet.usage_add(ARRAY[int8send(a.repo_id), a.subject], 0,
                              a.bytes, a.n);
    END LOOP;

    RETURN NULL;
END;
$$;

CREATE TRIGGER new AFTER INSERT ON xet.repo_files
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION xet.repo_files_new();


CREATE FUNCTION xet.repo_files_count()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.usage_add(ARRAY[int8send(c.repo_id), c.subject], 0, -c.bytes,
                          -c.n)
       FROM (SELECT k.repo_id, k.subject, sum(f.size)::bigint AS bytes,
                    count(*) AS n
               FROM changed k
              CROSS JOIN LATERAL (SELECT f.size FROM xet.files f
                                   WHERE f.id = k.file_id
                                  OFFSET 0) f
              GROUP BY k.repo_id, k.subject
             OFFSET 0) c;

    INSERT INTO xet.usage_left (file_id)
    SELECT DISTINCT p.file_id FROM changed p;

    RETURN NULL;
END;
$$;

CREATE TRIGGER count_gone AFTER DELETE ON xet.repo_files
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.repo_files_count();


CREATE FUNCTION xet.repo_files_moved()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    was   bigint;
    size  bigint;
BEGIN
    SELECT f.size INTO was FROM xet.files f WHERE f.id = OLD.file_id;
    SELECT f.size INTO size FROM xet.files f WHERE f.id = NEW.file_id;

    PERFORM xet.usage_add(ARRAY[int8send(OLD.repo_id), OLD.subject], 0, -was,
                          -1);
    PERFORM xet.usage_add(ARRAY[int8send(NEW.repo_id), NEW.subject], 0, size,
                          1);

    INSERT INTO xet.usage_left (file_id) VALUES (OLD.file_id);

    RETURN NULL;
END;
$$;

CREATE TRIGGER moved AFTER UPDATE OF repo_id, file_id, subject
    ON xet.repo_files
    FOR EACH ROW WHEN (OLD.repo_id <> NEW.repo_id
                       OR OLD.file_id <> NEW.file_id
                       OR OLD.subject IS DISTINCT FROM NEW.subject)
    EXECUTE FUNCTION xet.repo_files_moved();


-- Foreign keys would check each new row with a query of its own, which takes
-- half of the time of a small upload.  Instead the functions that insert rows
-- lock the xorb or the repo first, which excludes its deletion; so do triggers
-- on the tables whose rows must never refer to a deleted row.  The following
-- triggers run when the lock of a deletion is granted, and see all such rows.

-- The size of a file is needed when the file is removed from its repos, so
-- this trigger runs before the deletion.

CREATE FUNCTION xet.files_places()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.read_committed();

    IF EXISTS (SELECT FROM xet.repo_files rf WHERE rf.file_id = OLD.id) THEN
        DELETE FROM xet.repo_files rf WHERE rf.file_id = OLD.id;
    END IF;

    IF EXISTS (SELECT FROM xet.file_xorbs fx WHERE fx.file_id = OLD.id) THEN
        DELETE FROM xet.file_xorbs fx WHERE fx.file_id = OLD.id;
    END IF;

    RETURN OLD;
END;
$$;

CREATE TRIGGER places BEFORE DELETE ON xet.files
    FOR EACH ROW EXECUTE FUNCTION xet.files_places();


CREATE FUNCTION xet.file_xorbs_new()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF (SELECT count(*) FROM added)
       > (SELECT count(*)
            FROM added a
           CROSS JOIN LATERAL (SELECT FROM xet.files f
                                WHERE f.id = a.file_id
                               OFFSET 0
                                  FOR KEY SHARE) f)
       OR (SELECT count(DISTINCT a.xorb_id) FROM added a)
          > (SELECT count(*)
               FROM (SELECT DISTINCT a.xorb_id FROM added a) a
              CROSS JOIN LATERAL (SELECT FROM xet.xorbs x
                                   WHERE x.id = a.xorb_id
                                  OFFSET 0
                                     FOR KEY SHARE) x)
    THEN
        RAISE EXCEPTION 'a file or a xorb of the reference does not exist'
              USING ERRCODE = 'foreign_key_violation';
    END IF;

    RETURN NULL;
END;
$$;

CREATE TRIGGER new AFTER INSERT ON xet.file_xorbs
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION xet.file_xorbs_new();


CREATE FUNCTION xet.xorbs_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    ids  bigint[] := ARRAY(SELECT g.id FROM gone g);
BEGIN
    PERFORM xet.read_committed();

    IF EXISTS (SELECT FROM xet.file_xorbs fx WHERE fx.xorb_id = ANY (ids)) THEN
        RAISE EXCEPTION 'a file refers to the xorb'
              USING ERRCODE = 'foreign_key_violation';
    END IF;

    DELETE FROM xet.chunks c WHERE c.xorb_id = ANY (ids);
    DELETE FROM xet.xorb_repos o WHERE o.xorb_id = ANY (ids);
    DELETE FROM xet.xorb_subjects o WHERE o.xorb_id = ANY (ids);
    DELETE FROM xet.charges c WHERE c.xorb_id = ANY (ids);

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER DELETE ON xet.xorbs
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION xet.xorbs_gone();


CREATE FUNCTION xet.repos_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    ids  bigint[] := ARRAY(SELECT g.id FROM gone g);
BEGIN
    PERFORM xet.read_committed();

    DELETE FROM xet.repo_files rf WHERE rf.repo_id = ANY (ids);
    DELETE FROM xet.xorb_repos o WHERE o.repo_id = ANY (ids);
    DELETE FROM xet.hub_loose l WHERE l.repo_id = ANY (ids);

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER DELETE ON xet.repos
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION xet.repos_gone();


-- When the collector has reviewed a xorb and kept it, because files refer to
-- the xorb, records that its charge must be reviewed: the charged repo and
-- subject may have none of these files.

CREATE FUNCTION xet.gc_xorbs_reviewed()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.usage_left (xorb_id)
    SELECT c.xorb_id
      FROM reviewed g
      JOIN xet.charges c ON c.xorb_id = g.xorb_id;

    RETURN NULL;
END;
$$;

CREATE TRIGGER reviewed AFTER DELETE ON xet.gc_xorbs
    REFERENCING OLD TABLE AS reviewed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.gc_xorbs_reviewed();


-- ---------------------------------------------------------------------------
-- zTensor

-- Cached results of checking whether a file is a valid zTensor file: the
-- verdict and the positions of objects in the manifest.  The server can
-- recompute these columns from the file; old rows are swept.
--
-- rules identifies the limits and the code version that made the verdict.

CREATE TABLE xet.zt_files (
    file_id     bigint      NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    rules       bigint      NOT NULL,
    checked_at  timestamptz NOT NULL DEFAULT now(),
    verdict     bytea       NOT NULL,     -- src/ztensor/core/xet_zt_cache.c
    attributes  bytea,                    -- root attributes, CBOR

    PRIMARY KEY (file_id, rules)
);


-- Cached results of the verification of an object's data: two bytes per
-- component, in the order of the manifest.

CREATE TABLE xet.zt_reports (
    file_id     bigint      NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    rules       bigint      NOT NULL,
    object      bigint      NOT NULL,     -- index in the manifest
    checked_at  timestamptz NOT NULL DEFAULT now(),
    report      bytea       NOT NULL,

    PRIMARY KEY (file_id, rules, object)
);


-- ---------------------------------------------------------------------------
-- Hub

-- Repos with names, their commits and paths.  Without a Hub these tables are
-- empty.
--
-- A history without branches is a line, which has the commits 1, 2, 3 and so
-- on.  Each row of a path is valid from the commit "since" until before the
-- commit "till".  So a commit writes rows for the paths that it changes and for
-- the folders above them, whatever the size of the repo.  A new branch refers
-- to a commit of an existing line.  If that is not the last commit of the line,
-- the first commit to the branch creates a new line, which continues the
-- existing one ("Lines" in hub_paths.sql).  A bucket is a line with a single
-- commit, which all later operations change.
--
-- All keys start with the repo, so that a distributed PostgreSQL can partition
-- the tables by repo.  The exceptions are the indexes of folders: the planner
-- must not confuse these with the indexes of paths.

-- The repo that a request names, and the rights of the caller.  spaces are the
-- name spaces of the caller in canonical form, which is lower-case ASCII; with
-- any_space the caller has all name spaces.  store is the repo that the
-- caller's token was issued for; with any_store the token is not limited to
-- one repo.  The name space and the token must both allow the access: a token
-- that a Hub issued for a public repo no longer gives access after the repo has
-- become private.  These four fields are always set: a NULL grants nothing and
-- is refused.

CREATE TYPE xet.hub_asked AS (
    kind        integer,
    owner       text,
    name        text,                     -- for lists: part of names, or NULL
    any_space   boolean,
    spaces      text[],
    any_store   boolean,
    store       text
);


-- The response to a request.  status is the HTTP status.  If the response is an
-- error, code and message are those that clients know; otherwise body is the
-- JSON of the body.  The meaning of more depends on the function.  If the
-- response has several parts, rest is the position of the next part.

CREATE TYPE xet.hub_answer AS (
    status      integer,
    code        text,
    message     text,
    body        text,
    more        text,
    rest        text
);


-- Repos of the Hub.  store is a number, from which xet.hub_store() makes the
-- name of the row in xet.repos that uploads to the repo belong to.  The repo
-- gets a new number when it becomes private; no number is reused.
--
-- card is the file README.md of the last commit of main, if its metadata is
-- known.  marks are the values by which lists find the repo, from
-- xet.hub_marks().

CREATE TABLE xet.hub_repos (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        smallint    NOT NULL,     -- model, dataset, space, bucket
    owner       text        NOT NULL,
    name        text        NOT NULL,
    private     boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now(),
    changed_at  timestamptz NOT NULL DEFAULT now(),
    store       bigint      GENERATED ALWAYS AS IDENTITY,
    card        bigint,
    marks       text[],
    bytes       bigint      NOT NULL DEFAULT 0,     -- total of branch main

    CHECK (kind BETWEEN 0 AND 3)
);

CREATE UNIQUE INDEX hub_repos_name
    ON xet.hub_repos (kind, lower(owner), lower(name));

-- indexes for lists of the repos of a kind or an owner, recently changed or
-- created first

CREATE INDEX hub_repos_changed
    ON xet.hub_repos (kind, changed_at DESC, id DESC);

CREATE INDEX hub_repos_owner
    ON xet.hub_repos (kind, lower(owner), changed_at DESC, id DESC);

CREATE INDEX hub_repos_created
    ON xet.hub_repos (kind, created_at DESC, id DESC);

CREATE INDEX hub_repos_owner_created
    ON xet.hub_repos (kind, lower(owner), created_at DESC, id DESC);

CREATE INDEX hub_repos_marks ON xet.hub_repos USING gin (marks);

CREATE UNIQUE INDEX hub_repos_store ON xet.hub_repos (store);


-- Former names of repos.

CREATE TABLE xet.hub_moved (
    kind     smallint NOT NULL,
    owner    text     NOT NULL,           -- in lower case
    name     text     NOT NULL,
    repo_id  bigint   NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,

    PRIMARY KEY (kind, owner, name)
);

CREATE INDEX hub_moved_repo ON xet.hub_moved (repo_id);


-- Lines of commits.  A line continues the lines in bases, the nearest first: of
-- line bases[i], the commits up to number upto[i] count.  branch is the branch
-- that the last commit of the line was made to.

CREATE TABLE xet.hub_lines (
    repo_id  bigint    NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    line     integer   NOT NULL,
    last     integer   NOT NULL,          -- number of the last commit
    files    bigint    NOT NULL DEFAULT 0,          -- total at commit "last"
    bytes    bigint    NOT NULL DEFAULT 0,
    bases    integer[] NOT NULL DEFAULT '{}',
    upto     integer[] NOT NULL DEFAULT '{}',
    branch   text      COLLATE "C",

    PRIMARY KEY (repo_id, line),
    CHECK (cardinality(bases) = cardinality(upto))
);


-- Commits.  upload is a random id from the worker, by which a retried
-- statement finds its commit.  metadata is counted for the subject, as in
-- xet.usage.  files and bytes are the totals of the repo at the commit: a line
-- that continues this commit starts with these totals.

CREATE TABLE xet.hub_commits (
    repo_id   bigint      NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    line      integer     NOT NULL,
    seq       integer     NOT NULL,
    oid       bytea       NOT NULL,
    parent    bytea,
    made_at   timestamptz NOT NULL DEFAULT now(),
    who       text        NOT NULL,
    title     text        NOT NULL,
    message   text        NOT NULL DEFAULT '',
    upload    bytea,
    subject   bytea,
    metadata  bigint      NOT NULL DEFAULT 0,
    files     bigint      NOT NULL DEFAULT 0,
    bytes     bigint      NOT NULL DEFAULT 0,

    PRIMARY KEY (repo_id, line, seq),
    UNIQUE (repo_id, oid),
    CHECK (length(oid) = 20)
);

CREATE INDEX hub_commits_upload ON xet.hub_commits (repo_id, upload)
    WHERE upload IS NOT NULL;

-- finds the user names of all subjects without reading all commits, see
-- xet.subject_names()

CREATE INDEX hub_commits_who ON xet.hub_commits (coalesce(subject, ''), who);


CREATE TABLE xet.hub_refs (
    repo_id  bigint NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    name     text   NOT NULL COLLATE "C", -- heads/main, tags/v1
    oid      bytea  NOT NULL,             -- commit
    subject  bytea,                       -- metadata is counted for it
    message  text,                        -- of a tag

    PRIMARY KEY (repo_id, name)
);


-- Cards: the metadata of files README.md, as JSON; NULL if the file has none.
-- A card is read once for all repos that have the file, and is shown only in
-- these repos.

CREATE TABLE xet.hub_cards (
    file_id  bigint PRIMARY KEY REFERENCES xet.files ON DELETE CASCADE,
    card     text
);


-- Updates the card and the size of a repo when its branch main changes.

CREATE FUNCTION xet.hub_refs_card()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.hub_card_set(NEW.repo_id, NEW.oid);

    RETURN NULL;
END;
$$;

CREATE TRIGGER card AFTER INSERT OR UPDATE OF oid ON xet.hub_refs
    FOR EACH ROW WHEN (NEW.name = 'heads/main')
    EXECUTE FUNCTION xet.hub_refs_card();


-- Files and folders; the hash of a folder is NULL.  The bytes of a hash are in
-- the order of its hash string, see xet.hub_hash().
--
-- subject is the user that the metadata of a row is counted for.  It is set in
-- rows of a bucket, which can be freed one by one.  The rows of a commit are
-- freed only with their repo, and are counted in xet.hub_commits.

CREATE TABLE xet.hub_paths (
    repo_id  bigint  NOT NULL,            -- not a foreign key, see below
    line     integer NOT NULL,
    path     text    NOT NULL COLLATE "C",
    since    integer NOT NULL,            -- number of a commit of the line
    till     integer NOT NULL DEFAULT 2147483647,     -- exclusive
    folder   text    NOT NULL COLLATE "C",            -- parent folder
    hash     bytea,
    size     bigint  NOT NULL DEFAULT 0,
    sha256   bytea,
    made     bytea   NOT NULL,            -- oid of the commit
    made_at  timestamptz NOT NULL DEFAULT now(),
    mtime    timestamptz,                 -- only of files in buckets
    type     text,                        -- media type, only in buckets
    subject  bytea,

    PRIMARY KEY (repo_id, line, path, since)
);

-- A foreign key would check each row, and take a fifth of the time of a large
-- commit.  But all functions that insert rows lock the repo first, which
-- excludes its deletion.

CREATE FUNCTION xet.hub_repos_gone()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    g  record;
BEGIN
    FOR g IN SELECT r.id FROM gone r LOOP
        DELETE FROM xet.hub_paths p WHERE p.repo_id = g.id;
    END LOOP;

    RETURN NULL;
END;
$$;

CREATE TRIGGER gone AFTER DELETE ON xet.hub_repos
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION xet.hub_repos_gone();


CREATE INDEX hub_paths_folder
    ON xet.hub_paths (folder, repo_id, line, path, since);

-- finds whether any path still refers to a file

CREATE INDEX hub_paths_hash ON xet.hub_paths (repo_id, hash)
    WHERE hash IS NOT NULL;

-- Index the rows that are valid at the last commit of a line, by path and by
-- folder.  A path that was committed ten thousand times has ten thousand rows;
-- a page that lists the root folder needs only one of them.

CREATE INDEX hub_paths_now ON xet.hub_paths (repo_id, line, path)
    WHERE till = 2147483647;

CREATE INDEX hub_paths_now_folder
    ON xet.hub_paths (folder, repo_id, line, path)
    WHERE till = 2147483647;

-- Find the rows that a commit began or ended, for xet.hub_changes().  Without
-- the condition, PostgreSQL may use the first one to find a path of a bucket,
-- whose rows all have "since" 0, and reads all of them.

CREATE INDEX hub_paths_since ON xet.hub_paths (repo_id, line, since, path)
    WHERE since > 0;

CREATE INDEX hub_paths_till ON xet.hub_paths (repo_id, line, till, path)
    WHERE till <> 2147483647;

-- finds the few files that xet.hub_manifest() chooses from

CREATE INDEX hub_paths_gguf ON xet.hub_paths (repo_id, line, path)
    WHERE till = 2147483647 AND path LIKE '%.gguf';


-- Operations of a commit that is not complete yet.  Old rows, which a crash of
-- nginx leaves, are swept.  owner is as in xet.usage, and bytes is the size of
-- the row.  An owner with too many bytes must first finish some commits
-- (xet.hub_stage() in hub_uploads.sql).  The table is not logged: PostgreSQL
-- empties it after a crash, and a standby does not have it.  xet.hub_whole()
-- then refuses the commit, and its client sends it again.

CREATE UNLOGGED TABLE xet.hub_staged (
    upload      bytea       NOT NULL,     -- 16 random bytes
    seq         integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    ops         integer[]   NOT NULL,     -- xet_hub_op_e
    paths       text[]      NOT NULL,
    sizes       bigint[]    NOT NULL,
    hashes      bytea[]     NOT NULL,
    sha256      bytea[]     NOT NULL,
    mtimes      bigint[]    NOT NULL,     -- ms since 1970
    types       text[]      NOT NULL,
    sources     text[]      NOT NULL,     -- kind/owner/name
    owner       bytea       NOT NULL DEFAULT '',
    bytes       bigint      NOT NULL DEFAULT 0,

    PRIMARY KEY (upload, seq)
);

CREATE INDEX hub_staged_owner ON xet.hub_staged (owner) INCLUDE (bytes);


-- Files that are possibly not in use by a repo: files that were uploaded and
-- not committed yet, and files that were removed from a bucket.
-- xet.hub_sweep() reviews these rows a day later.

CREATE TABLE xet.hub_loose (
    repo_id  bigint      NOT NULL,        -- see xet.repos_gone()
    file_id  bigint      NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (repo_id, file_id)
);

CREATE INDEX hub_loose_since ON xet.hub_loose (since);


-- Files that are being read for a commit, to prove its claims.  The row keeps
-- another request from reading the same file concurrently.  It expires at the
-- time "until".  The table is not logged: without a row, a file may be read
-- twice.

CREATE UNLOGGED TABLE xet.hub_proofs (
    file_id  bigint      PRIMARY KEY,
    upload   bytea       NOT NULL,
    owner    bytea       NOT NULL,        -- as in xet.usage
    size     bigint      NOT NULL,
    until    timestamptz NOT NULL
);

CREATE INDEX hub_proofs_upload ON xet.hub_proofs (upload);


-- The number of bytes per owner and day that were read in vain: the claim was
-- false, or the client disconnected.

CREATE TABLE xet.hub_vain (
    owner  bytea  PRIMARY KEY,
    day    date   NOT NULL,
    bytes  bigint NOT NULL
);
