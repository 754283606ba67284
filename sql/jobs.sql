-- Functions for background jobs.  At any time one worker of all nodes runs a
-- job, under a lease.  The lease uses the clock of PostgreSQL, and only saves
-- work: two workers may run the same job without harm.  Any of these functions
-- may be called twice, since a statement whose session is lost is retried.

CREATE FUNCTION xet.figures_sum(a jsonb, b jsonb)
    RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(jsonb_object_agg(k, coalesce((a->>k)::numeric, 0)
                                        + coalesce((b->>k)::numeric, 0)),
                    '{}')
      FROM (SELECT jsonb_object_keys(a) AS k
            UNION
            SELECT jsonb_object_keys(b)) AS keys;
$$;


-- Returns the number of milliseconds until a job can be taken; 0 means now.  A
-- node may take a lease that it already holds: then the worker that took the
-- lease has exited.

CREATE FUNCTION xet.job_wait(c xet.jobs, holder bytea, every bigint)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    due timestamptz;
BEGIN
    -- no lease is longer than an hour: ignore a lease that ends later

    IF c.holder <> holder AND c.until > at
       AND c.until <= at + interval '1 hour'
    THEN
        due := c.until;

    ELSIF c.cursor IS NULL AND c.started_at <= at THEN
        due := c.started_at + every * interval '1 ms';
    END IF;

    RETURN greatest(0, coalesce(ceil(extract(epoch FROM due - at) * 1000), 0));
END;
$$;


-- Takes the lease of a job for "lease" milliseconds, if no other node has the
-- lease, and a run is in progress or due.  A run that a worker has released,
-- or whose worker has died, continues at its cursor.  A run starts every
-- "every" milliseconds.  wait is 0 if the lease was taken; otherwise it is the
-- number of milliseconds until the next try.

CREATE FUNCTION xet.job_take(name text, holder bytea, every bigint,
    lease bigint)
    RETURNS TABLE (wait bigint, the_turn bigint, the_cursor text,
                   begins boolean)
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
DECLARE
    c xet.jobs;
BEGIN
    SELECT * INTO c FROM xet.jobs x WHERE x.name = name;

    IF NOT FOUND THEN
        INSERT INTO xet.jobs (name) VALUES (name) ON CONFLICT DO NOTHING;
    END IF;

    wait := xet.job_wait(c, holder, every);

    IF wait = 0 THEN
        SELECT * INTO c FROM xet.jobs x WHERE x.name = name FOR UPDATE;

        wait := xet.job_wait(c, holder, every);
    END IF;

    IF wait = 0 THEN
        begins := c.cursor IS NULL;

        UPDATE xet.jobs x
           SET holder = holder, turn = c.turn + 1, seq = 0,
               until = clock_timestamp() + lease * interval '1 ms',
               cursor = coalesce(c.cursor, ''),
               started_at = CASE WHEN begins THEN clock_timestamp()
                                 ELSE c.started_at END,
               note = CASE WHEN begins THEN NULL ELSE c.note END,
               figures = CASE WHEN begins THEN '{}' ELSE c.figures END
         WHERE x.name = name
        RETURNING x.turn, x.cursor INTO the_turn, the_cursor;
    END IF;

    RETURN NEXT;
END;
$$;


-- Extends the lease, and records the progress of the run.  seq is the number
-- of a step; a retry with the same number does not add figures again.  A lease
-- of 0 releases the job, so that another node may continue the run; note says
-- why this node stops.  Returns false if another node has the lease, or if the
-- run has ended.

CREATE FUNCTION xet.job_keep(name text, holder bytea, turn bigint,
    seq integer, lease bigint, cursor text, figures text, note text)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.jobs c
       SET holder = CASE WHEN lease > 0 THEN holder END,
           until = clock_timestamp() + lease * interval '1 ms',
           cursor = cursor, seq = seq, note = note,
           figures = CASE WHEN c.seq < seq
                          THEN xet.figures_sum(c.figures, figures::jsonb)
                          ELSE c.figures END
     WHERE c.name = name AND c.turn = turn AND c.cursor IS NOT NULL
       AND (c.holder = holder OR c.holder IS NULL AND lease = 0);

    RETURN FOUND;
END;
$$;


