-- Quotas and usage.
--
-- 0001_schema.sql describes what is counted, and for whom.  A limit is checked
-- at the end of a transaction that adds to the limited sum.  The check locks
-- the repo and the subject until the commit.  So it sees all earlier
-- transactions, and two transactions cannot both pass if they exceed the limit
-- together.  Without a limit no lock is taken.  Each transaction locks first
-- the repo, then the subject, and takes no lock after that, so there are no
-- deadlocks.
--
-- XT004: the limit is exceeded.  The detail has the kind, the name of the
-- limit, its value, the amount that was used before this transaction, and the
-- amount that it adds.


-- Returns the limits of a repo or of a subject (issuer, zero byte, subject),
-- from its row if there is one, else from the default row.

CREATE FUNCTION xet.quota_of(kind text, owner bytea)
    RETURNS TABLE (stored bigint, logical bigint, metadata bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT q.stored, q.logical, q.metadata
      FROM xet.quotas q
     WHERE q.kind = $1 AND q.owner IN ($2, '')
     ORDER BY length(q.owner) DESC
     LIMIT 1;
$$;


-- Returns true if any limit is set; otherwise an upload needs no check in
-- advance.

CREATE FUNCTION xet.quota_any()
    RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT EXISTS (SELECT FROM xet.quotas);
$$;


-- Returns the sums of an owner; they are zero if nothing was counted.

CREATE FUNCTION xet.usage_of(owner bytea)
    RETURNS TABLE (stored bigint, logical bigint, files bigint,
                   metadata bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT coalesce(sum(u.stored), 0)::bigint,
           coalesce(sum(u.logical), 0)::bigint,
           coalesce(sum(u.files), 0)::bigint,
           coalesce(sum(u.metadata), 0)::bigint
      FROM xet.usage u
     WHERE u.owner = $1;
$$;


-- Adds to the sums of owners, some of which may be NULL: to a row of each owner
-- that no other transaction has locked, or to a new row if all are locked.  So
-- no transaction waits for a long one, however many transactions count for one
-- owner concurrently.

CREATE FUNCTION xet.usage_add(owners bytea[], stored bigint, logical bigint,
    files bigint, metadata bigint DEFAULT 0)
    RETURNS void
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    key  bytea;
BEGIN
    IF $2 = 0 AND $3 = 0 AND $4 = 0 AND $5 = 0 THEN
        RETURN;
    END IF;

    FOREACH key IN ARRAY array_remove(owners, NULL) LOOP

        UPDATE xet.usage AS u
           SET stored = u.stored + $2, logical = u.logical + $3,
               files = u.files + $4, metadata = u.metadata + $5
         WHERE u.owner = key
           AND u.id = (SELECT l.id FROM xet.usage l
                        WHERE l.owner = key
                        ORDER BY l.id
                        LIMIT 1
                          FOR NO KEY UPDATE SKIP LOCKED);

        IF NOT FOUND THEN
            INSERT INTO xet.usage (owner, stored, logical, files, metadata)
            VALUES (key, $2, $3, $4, $5);
        END IF;
    END LOOP;
END;
$$;


-- Raises XT004 if the added amounts exceed a limit of the owner.  counted:
-- whether the sums already include these amounts.

CREATE FUNCTION xet.quota_check(kind text, owner bytea, key bytea,
    stored bigint, logical bigint, counted boolean, metadata bigint DEFAULT 0)
    RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    most   record;
    used   record;
    mine   integer := CASE WHEN counted THEN 1 ELSE 0 END;
    what   text;
    most_n bigint;
    used_n bigint;
    more_n bigint;
BEGIN
    SELECT q.* INTO most FROM xet.quota_of($1, $2) q;

    IF NOT FOUND OR (($4 = 0 OR most.stored IS NULL)
                     AND ($5 = 0 OR most.logical IS NULL)
                     AND ($7 = 0 OR most.metadata IS NULL))
    THEN
        RETURN;
    END IF;

    IF counted THEN
        PERFORM pg_advisory_xact_lock(hashtext('xet.quota.' || $1),
                                      hashtext(encode($3, 'hex')));
    END IF;

    -- a separate statement, which sees everything committed before the lock

    SELECT u.* INTO used FROM xet.usage_of($3) u;

    used.stored := used.stored - mine * $4;
    used.logical := used.logical - mine * $5;
    used.metadata := used.metadata - mine * $7;

    IF $4 > 0 AND $4 > most.stored - used.stored THEN
        what := 'stored';
        most_n := most.stored;
        used_n := used.stored;
        more_n := $4;

    ELSIF $5 > 0 AND $5 > most.logical - used.logical THEN
        what := 'logical';
        most_n := most.logical;
        used_n := used.logical;
        more_n := $5;

    ELSIF $7 > 0 AND $7 > most.metadata - used.metadata THEN
        what := 'metadata';
        most_n := most.metadata;
        used_n := used.metadata;
        more_n := $7;

    ELSE
        RETURN;
    END IF;

    RAISE EXCEPTION 'the quota of a % is exceeded', $1
          USING ERRCODE = 'XT004',
                DETAIL = format('%s %s %s %s %s', $1, what, most_n,
                                greatest(used_n, 0), more_n);
END;
$$;


-- Checks the limits of a repo and a subject, as the last step of a transaction
-- that has added bytes for them.  A transaction may also call this function
-- with counted = false before it writes its rows: then a refusal wastes no
-- work.

CREATE FUNCTION xet.quota_hold(any_repo boolean, repo text, subject bytea,
    stored bigint, logical bigint, metadata bigint DEFAULT 0,
    counted boolean DEFAULT true)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RAISE EXCEPTION 'bytes have no repo' USING ERRCODE = '22004';
    END IF;

    IF NOT EXISTS (SELECT FROM xet.quotas) THEN
        RETURN;
    END IF;

    IF NOT any_repo THEN
        PERFORM xet.quota_check('repo', convert_to($2, 'UTF8'),
                                int8send(xet.repo_row($2)), $4, $5, $7, $6);
    END IF;

    IF subject IS NOT NULL THEN
        PERFORM xet.quota_check('subject', $3, sha256($3), $4, $5, $7, $6);
    END IF;
END;
$$;


-- Calls xet.quota_hold() for a shard, with the bytes of the files that the
-- shard has added to the repo: their entries have the start time of this
-- transaction.

CREATE FUNCTION xet.quota_shard(last xet.staged, any_repo boolean, repo text,
    repo_row bigint, subject bytea)
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_mergejoin = off
AS $$
DECLARE
    added bigint;
BEGIN
    SELECT sum(f.size) INTO added
      FROM (SELECT DISTINCT h.hash
              FROM xet.shard_batches($1) b, unnest(b.hashes) AS h(hash)) h
      JOIN xet.files f ON f.hash = h.hash
      JOIN xet.repo_files rf ON rf.file_id = f.id AND rf.repo_id = $4
     WHERE rf.added_at = now();

    PERFORM xet.quota_hold($2, $3, $5, 0, coalesce(added, 0));
END;
$$;


-- Raises XT004 if these amounts would exceed a limit now.  repo or subject is
-- NULL if it has no limit; row_id is NULL if the repo does not exist.

CREATE FUNCTION xet.quota_try(repo text, row_id bigint, subject bytea,
    stored bigint, logical bigint, metadata bigint DEFAULT 0)
    RETURNS void
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF repo IS NOT NULL THEN
        PERFORM xet.quota_check('repo', convert_to($1, 'UTF8'),
                                int8send(coalesce($2, -1)), $4, $5, false, $6);
    END IF;

    IF subject IS NOT NULL THEN
        PERFORM xet.quota_check('subject', $3, sha256($3), $4, $5, false, $6);
    END IF;
END;
$$;


-- Checks the announced size of an upload before its body is read: raises XT004
-- if these bytes would exceed a limit now.  Returns false if any_repo or repo
-- is NULL.  For "stored", hash is a xorb, which costs nothing if the repo has
-- sent it.  For "logical", hash is a file, or NULL if unknown; the file costs
-- nothing if the repo has it.  A xorb that only other repos have sent counts
-- here like a new xorb.  It costs nothing at the commit, when its bytes have
-- been sent: a caller who knows only the hash must not learn that the xorb is
-- stored.

CREATE FUNCTION xet.quota_look(what text, size bigint, hash bytea,
    any_repo boolean, repo text, subject bytea)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_variable
DECLARE
    stored  bigint := CASE WHEN what = 'stored' THEN size ELSE 0 END;
    logical bigint := CASE WHEN what = 'logical' THEN size ELSE 0 END;
    row_id  bigint;
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RETURN false;
    END IF;

    SELECT r.id INTO row_id FROM xet.repos r WHERE r.name = repo;

    IF what = 'stored' THEN
        IF EXISTS (SELECT FROM xet.xorbs x
                    WHERE x.hash = $3
                      AND (any_repo
                           OR EXISTS (SELECT FROM xet.xorb_repos o
                                       WHERE o.xorb_id = x.id
                                         AND o.repo_id = row_id)))
        THEN
            RETURN true;
        END IF;

    ELSIF any_repo
          OR EXISTS (SELECT FROM xet.repo_files rf
                      WHERE rf.repo_id = row_id
                        AND rf.file_id = (SELECT f.id FROM xet.files f
                                           WHERE f.hash = $3))
    THEN
        RETURN true;
    END IF;

    PERFORM xet.quota_try(CASE WHEN NOT any_repo THEN repo END, row_id,
                          subject, stored, logical);

    RETURN true;
END;
$$;


-- Sets the limits of a repo or of a subject, for administrators.
--
-- NULL means no limit; if all limits are NULL, the row is deleted.  A NULL
-- owner sets the default for all owners without a row.  The repo need not
-- exist yet.

CREATE FUNCTION xet.quota_set(kind text, owner text, issuer text,
    stored bigint, logical bigint, metadata bigint DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    key bytea := '';
BEGIN
    IF $2 IS NOT NULL THEN
        key := convert_to($2, 'UTF8');

        IF $1 = 'subject' THEN
            key := convert_to(coalesce($3, ''), 'UTF8') || '\x00' || key;
        END IF;
    END IF;

    DELETE FROM xet.quotas q WHERE q.kind = $1 AND q.owner = key;

    IF $4 IS NULL AND $5 IS NULL AND $6 IS NULL THEN
        RETURN FOUND;
    END IF;

    INSERT INTO xet.quotas (kind, owner, stored, logical, metadata)
    VALUES ($1, key, $4, $5, $6)
    ON CONFLICT (kind, owner) DO UPDATE
       SET stored = excluded.stored, logical = excluded.logical,
           metadata = excluded.metadata;

    RETURN true;
END;
$$;


-- Returns the usage of a repo and a subject, and their limits.

CREATE FUNCTION xet.usage_get(any_repo boolean, repo text, subject bytea)
    RETURNS TABLE (kind text, stored bigint, logical bigint, files bigint,
                   stored_max bigint, logical_max bigint, metadata bigint,
                   metadata_max bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT o.kind, u.stored, u.logical, u.files, q.stored, q.logical,
           u.metadata, q.metadata
      FROM (SELECT 'repo' AS kind, convert_to($2, 'UTF8') AS owner,
                   int8send(coalesce((SELECT r.id FROM xet.repos r
                                       WHERE r.name = $2), -1)) AS key
             WHERE NOT $1 AND $2 IS NOT NULL
            UNION ALL
            SELECT 'subject', $3, sha256($3)
             WHERE $1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL) o
     CROSS JOIN LATERAL xet.usage_of(o.key) u
      LEFT JOIN LATERAL xet.quota_of(o.kind, o.owner) q ON true;
$$;


-- Returns the names of subjects.  key is the hash of a subject, which is all
-- that most tables have of it.  The name of a subject with limits of its own is
-- issuer, slash and subject, and owner is its row in xet.quotas.  The name of
-- another subject is the user name in its commits.  The tokens that the Hub
-- gives to a user may have no issuer, so the user name without an issuer is a
-- subject, too.
--
-- The recursion reads one row for each name: it jumps from name to name in the
-- index hub_commits_who, however many commits a user has made.

CREATE FUNCTION xet.subject_names()
    RETURNS TABLE (key bytea, owner bytea, name text)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    WITH RECURSIVE names AS (
        (SELECT coalesce(c.subject, '') AS subject, c.who
           FROM xet.hub_commits c
          ORDER BY coalesce(c.subject, ''), c.who
          LIMIT 1)
        UNION ALL
        SELECT k.subject, k.who
          FROM names n
         CROSS JOIN LATERAL (SELECT coalesce(c.subject, '') AS subject, c.who
                               FROM xet.hub_commits c
                              WHERE (coalesce(c.subject, ''), c.who)
                                    > (n.subject, n.who)
                              ORDER BY coalesce(c.subject, ''), c.who
                              LIMIT 1) k
    )
    SELECT DISTINCT ON (a.key) a.key, a.owner, a.name
      FROM (SELECT sha256(q.owner) AS key, q.owner,
                   replace(encode(q.owner, 'escape'), '\000', '/') AS name
              FROM xet.quotas q
             WHERE q.kind = 'subject'
            UNION ALL
            SELECT k.key, NULL, n.who
              FROM names n,
                   unnest(ARRAY[n.subject, sha256('\x00' ||
                          convert_to(n.who, 'UTF8'))]) k (key)
             WHERE n.who <> '') a
     ORDER BY a.key, a.owner, a.name;
$$;


-- Lists the usage of all repos, and of the subjects with any usage.  A subject
-- without a known name is shown by its hash in hexadecimal.

CREATE FUNCTION xet.usage_list()
    RETURNS TABLE (kind text, name text, stored bigint, logical bigint,
                   files bigint, stored_max bigint, logical_max bigint,
                   metadata bigint, metadata_max bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    WITH owners AS (
        SELECT 'repo' AS kind, r.name, convert_to(r.name, 'UTF8') AS owner,
               int8send(r.id) AS key
          FROM xet.repos r
        UNION ALL
        SELECT 'subject', coalesce(n.name, encode(u.owner, 'hex')),
               coalesce(n.owner, u.owner), u.owner
          FROM (SELECT DISTINCT u.owner FROM xet.usage u
                 WHERE length(u.owner) = 32) u
          LEFT JOIN xet.subject_names() n ON n.key = u.owner
    )
    SELECT o.kind, o.name, u.stored, u.logical, u.files, q.stored, q.logical,
           u.metadata, q.metadata
      FROM owners o
     CROSS JOIN LATERAL xet.usage_of(o.key) u
      LEFT JOIN LATERAL xet.quota_of(o.kind, o.owner) q ON true
     WHERE o.kind = 'repo' OR u.stored <> 0 OR u.logical <> 0 OR u.files <> 0
        OR u.metadata <> 0;
$$;


-- Returns the totals of the store: bytes of xorbs, and bytes of files; also
-- the stored bytes that nobody is charged for, and the stored bytes that a
-- collection would free now.

CREATE FUNCTION xet.usage_total()
    RETURNS TABLE (xorbs bigint, stored bigint, files bigint, logical bigint,
                   nobodys bigint, garbage bigint)
    LANGUAGE sql STABLE
AS $$
    SELECT c.xorbs, c.stored, f.files, f.logical, c.nobodys,
           g.xorb_bytes + g.copy_bytes
      FROM (SELECT count(*) AS xorbs,
                   coalesce(sum(c.bytes), 0)::bigint AS stored,
                   coalesce(sum(c.bytes) FILTER (WHERE c.repo_id IS NULL
                                                 AND c.subject IS NULL),
                            0)::bigint AS nobodys
              FROM xet.charges c) c,
           (SELECT count(*) AS files,
                   coalesce(sum(f.size), 0)::bigint AS logical
              FROM xet.files f
             WHERE f.hash IS NOT NULL) f,
           xet.gc_preview('0') g;
$$;


-- Recounts everything and corrects wrong sums; returns a row for each corrected
-- sum, with the difference.  All counts are made in one statement, whose
-- snapshot has matching sums and rows, so uploads may continue.
--
-- Before the recount, inserts missing charges of xorbs, for example of rows
-- that were inserted manually, and corrects charges of the wrong size.

CREATE FUNCTION xet.usage_recount()
    RETURNS TABLE (kind text, name text, stored bigint, logical bigint,
                   files bigint, metadata bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO xet.charges (xorb_id, bytes)
    SELECT x.id, x.stored_size FROM xet.xorbs x
     WHERE NOT EXISTS (SELECT FROM xet.charges c WHERE c.xorb_id = x.id)
    ON CONFLICT DO NOTHING;

    UPDATE xet.charges c SET bytes = x.stored_size
      FROM xet.xorbs x
     WHERE x.id = c.xorb_id AND c.bytes <> x.stored_size;

    INSERT INTO xet.usage_left (xorb_id)
    SELECT c.xorb_id FROM xet.charges c
     WHERE c.repo_id IS NULL
       AND EXISTS (SELECT FROM xet.file_xorbs fx
                     JOIN xet.repo_files rf ON rf.file_id = fx.file_id
                    WHERE fx.xorb_id = c.xorb_id);

    RETURN QUERY
    WITH wrong AS MATERIALIZED (
        SELECT w.owner, sum(w.stored)::bigint AS stored,
               sum(w.logical)::bigint AS logical,
               sum(w.files)::bigint AS files,
               sum(w.metadata)::bigint AS metadata
          FROM (SELECT int8send(c.repo_id) AS owner, c.bytes AS stored,
                       0 AS logical, 0 AS files, 0 AS metadata
                  FROM xet.charges c
                 WHERE c.repo_id IS NOT NULL
                UNION ALL
                SELECT c.subject, c.bytes, 0, 0, 0
                  FROM xet.charges c
                 WHERE c.subject IS NOT NULL
                UNION ALL
                SELECT int8send(rf.repo_id), 0, f.size, 1, 0
                  FROM xet.repo_files rf
                  JOIN xet.files f ON f.id = rf.file_id
                UNION ALL
                SELECT rf.subject, 0, f.size, 1, 0
                  FROM xet.repo_files rf
                  JOIN xet.files f ON f.id = rf.file_id
                 WHERE rf.subject IS NOT NULL
                UNION ALL
                SELECT int8send(r.id), 0, 0, 0, m.bytes
                  FROM xet.hub_metadata() m
                  JOIN xet.hub_repos h ON h.id = m.repo_id
                  JOIN xet.repos r ON r.name = xet.hub_store(h.store)
                UNION ALL
                SELECT m.subject, 0, 0, 0, m.bytes
                  FROM xet.hub_metadata() m
                 WHERE m.subject IS NOT NULL
                UNION ALL
                SELECT u.owner, -u.stored, -u.logical, -u.files, -u.metadata
                  FROM xet.usage u) w
         GROUP BY w.owner
        HAVING sum(w.stored) <> 0 OR sum(w.logical) <> 0 OR sum(w.files) <> 0
            OR sum(w.metadata) <> 0
    ), mended AS MATERIALIZED (
        SELECT w.*, xet.usage_add(ARRAY[w.owner], w.stored, w.logical,
                                  w.files, w.metadata)
          FROM wrong w
    )
    SELECT CASE length(m.owner) WHEN 8 THEN 'repo' ELSE 'subject' END,
           coalesce(r.name, n.name, encode(m.owner, 'hex')), m.stored,
           m.logical, m.files, m.metadata
      FROM mended m
      LEFT JOIN xet.repos r ON int8send(r.id) = m.owner
      LEFT JOIN xet.subject_names() n ON n.key = m.owner;
END;
$$;


-- Reviews the charges of the xorbs that xet.usage_left notes, and charges a
-- repo and a subject that use each xorb.  The charge of a xorb that nobody
-- uses is unchanged until the xorb is collected.  Returns the number of notes
-- reviewed; 0 means that no notes are left.
--
-- The work of a call is bounded; otherwise a call could time out each time and
-- the review would never finish.  Only the 1000 oldest and the 1000 newest
-- files of a xorb are checked: any repo and subject found there use the xorb.
-- A call takes at most batch notes, which cover fewer than 2 * batch xorbs.
-- The note of a file with more than batch xorbs is replaced by notes of its
-- xorbs.

CREATE FUNCTION xet.usage_settle(batch integer)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    recorded bigint[] := '{}';
    ids   bigint[] := '{}';
    used  bigint[];
    note  record;
    c     record;
    heir  record;
BEGIN
    FOR note IN SELECT l.id, l.file_id, l.xorb_id FROM xet.usage_left l
                 ORDER BY l.id
                 LIMIT batch
                   FOR UPDATE SKIP LOCKED
    LOOP
        EXIT WHEN cardinality(ids) >= batch;

        used := ARRAY[note.xorb_id];

        IF note.file_id IS NOT NULL THEN
            used := ARRAY(SELECT fx.xorb_id FROM xet.file_xorbs fx
                           WHERE fx.file_id = note.file_id
                           LIMIT batch + 1);
        END IF;

        IF cardinality(used) > batch THEN
            INSERT INTO xet.usage_left (xorb_id)
            SELECT fx.xorb_id FROM xet.file_xorbs fx
             WHERE fx.file_id = note.file_id;

            used := '{}';
        END IF;

        recorded := recorded || note.id;
        ids := ids || used;
    END LOOP;

    DELETE FROM xet.usage_left l WHERE l.id = ANY (recorded);

    FOR c IN SELECT o.xorb_id, o.repo_id, o.subject FROM xet.charges o
              WHERE o.xorb_id = ANY (ids)
              ORDER BY o.xorb_id
                FOR NO KEY UPDATE
    LOOP
        SELECT rf.repo_id, rf.subject INTO heir
          FROM ((SELECT fx.file_id FROM xet.file_xorbs fx
                  WHERE fx.xorb_id = c.xorb_id
                  ORDER BY fx.xorb_id, fx.file_id
                  LIMIT 1000)
                UNION
                (SELECT fx.file_id FROM xet.file_xorbs fx
                  WHERE fx.xorb_id = c.xorb_id
                  ORDER BY fx.xorb_id DESC, fx.file_id DESC
                  LIMIT 1000)) f
          JOIN xet.repo_files rf ON rf.file_id = f.file_id
         ORDER BY rf.repo_id IS DISTINCT FROM c.repo_id,
                  rf.subject IS DISTINCT FROM c.subject,
                  rf.file_id, rf.repo_id
         LIMIT 1;

        IF FOUND THEN
            UPDATE xet.charges o
               SET repo_id = heir.repo_id, subject = heir.subject
             WHERE o.xorb_id = c.xorb_id
               AND (o.repo_id IS DISTINCT FROM heir.repo_id
                    OR o.subject IS DISTINCT FROM heir.subject);
        END IF;
    END LOOP;

    RETURN cardinality(recorded);
END;
$$;


-- Deletes the rows of deleted repos whose sums are zero: the bytes of such a
-- repo have been collected, or other repos are charged for them.  Rows that
-- other transactions have locked are kept.  The deleted rows add up to zero, so
-- a transaction that counts for such a repo in another row stays correct.

CREATE FUNCTION xet.usage_forget()
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    gone record;
    ids  bigint[];
    n    bigint := 0;
BEGIN
    IF NOT has_table_privilege('xet.usage', 'DELETE') THEN
        RETURN 0;
    END IF;

    FOR gone IN SELECT u.owner FROM xet.usage u
                 WHERE length(u.owner) = 8
                   AND NOT EXISTS (SELECT FROM xet.repos r
                                    WHERE r.id = ('x' || encode(u.owner, 'hex'))
                                                 ::bit(64)::bigint)
                 GROUP BY u.owner
                HAVING sum(u.stored) = 0 AND sum(u.logical) = 0
                   AND sum(u.files) = 0 AND sum(u.metadata) = 0
                 LIMIT 1000
    LOOP
        SELECT array_agg(l.id) INTO ids
          FROM (SELECT u.* FROM xet.usage u
                 WHERE u.owner = gone.owner
                 ORDER BY u.id
                   FOR UPDATE SKIP LOCKED) l
        HAVING sum(l.stored) = 0 AND sum(l.logical) = 0 AND sum(l.files) = 0
           AND sum(l.metadata) = 0;

        DELETE FROM xet.usage u
         WHERE u.owner = gone.owner AND u.id = ANY (ids);

        n := n + coalesce(cardinality(ids), 0);
    END LOOP;

    RETURN n;
END;
$$;
