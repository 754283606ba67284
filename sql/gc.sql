-- The garbage collector.
--
-- The collector has three steps: it deletes files that are not in use, xorbs
-- that no file refers to, and stored copies without a row.  Each step is a
-- transaction of bounded size, may be repeated, and may run in any number of
-- sessions concurrently.  The notes in xet.gc_* list the rows to check.  The
-- row that a note names is locked first, and then checked by a separate
-- statement, which sees everything committed before the lock was granted.  A
-- transaction that adds a reference to a row locks the row until its commit
-- (xet.shard_stay(), xet.shard_terms(), triggers).  So no reference can be
-- added between the check and the deletion.  The collector does not wait: it
-- skips rows that other sessions have locked, until the next run.


-- Deletes files that are not in use: first their references and terms, as many
-- as a transaction should delete, and then their rows.  The result columns are
-- numbers.  seen: reviewed notes; kept: files in use; busy: files that other
-- sessions have locked; files and bytes: deleted files and their sizes; refs:
-- deleted references and segments of terms.

CREATE FUNCTION xet.gc_files(batch integer)
    RETURNS TABLE (seen bigint, files bigint, bytes bigint, refs bigint,
                   kept bigint, busy bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    recorded bigint[];
    gone  bigint[];
    mine  bigint[];
    dead  bigint[];
    ended bigint[];
    last  record;
    n     bigint;
BEGIN
    SELECT coalesce(array_agg(l.file_id), '{}') INTO recorded
      FROM (SELECT g.file_id FROM xet.gc_files g
             ORDER BY g.file_id
             LIMIT batch
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(l.id), '{}') INTO mine
      FROM (SELECT f.id FROM xet.files f
             WHERE f.id = ANY (recorded)
             ORDER BY f.id
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(f.id), '{}') INTO dead
      FROM xet.files f
     WHERE f.id = ANY (mine) AND NOT f.held
       AND NOT EXISTS (SELECT FROM xet.repo_files rf WHERE rf.file_id = f.id);

    SELECT coalesce(array_agg(u.id), '{}') INTO gone
      FROM unnest(recorded) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.files f WHERE f.id = u.id);

    -- delete the first references in the order of the key

    SELECT l.file_id, l.xorb_id AS place INTO last
      FROM (SELECT d.file_id, d.xorb_id
              FROM xet.file_xorbs d
             WHERE d.file_id = ANY (dead)
             ORDER BY d.file_id, d.xorb_id
             LIMIT 20000) l
     ORDER BY l.file_id DESC, l.xorb_id DESC
     LIMIT 1;

    DELETE FROM xet.file_xorbs fx
     WHERE fx.file_id = ANY (dead)
       AND (fx.file_id, fx.xorb_id) <= (last.file_id, last.place);

    GET DIAGNOSTICS refs = ROW_COUNT;

    SELECT l.file_id, l.first_offset AS place INTO last
      FROM (SELECT d.file_id, d.first_offset
              FROM xet.terms d
             WHERE d.file_id = ANY (dead)
             ORDER BY d.file_id, d.first_offset
             LIMIT 2000) l
     ORDER BY l.file_id DESC, l.first_offset DESC
     LIMIT 1;

    DELETE FROM xet.terms t
     WHERE t.file_id = ANY (dead)
       AND (t.file_id, t.first_offset) <= (last.file_id, last.place);

    GET DIAGNOSTICS n = ROW_COUNT;

    refs := refs + n;

    SELECT coalesce(array_agg(u.id), '{}') INTO ended
      FROM unnest(dead) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.file_xorbs fx WHERE fx.file_id = u.id)
       AND NOT EXISTS (SELECT FROM xet.terms t WHERE t.file_id = u.id);

    WITH ends AS (
        DELETE FROM xet.files f WHERE f.id = ANY (ended) RETURNING f.size
    )
    SELECT count(*), coalesce(sum(e.size), 0)::bigint INTO files, bytes
      FROM ends e;

    -- a file whose deletion is not complete yet has lost references, so no
    -- request may find it

    UPDATE xet.files f SET hash = NULL
     WHERE f.id = ANY (dead) AND f.hash IS NOT NULL;

    DELETE FROM xet.gc_files g
     WHERE g.file_id = ANY (recorded)
       AND (g.file_id = ANY (ended) OR g.file_id = ANY (gone)
            OR (g.file_id = ANY (mine) AND g.file_id <> ALL (dead)));

    seen := cardinality(recorded);
    kept := cardinality(mine) - cardinality(dead);
    busy := cardinality(recorded) - cardinality(mine) - cardinality(gone);

    RETURN NEXT;