-- Ends a complete run; note says what was left undone, and why.  Returns false
-- if another worker has taken the lease.

CREATE FUNCTION xet.job_done(name text, holder bytea, turn bigint,
    figures text, note text)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.jobs c
       SET holder = NULL, until = NULL, cursor = NULL, note = note,
           finished_at = clock_timestamp(),
           figures = xet.figures_sum(c.figures, figures::jsonb),
           totals = xet.figures_sum(c.totals, xet.figures_sum(c.figures,
                                                          figures::jsonb))
     WHERE c.name = name AND c.turn = turn AND c.holder = holder
       AND c.cursor IS NOT NULL;

    -- only this statement ends the turn: if the turn has no cursor, an earlier
    -- try of the statement has ended it

    RETURN FOUND OR EXISTS (SELECT FROM xet.jobs c
                             WHERE c.name = name AND c.turn = turn
                               AND c.cursor IS NULL);
END;
$$;


-- Starts the next run of a job now, for operators.  Returns false if a run is
-- in progress, or if the job has never run.

CREATE FUNCTION xet.job_now(name text)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.jobs c SET started_at = NULL
     WHERE c.name = name AND c.cursor IS NULL;

    RETURN FOUND;
END;
$$;


-- Starts the next run of the collector and of the search for orphans now, for
-- "xet gc".  Returns false if a run of the collector is in progress: that run
-- may already be past the rows that "xet gc" wants to collect, so the caller
-- repeats this call after the run.  A note that says why the collector waits is
-- deleted, so that the next note is reported.

CREATE FUNCTION xet.gc_now()
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.jobs (name) VALUES ('gc') ON CONFLICT DO NOTHING;

    UPDATE xet.jobs c SET note = NULL
     WHERE c.name = 'gc' AND c.note IS NOT NULL;

    PERFORM xet.job_now('orphans');

    RETURN xet.job_now('gc');
END;
$$;


-- Returns the state of all jobs, one row per job.  figures are the counts of
-- the run in progress, or else of the last run; totals are the counts of all
-- runs, including the run in progress.

CREATE FUNCTION xet.jobs_show()
    RETURNS TABLE (name text, running boolean, held boolean,
                   started_at timestamptz, finished_at timestamptz,
                   note text, figures jsonb, totals jsonb)
    LANGUAGE sql STABLE
AS $$
    SELECT c.name, c.cursor IS NOT NULL,
           c.holder IS NOT NULL AND c.until > now(), c.started_at,
           c.finished_at, c.note, c.figures,
           CASE WHEN c.cursor IS NULL THEN c.totals
                ELSE xet.figures_sum(c.totals, c.figures) END
      FROM xet.jobs c
     ORDER BY c.name;
$$;


-- Returns the state of all jobs for the status page: times in ms since 1970, 0
-- if unknown; done, how much of the run is complete, in thousandths, -1 if
-- unknown.  The cursor of "scrub" and "heal" is an id of xet.xorbs, the cursor
-- of "gc" one of five phases, the last one with a folder of 256.  A backup and
-- a migration are no jobs, but they have a lock of their session.

CREATE FUNCTION xet.jobs_progress()
    RETURNS TABLE (name text, running boolean, held boolean, started bigint,
                   ended bigint, done bigint, note text)
    LANGUAGE sql STABLE
AS $$
    SELECT c.name, c.cursor IS NOT NULL,
           c.holder IS NOT NULL AND c.until > now(),
           coalesce(extract(epoch FROM c.started_at) * 1000, 0)::bigint,
           coalesce(extract(epoch FROM c.finished_at) * 1000, 0)::bigint,
           CASE WHEN c.cursor IS NULL OR c.name = 'orphans' THEN -1
                WHEN c.name = 'gc'
                THEN least(1000, (p.major * 256 + p.minor) * 1000 / 1280)
                ELSE least(1000, p.major * 1000 / greatest(1, p.most))
           END,
           coalesce(c.note, '')
      FROM xet.jobs c,
           LATERAL (SELECT coalesce(substring(c.cursor FROM '^\d{1,15}'),
                                    '0')::bigint AS major,
                           coalesce(('x' || substring(c.cursor FROM
                                     '\.([0-9a-f]{2})$'))::bit(8)::integer,
                                    0)::bigint AS minor,
                           (SELECT max(x.id) FROM xet.xorbs x) AS most) AS p
    UNION ALL
    SELECT w.name, true, true, 0, 0, -1, ''
      FROM (VALUES ('backup', hashtext('xet.copies'), 2, 'ShareLock'),
                   ('migration', hashtext('xet.migrations'), 1,
                    'ExclusiveLock')) AS w (name, key, keys, mode)
     WHERE EXISTS (SELECT FROM pg_locks l
                    WHERE l.locktype = 'advisory' AND l.granted
                      AND l.mode = w.mode AND l.objsubid = w.keys
                      AND l.database = (SELECT d.oid FROM pg_database d
                                         WHERE d.datname = current_database())
                      AND CASE w.keys WHEN 2 THEN l.classid ELSE l.objid END
                          = (w.key::bigint & 4294967295)::oid
                      AND (w.keys = 1 OR l.objid = 0))
     ORDER BY 1;
