-- Who causes what, and how much of it is allowed.
--
-- The bytes of a xorb are charged to one repo and one subject, whoever else
-- uses them: to those that have sent it first, and when they do not use it any
-- more to one that does (xet.usage_settle() in functions.sql).  NULL is nobody.
-- Not in xet.xorbs, whose rows are wide.

CREATE TABLE xet.charges (
    xorb_id  bigint PRIMARY KEY REFERENCES xet.xorbs ON DELETE CASCADE,
    repo_id  bigint,
    subject  bytea,
    bytes    bigint NOT NULL,

    CHECK (length(subject) = 32)
);


-- Files have no owner; a place in a repo has the subject that has made it.

ALTER TABLE xet.repo_files
    ADD COLUMN subject bytea,
    ADD CHECK (length(subject) = 32);


-- Sums, so that nothing has to be added up when somebody asks.  The owner is a
-- repo, by the 8 bytes of its id, or a subject.  It has as many rows as there
-- were transactions at a time that have counted for it, and the sum of them is
-- what counts; one row alone may be below zero.

CREATE TABLE xet.usage (
    owner    bytea  NOT NULL,
    id       bigint GENERATED ALWAYS AS IDENTITY,
    stored   bigint NOT NULL,
    logical  bigint NOT NULL,
    files    bigint NOT NULL,

    PRIMARY KEY (owner, id)
) WITH (fillfactor = 50);


-- Files that a repo has let go of, and xorbs that were reviewed by the
-- collector and stay: who is charged for them is to be looked at.  Rows are
-- only added, so that nobody waits here.

CREATE TABLE xet.usage_left (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    file_id  bigint,
    xorb_id  bigint
);


-- Limits in bytes, NULL is no limit.  A repo by its name, a subject as issuer,
-- a zero byte, subject; an empty owner is for all that have no row.

CREATE TABLE xet.quotas (
    kind     text   NOT NULL CHECK (kind IN ('repo', 'subject')),
    owner    bytea  NOT NULL,
    stored   bigint CHECK (stored >= 0),
    logical  bigint CHECK (logical >= 0),

    PRIMARY KEY (kind, owner)
);


-- What there is.  Of xorbs of before nobody knows who came first: the oldest
-- repo that has sent all of one is charged, and a subject if it is the only one
-- that has.  Nothing is written meanwhile.

LOCK TABLE xet.repos, xet.repo_files, xet.xorbs IN SHARE ROW EXCLUSIVE MODE;

INSERT INTO xet.charges (xorb_id, repo_id, subject, bytes)
SELECT x.id, o.repo_id, s.subject, x.stored_size
  FROM xet.xorbs x
  LEFT JOIN (SELECT o.xorb_id, min(o.repo_id) AS repo_id
               FROM xet.xorb_repos o
              GROUP BY o.xorb_id) o ON o.xorb_id = x.id
  LEFT JOIN (SELECT o.xorb_id, (array_agg(o.subject))[1] AS subject
               FROM xet.xorb_subjects o
              WHERE o.chunks = '{[0,)}'
              GROUP BY o.xorb_id
             HAVING count(*) = 1) s ON s.xorb_id = x.id;

INSERT INTO xet.usage (owner, stored, logical, files)
SELECT u.owner, sum(u.stored), sum(u.logical), sum(u.files)
  FROM (SELECT int8send(c.repo_id) AS owner, sum(c.bytes) AS stored,
               0 AS logical, 0 AS files
          FROM xet.charges c
         WHERE c.repo_id IS NOT NULL
         GROUP BY c.repo_id
        UNION ALL
        SELECT c.subject, sum(c.bytes), 0, 0
          FROM xet.charges c
         WHERE c.subject IS NOT NULL
         GROUP BY c.subject
        UNION ALL
        SELECT int8send(rf.repo_id), 0, sum(f.size), count(*)
          FROM xet.repo_files rf
          JOIN xet.files f ON f.id = rf.file_id
         GROUP BY rf.repo_id) u
 GROUP BY u.owner;


-- Counts in a row that nobody else has locked, and in a new one where all are:
-- so nobody waits for a transaction that takes long, however many count for one
-- owner at a time.

CREATE FUNCTION xet.usage_add(owner bytea, stored bigint, logical bigint,
    files bigint)
    RETURNS void
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    row_id bigint;
BEGIN
    IF $2 = 0 AND $3 = 0 AND $4 = 0 THEN
        RETURN;
    END IF;

    SELECT u.id INTO row_id
      FROM xet.usage u
     WHERE u.owner = $1
     ORDER BY u.id
     LIMIT 1
       FOR NO KEY UPDATE SKIP LOCKED;

    IF row_id IS NULL THEN
        INSERT INTO xet.usage (owner, stored, logical, files)
        VALUES ($1, $2, $3, $4);

    ELSE
        UPDATE xet.usage AS u
           SET stored = u.stored + $2, logical = u.logical + $3,
               files = u.files + $4
         WHERE u.owner = $1 AND u.id = row_id;
    END IF;