-- Transactions that write notes in several statements may deadlock with each
-- other or with this one.  The batch is then left for the next run.

EXCEPTION WHEN deadlock_detected THEN
    RETURN QUERY
    SELECT z, z, z, z, z, z FROM int8(0) AS z;
END;
$$;


-- Deletes xorbs that no file refers to, and that no client still has in a
-- cache.  At least grace seconds must have passed since the xorb was stored or
-- lost its last reference, and since the end of the day on which the xorb was
-- last advertised.  With a grace of 0, advertised xorbs are deleted as well.
-- xet.gc_copies() then returns the copies of deleted xorbs.
--
-- The result columns are numbers.  needed: xorbs that files refer to;
-- advertised: xorbs that were advertised too recently; busy: xorbs that other
-- sessions have locked; bytes: stored bytes of the deleted xorbs.

CREATE FUNCTION xet.gc_xorbs(grace bigint, batch integer)
    RETURNS TABLE (seen bigint, xorbs bigint, bytes bigint, needed bigint,
                   advertised bigint, busy bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    recorded bigint[];
    gone  bigint[];
    mine  bigint[];
    free  bigint[];
    late  bigint[];
    dead  bigint[];
    born  timestamptz := now() - grace * interval '1 second';
BEGIN
    SELECT coalesce(array_agg(l.xorb_id), '{}') INTO recorded
      FROM (SELECT g.xorb_id FROM xet.gc_xorbs g
             WHERE g.since <= CASE WHEN grace > 0 THEN born
                                   ELSE 'infinity' END
             ORDER BY g.since, g.xorb_id
             LIMIT batch
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(l.id), '{}') INTO mine
      FROM (SELECT x.id FROM xet.xorbs x
             WHERE x.id = ANY (recorded)
             ORDER BY x.id
               FOR UPDATE SKIP LOCKED) l;

    -- OFFSET 0 forces one look-up per xorb: a join might scan the whole table

    SELECT coalesce(array_agg(u.id), '{}') INTO free
      FROM unnest(mine) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.file_xorbs fx
                        WHERE fx.xorb_id = u.id
                       OFFSET 0);

    SELECT coalesce(array_agg(x.id), '{}') INTO late
      FROM xet.xorbs x
     WHERE x.id = ANY (free) AND grace > 0
       AND xet.day_ends(x.advertised_on) > born;

    SELECT coalesce(array_agg(u.id), '{}') INTO dead
      FROM unnest(free) AS u(id)
     WHERE u.id <> ALL (late);

    SELECT coalesce(array_agg(u.id), '{}') INTO gone
      FROM unnest(recorded) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x WHERE x.id = u.id OFFSET 0);

    UPDATE xet.gc_xorbs g SET since = xet.day_ends(x.advertised_on)
      FROM xet.xorbs x
     WHERE x.id = ANY (late) AND g.xorb_id = x.id;

    INSERT INTO xet.gc_copies (hash, copy_id, stored_size)
    SELECT x.hash, x.copy_id, x.stored_size FROM xet.xorbs x
     WHERE x.id = ANY (dead)
    ON CONFLICT DO NOTHING;

    -- a client may remember a xorb for 49 days (docs/clients.md)

    IF grace < 56 * 86400
       AND EXISTS (SELECT FROM xet.xorbs x
                     JOIN xet.gc_xorbs g ON g.xorb_id = x.id
                    WHERE x.id = ANY (dead)
                      AND greatest(g.since, xet.day_ends(x.advertised_on))
                          > now() - interval '56 days')
    THEN
        PERFORM xet.clients_forget();
    END IF;

    WITH ends AS (
        DELETE FROM xet.xorbs x WHERE x.id = ANY (dead)
        RETURNING x.stored_size
    )
    SELECT count(*), coalesce(sum(e.stored_size), 0)::bigint INTO xorbs, bytes
      FROM ends e;

    DELETE FROM xet.gc_xorbs g
     WHERE g.xorb_id = ANY (recorded)
       AND (g.xorb_id = ANY (dead) OR g.xorb_id = ANY (gone)
            OR (g.xorb_id = ANY (mine) AND g.xorb_id <> ALL (free)));

    seen := cardinality(recorded);
    needed := cardinality(mine) - cardinality(free);
    advertised := cardinality(late);
    busy := cardinality(recorded) - cardinality(mine) - cardinality(gone);

    RETURN NEXT;