$$;


-- Returns the next 8 copies to read after the id "after", in the order of
-- ids; skips copies known to be damaged (xet.heal_next()).  For a row without
-- a digest, ends_sha256 is the SHA-256 of its stored_ends, which the copy must
-- match.

CREATE FUNCTION xet.scrub_next(after bigint)
    RETURNS TABLE (id bigint, hash bytea, copy_id integer, stored_size bigint,
                   digest bytea, ends_sha256 bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT x.id, x.hash, x.copy_id, x.stored_size, x.digest,
           CASE WHEN x.digest IS NULL THEN sha256(x.stored_ends) END
      FROM xet.xorbs x
     WHERE x.id > after AND x.damaged_at IS NULL
     ORDER BY x.id
     LIMIT 8;
$$;


-- Returns the next 8 copies that are known to be damaged and are due for
-- another try to heal them; the columns are those of xet.scrub_next().

CREATE FUNCTION xet.heal_next(after bigint)
    RETURNS TABLE (id bigint, hash bytea, copy_id integer, stored_size bigint,
                   digest bytea, ends_sha256 bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT x.id, x.hash, x.copy_id, x.stored_size, x.digest,
           CASE WHEN x.digest IS NULL THEN sha256(x.stored_ends) END
      FROM xet.xorbs x
      LEFT JOIN xet.heals h ON h.xorb_id = x.id AND h.copy_id = x.copy_id
     WHERE x.id > after AND x.damaged_at IS NOT NULL
       AND (h.next_at IS NULL OR h.next_at <= now()
            OR h.next_at > now() + interval '1 hour')
     ORDER BY x.id
     LIMIT 8;
$$;


-- Records that a copy could not be healed.  The next try is after a minute,
-- and the delay doubles with each try, up to an hour.  Returns false if the
-- row now describes another copy.

CREATE FUNCTION xet.heal_later(id bigint, copy_id integer)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO xet.heals AS h (xorb_id, copy_id, tries, next_at)
    SELECT x.id, x.copy_id, 1, now() + interval '1 minute'
      FROM xet.xorbs x
     WHERE x.id = id AND x.copy_id = copy_id
    ON CONFLICT ON CONSTRAINT heals_pkey DO UPDATE
       SET copy_id = excluded.copy_id,
           tries = CASE WHEN h.copy_id = excluded.copy_id
                        THEN least(h.tries + 1, 10) ELSE 1 END,
           next_at = now() + least(interval '1 hour', interval '1 minute'
               * 2 ^ CASE WHEN h.copy_id = excluded.copy_id
                          THEN h.tries ELSE 0 END)
     WHERE h.copy_id <> excluded.copy_id OR h.next_at <= now()
           OR h.next_at > now() + interval '1 hour';

    -- if the next try is already scheduled, this statement is a retry, and the
    -- failure must not be counted a second time

    RETURN EXISTS (SELECT FROM xet.heals h
                    WHERE h.xorb_id = id AND h.copy_id = heal_later.copy_id);
END;
$$;


-- --------------------------------------------------------------------------
-- Figures for metrics.

-- Returns one part of the figures of all files and xorbs: the numbers and sums
-- of the next "part" rows of each table.  last_file and last_xorb are the last
-- ids, for the next call; NULL at the end of the table.  No statement reads
-- all rows, which would take too long for a metric.  Damaged xorbs and repos
-- are counted up to a limit beyond which the exact number does not matter.

CREATE FUNCTION xet.figures(after_file bigint, after_xorb bigint, part integer)
    RETURNS TABLE (files bigint, file_bytes bigint, last_file bigint,
                   xorbs bigint, raw bigint, stored bigint, last_xorb bigint,
                   damaged bigint, repos bigint, waiting bigint, gc_at bigint,
                   gc_xorbs bigint, gc_bytes bigint, scrub_at bigint,
                   scrub_bytes bigint, scrub_damaged bigint, healed bigint,
                   orphans bigint, gc_orphans bigint, gc_orphan_bytes bigint,
                   names bigint, metadata bigint, staged bigint)
    LANGUAGE sql
    STABLE
AS $$
    SELECT f.alive, f.bytes, CASE WHEN f.n >= part THEN f.last END,
           x.n, x.raw, x.stored, CASE WHEN x.n >= part THEN x.last END,
           (SELECT count(*)
              FROM (SELECT FROM xet.xorbs d
                     WHERE d.damaged_at IS NOT NULL LIMIT 10000) AS d),
           (SELECT count(*) FROM (SELECT FROM xet.repos LIMIT 10000) AS r),
           (SELECT count(*) FROM (SELECT FROM xet.gc_copies LIMIT 10000) AS w),
           c.*,
           (SELECT coalesce(sum(t.reltuples) FILTER (WHERE t.reltuples > 0),
                            0)::bigint
              FROM pg_class t
             WHERE t.oid IN ('xet.hub_paths'::regclass,
                             'xet.hub_commits'::regclass,
                             'xet.hub_refs'::regclass)),
           (SELECT coalesce(sum(m.metadata) FILTER (WHERE length(m.owner) = 8),
                            0)::bigint
              FROM (SELECT u.owner, u.metadata FROM xet.usage u
                     LIMIT 200000) AS m),
           (SELECT coalesce(sum(g.bytes), 0)::bigint
              FROM (SELECT s.bytes FROM xet.hub_staged s LIMIT 10000) AS g)
      FROM (SELECT count(*) AS n, count(p.hash) AS alive, max(p.id) AS last,
                   coalesce(sum(p.size) FILTER (WHERE p.hash IS NOT NULL),
                            0)::bigint AS bytes
              FROM (SELECT a.id, a.hash, a.size FROM xet.files a
                     WHERE a.id > after_file
                     ORDER BY a.id LIMIT part) AS p) AS f,
           (SELECT count(*) AS n, coalesce(sum(p.raw_size), 0)::bigint AS raw,
                   coalesce(sum(p.stored_size), 0)::bigint AS stored,
                   max(p.id) AS last
              FROM (SELECT b.id, b.raw_size, b.stored_size FROM xet.xorbs b
                     WHERE b.id > after_xorb
                     ORDER BY b.id LIMIT part) AS p) AS x,
           (SELECT max(k.ended) FILTER (WHERE k.name = 'gc'),
                   max(k.totals->>'xorbs') FILTER (WHERE k.name = 'gc')::bigint,
                   max(k.totals->>'copy_bytes')
                       FILTER (WHERE k.name = 'gc')::bigint,
                   max(k.ended) FILTER (WHERE k.name = 'scrub'),
                   max(k.totals->>'bytes')
                       FILTER (WHERE k.name = 'scrub')::bigint,
                   max(k.totals->>'damaged')
                       FILTER (WHERE k.name = 'scrub')::bigint,
                   max(k.totals->>'healed')
                       FILTER (WHERE k.name = 'heal')::bigint,
                   max(k.figures->>'orphans')
                       FILTER (WHERE k.name = 'orphans')::bigint,
                   max(k.totals->>'orphans')
                       FILTER (WHERE k.name = 'gc')::bigint,
                   max(k.totals->>'orphan_bytes')
                       FILTER (WHERE k.name = 'gc')::bigint
              FROM (SELECT h.name, h.figures,
                           (extract(epoch FROM h.finished_at)
                            * 1000)::bigint AS ended,
                           CASE WHEN h.cursor IS NULL THEN h.totals
                                ELSE xet.figures_sum(h.totals, h.figures)
                           END AS totals
                      FROM xet.jobs h) AS k) AS c;
$$;