END;
$$;


-- The sums are kept by triggers, whatever writes.

CREATE FUNCTION xet.charges_count()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    sign integer := CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    IF NOT EXISTS (SELECT FROM changed) THEN
        RETURN NULL;
    END IF;

    PERFORM xet.usage_add(u.owner, u.stored, 0, 0)
       FROM (SELECT w.owner, (sign * sum(w.bytes))::bigint AS stored
               FROM (SELECT int8send(c.repo_id) AS owner, c.bytes
                       FROM changed c
                      WHERE c.repo_id IS NOT NULL
                     UNION ALL
                     SELECT c.subject, c.bytes
                       FROM changed c
                      WHERE c.subject IS NOT NULL) w
              GROUP BY w.owner) u;

    RETURN NULL;
END;
$$;

CREATE TRIGGER count_new AFTER INSERT ON xet.charges
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.charges_count();

CREATE TRIGGER count_gone AFTER DELETE ON xet.charges
    REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.charges_count();


CREATE FUNCTION xet.charges_moved()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF OLD.repo_id IS NOT NULL THEN
        PERFORM xet.usage_add(int8send(OLD.repo_id), -OLD.bytes, 0, 0);
    END IF;

    IF OLD.subject IS NOT NULL THEN
        PERFORM xet.usage_add(OLD.subject, -OLD.bytes, 0, 0);
    END IF;

    IF NEW.repo_id IS NOT NULL THEN
        PERFORM xet.usage_add(int8send(NEW.repo_id), NEW.bytes, 0, 0);
    END IF;

    IF NEW.subject IS NOT NULL THEN
        PERFORM xet.usage_add(NEW.subject, NEW.bytes, 0, 0);
    END IF;

    RETURN NULL;
END;
$$;

CREATE TRIGGER moved AFTER UPDATE ON xet.charges
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION xet.charges_moved();


-- A copy that takes the place of a damaged one may have another size.

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


-- Places in repos.  The plan may be made while xet.files is empty, and is kept:
-- so no choice is left but the index.

CREATE FUNCTION xet.repo_files_count()
    RETURNS trigger
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    sign integer := CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    IF NOT EXISTS (SELECT FROM changed) THEN
        RETURN NULL;
    END IF;

    PERFORM xet.usage_add(u.owner, 0, (sign * u.logical)::bigint,
                          sign * u.files)
       FROM (SELECT w.owner, sum(w.size) AS logical, count(*) AS files
               FROM (SELECT int8send(p.repo_id) AS owner, f.size
                       FROM changed p
                      CROSS JOIN LATERAL (SELECT f.size FROM xet.files f
                                           WHERE f.id = p.file_id
                                          OFFSET 0) f
                     UNION ALL
                     SELECT p.subject, f.size
                       FROM changed p
                      CROSS JOIN LATERAL (SELECT f.size FROM xet.files f
                                           WHERE f.id = p.file_id
                                          OFFSET 0) f
                      WHERE p.subject IS NOT NULL) w
              GROUP BY w.owner) u;

    IF TG_OP = 'DELETE' THEN
        INSERT INTO xet.usage_left (file_id)
        SELECT DISTINCT p.file_id FROM changed p;
    END IF;

    RETURN NULL;
END;
$$;

CREATE TRIGGER count_new AFTER INSERT ON xet.repo_files
    REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION xet.repo_files_count();

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

    PERFORM xet.usage_add(int8send(OLD.repo_id), 0, -was, -1);
    PERFORM xet.usage_add(int8send(NEW.repo_id), 0, size, 1);

    IF OLD.subject IS NOT NULL THEN
        PERFORM xet.usage_add(OLD.subject, 0, -was, -1);
    END IF;

    IF NEW.subject IS NOT NULL THEN
        PERFORM xet.usage_add(NEW.subject, 0, size, 1);
    END IF;

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


-- The size of a file must be there while its places go.

CREATE FUNCTION xet.files_places()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF EXISTS (SELECT FROM xet.repo_files rf WHERE rf.file_id = OLD.id) THEN
        DELETE FROM xet.repo_files rf WHERE rf.file_id = OLD.id;
    END IF;

    RETURN OLD;
END;
$$;

CREATE TRIGGER places BEFORE DELETE ON xet.files
    FOR EACH ROW EXECUTE FUNCTION xet.files_places();


-- A xorb that the collector has reviewed and that stays, since files need it:
-- it is not certain that one of them is of who is charged.

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