-- Transactions that write notes in several statements may deadlock with each
-- other or with this one.  The batch is then left for the next run.

EXCEPTION WHEN deadlock_detected THEN
    RETURN QUERY
    SELECT z, z, z, z, z, z FROM int8(0) AS z;
END;
$$;


-- Returns up to batch copies whose files must be removed, in the order of the
-- store's folders.  Returns no copies during a backup, which takes the advisory
-- lock in shared mode before its snapshot: a copy in the snapshot is returned
-- only after the backup has ended.  A backup that starts after this statement
-- has a snapshot without the rows of these copies.
--
-- Also returns no copies if this database was restored from a dump, and nobody
-- has confirmed that the store belongs to this database (xet.store_suspects()).
-- The original database may still use a copy that this database does not use.

CREATE FUNCTION xet.gc_copies(batch integer)
    RETURNS TABLE (hash bytea, copy_id integer, stored_size bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0)
        OR EXISTS (SELECT FROM xet.store s
                    WHERE s.tables IS DISTINCT FROM xet.store_tables())
    THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT g.hash, g.copy_id, g.stored_size
      FROM xet.gc_copies g
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x
                        WHERE x.hash = g.hash AND x.copy_id = g.copy_id)
     ORDER BY g.hash, g.copy_id
     LIMIT batch;
END;
$$;


-- Records that the files of copies were removed durably.  Returns the number
-- of notes that were dropped, and the bytes of their copies.

CREATE FUNCTION xet.gc_removed(hashes bytea[], copy_ids integer[])
    RETURNS TABLE (copies bigint, bytes bigint)
    LANGUAGE sql
AS $$
    WITH gone AS (
        DELETE FROM xet.gc_copies g
         USING unnest($1, $2) AS u(hash, copy_id)
         WHERE g.hash = u.hash AND g.copy_id = u.copy_id
        RETURNING g.stored_size
    )
    SELECT count(*), coalesce(sum(g.stored_size), 0)::bigint FROM gone g;
$$;


-- Runs one step of the collector for a server, which may retry the statement:
-- a retry returns the recorded result of the first try.  Columns that do not
-- apply to the step are NULL.

CREATE FUNCTION xet.gc_once(act bytea, step text, batch integer,
    grace bigint DEFAULT NULL, hashes bytea[] DEFAULT NULL,
    copy_ids integer[] DEFAULT NULL)
    RETURNS TABLE (seen bigint, busy bigint, files bigint, xorbs bigint,
                   copies bigint, bytes bigint, refs bigint, advertised bigint,
                   needed bigint)
    LANGUAGE plpgsql
AS $$
DECLARE
    said  jsonb := xet.act_said(act);
BEGIN
    IF said IS NULL THEN
        CASE step
        WHEN 'files' THEN
            SELECT to_jsonb(g) INTO said FROM xet.gc_files(batch) g;
        WHEN 'xorbs' THEN
            SELECT to_jsonb(g) INTO said FROM xet.gc_xorbs(grace, batch) g;
        WHEN 'removed' THEN
            SELECT to_jsonb(g) INTO said
              FROM xet.gc_removed(hashes, copy_ids) g;
        WHEN 'settle' THEN
            said := jsonb_build_object('seen', xet.usage_settle(batch));
        END CASE;

        PERFORM xet.act_note(act, said)
          WHERE coalesce(said->>'seen', said->>'copies') <> '0';
    END IF;

    RETURN QUERY
    SELECT s.*
      FROM jsonb_to_record(said)
               AS s(seen bigint, busy bigint, files bigint, xorbs bigint,
                    copies bigint, bytes bigint, refs bigint, advertised bigint,
                    needed bigint);
END;
$$;


-- Returns a preview of a collection: the files that are not in use, the xorbs
-- that would be deleted, and why other xorbs without references are kept.

CREATE FUNCTION xet.gc_preview(grace bigint)
    RETURNS TABLE (files bigint, file_bytes bigint, xorbs bigint,
                   xorb_bytes bigint, young bigint, young_bytes bigint,
                   advertised bigint, advertised_bytes bigint, copies bigint,
                   copy_bytes bigint)
    LANGUAGE sql STABLE
AS $$
    WITH dead AS MATERIALIZED (
        SELECT f.id, f.size
          FROM xet.gc_files g
          JOIN xet.files f ON f.id = g.file_id
         WHERE NOT f.held
           AND NOT EXISTS (SELECT FROM xet.repo_files rf
                            WHERE rf.file_id = f.id)
    ), recorded AS MATERIALIZED (
        SELECT n.xorb_id, max(n.since) AS since
          FROM (SELECT g.xorb_id, g.since FROM xet.gc_xorbs g
                UNION ALL
                SELECT fx.xorb_id, now()
                  FROM dead d
                  JOIN xet.file_xorbs fx ON fx.file_id = d.id) n
         GROUP BY n.xorb_id
    ), free AS MATERIALIZED (
        SELECT x.stored_size,
               CASE WHEN $1 > 0 AND n.since > b.born THEN 'young'
                    WHEN $1 > 0 AND xet.day_ends(x.advertised_on) > b.born
                    THEN 'advertised'
                    ELSE 'dead'
               END AS why
          FROM recorded n
          JOIN xet.xorbs x ON x.id = n.xorb_id
         CROSS JOIN (SELECT now() - $1 * interval '1 second' AS born) b
         WHERE NOT EXISTS (SELECT FROM xet.file_xorbs fx
                            WHERE fx.xorb_id = n.xorb_id
                              AND fx.file_id NOT IN (SELECT d.id
                                                       FROM dead d))
    )
    SELECT (SELECT count(*) FROM dead),
           (SELECT coalesce(sum(d.size), 0)::bigint FROM dead d),
           count(*) FILTER (WHERE f.why = 'dead'),
           coalesce(sum(f.stored_size) FILTER (WHERE f.why = 'dead'),
                    0)::bigint,
           count(*) FILTER (WHERE f.why = 'young'),
           coalesce(sum(f.stored_size) FILTER (WHERE f.why = 'young'),
                    0)::bigint,
           count(*) FILTER (WHERE f.why = 'advertised'),
           coalesce(sum(f.stored_size) FILTER (WHERE f.why = 'advertised'),
                    0)::bigint,
           (SELECT count(*) FROM xet.gc_copies),
           (SELECT coalesce(sum(c.stored_size), 0)::bigint
              FROM xet.gc_copies c)
      FROM free f;
$$;


-- Deletes old rows: staged rows of crashed uploads, recorded results of
-- statements, and cached checks of zTensor files.  Also reviews charges of
-- xorbs, and files that no commit of the Hub uses.  Call this function
-- regularly, for example from cron.  Returns the number of deleted rows of
-- xet.staged.

CREATE FUNCTION xet.sweep(age interval DEFAULT '1 day',
    zt_age interval DEFAULT '90 days')
    RETURNS bigint
    LANGUAGE sql
AS $$
    DELETE FROM xet.zt_files WHERE checked_at < now() - zt_age;
    DELETE FROM xet.zt_reports WHERE checked_at < now() - zt_age;

    SELECT xet.usage_settle(1000);
    SELECT xet.usage_forget();
    SELECT xet.hub_sweep(age, 10000);

    DELETE FROM xet.acts WHERE at < now() - age;
    DELETE FROM xet.refused WHERE at < now() - interval '60 days';

    WITH gone AS (
        DELETE FROM xet.staged WHERE created_at < now() - age RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;
