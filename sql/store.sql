-- The folder or the bucket that the rows describe, and copies in it that have
-- no row.


-- The identity of the folder that the rows describe; with one given, that one
-- where there is none yet.  No row: none was given, and there is none.

CREATE FUNCTION xet.store_claim(identity text)
    RETURNS TABLE (the_identity text, confirmed boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    IF identity IS NOT NULL AND NOT EXISTS (SELECT FROM xet.store) THEN
        INSERT INTO xet.store AS s (identity, tables)
        VALUES (identity, xet.store_tables())
        ON CONFLICT DO NOTHING;
    END IF;

    RETURN QUERY SELECT s.identity, s.confirmed FROM xet.store s;
END;
$$;


CREATE FUNCTION xet.store_confirm(identity text)
    RETURNS integer
    LANGUAGE sql
AS $$
    UPDATE xet.store s SET confirmed = true
     WHERE s.identity = $1 AND NOT s.confirmed;

    SELECT 1;
$$;


-- What tells these tables from those that a dump of them is restored to: their
-- ids, and since a new cluster gives the same ids in the same order, the number
-- of the cluster, which not every role may ask for: so the owner asks, and all
-- get the same answer.

CREATE FUNCTION xet.store_tables()
    RETURNS text
    LANGUAGE plpgsql STABLE
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    cluster bigint;
BEGIN
    BEGIN
        SELECT c.system_identifier INTO cluster FROM pg_control_system() c;

    EXCEPTION WHEN insufficient_privilege THEN
        NULL;
    END;

    RETURN concat_ws(' ', cluster, 'xet.store'::regclass::oid,
                     'xet.xorbs'::regclass::oid, 'xet.files'::regclass::oid);
END;
$$;


-- A block of 256 tags, the first of which is returned: nobody else gets one of
-- them.  The row is written, so no answer comes before it is durable, and on
-- the standby where that is synchronous.
--
-- A dump that is restored, and a standby that is promoted before it has all,
-- begin again where they were, and would hand out blocks that others have.  So
-- the order of blocks is another one in each history: that of the tables, and
-- of the timeline of the cluster.  They come back after 2^32 copies.

CREATE FUNCTION xet.tags_take()
    RETURNS bigint
    LANGUAGE plpgsql
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    block bigint;
BEGIN
    UPDATE xet.tags t
       SET next = t.next + 1
     WHERE t.one = 1
    RETURNING (t.next - 1)
              # hashtextextended(concat_ws(' ', xet.store_tables(),
                                          'xet.tags'::regclass::oid, t.salt,
                                          substr(pg_walfile_name(
                                              pg_current_wal_lsn()), 1, 8)),
                                0)
         INTO block;

    IF block IS NULL THEN
        RAISE EXCEPTION 'xet.tags has no row: copies can''t be named';
    END IF;

    RETURN (block & 16777215) << 8;
END;
$$;


-- For a copy of the database that no dump has made, a snapshot of its disk for
-- one, which goes on beside the one that it is of: from here on its tags are
-- others.

CREATE FUNCTION xet.tags_anew()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.tags SET salt = gen_random_uuid();
$$;


-- Why a copy without a row may be the only one of a xorb, and what to do; NULL
-- where this database knows the store.  One that has none yet knows nothing.

CREATE FUNCTION xet.store_suspects()
    RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN s.tables IS NULL
                THEN 'a rebuild is not complete'
                WHEN s.tables <> xet.store_tables()
                THEN 'the database came from a dump and does not know what'
                     || ' was stored later'
           END || ': complete "xet rebuild", or run'
           || ' "SELECT xet.store_known()" to give up the copies that it'
           || ' would find'
      FROM (SELECT) w
      LEFT JOIN xet.store s ON true;
$$;


-- For xet rebuild, at its end, and for operators who give up copies that have
-- no row: what has none is an orphan from now on.

CREATE FUNCTION xet.store_known()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.store s SET tables = xet.store_tables(), since = '-infinity';
$$;


-- For xet rebuild, before its first row, which is the newest one of all.

CREATE FUNCTION xet.store_unknown()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.store s SET tables = NULL;
$$;


-- Files of the store that have no row.  When whoever has looked for them last
-- has found how many, NULL is not known; swept: he has looked at all, and
-- removed what may be.  started_at is when that was last, so that
-- xet.job_now('orphans') makes a server do it in its next run.

CREATE FUNCTION xet.orphans_found(n bigint, swept boolean DEFAULT false)
    RETURNS boolean
    LANGUAGE sql
AS $$
    INSERT INTO xet.jobs AS c (name, started_at, finished_at, figures)
    VALUES ('orphans', CASE WHEN swept THEN now() END, now(),
            CASE WHEN n IS NULL THEN '{}'
                 ELSE jsonb_build_object('orphans', n) END)
    ON CONFLICT (name) DO UPDATE
       SET started_at = coalesce(excluded.started_at, c.started_at),
           finished_at = now(),
           figures = CASE WHEN n IS NULL THEN c.figures
                          ELSE excluded.figures END
    RETURNING true;
$$;


-- Between which times, in seconds, a file came to the folder that may be an
-- orphan: what came before this database nobody but "xet rebuild" can tell, and
-- what is younger than its newest xorb it may be behind of.  doubts: none is to
-- be removed, and why.

CREATE FUNCTION xet.orphans_from()
    RETURNS TABLE (since bigint, newest bigint, doubts text)
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN isfinite(s.since)
                THEN floor(extract(epoch FROM s.since))::bigint ELSE 0 END,
           coalesce(extract(epoch FROM (SELECT max(x.created_at)
                                          FROM xet.xorbs x
                                         WHERE x.created_at <= now()))::bigint,
                    0),
           xet.store_suspects()
      FROM xet.store s;
$$;


-- Whether a server is to sweep now, once a day, or to go on with a sweep that
-- has begun, and the times of xet.orphans_from().  why: it is not, empty where
-- that is no news; doubts: for it is not known what may be removed, nor does
-- xet.gc_copies() give anything, until an operator has done something.

CREATE FUNCTION xet.orphans_due(begun boolean)
    RETURNS TABLE (due boolean, since bigint, newest bigint, why text,
                   doubts boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT o.since, o.newest, o.doubts INTO since, newest, why
      FROM xet.orphans_from() o;

    doubts := why IS NOT NULL;

    IF doubts THEN
        NULL;

    ELSIF since IS NULL
        OR NOT begun
           AND EXISTS (SELECT FROM xet.jobs c
                        WHERE c.name = 'orphans'
                          AND xet.past(c.started_at)
                              > now() - interval '1 day')
    THEN
        why := '';

    ELSIF NOT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0) THEN
        why := 'a backup or a rebuild is running';
    END IF;

    due := why IS NULL;

    RETURN NEXT;
END;
$$;


-- Which of these copies neither a row nor a note leads to.

CREATE FUNCTION xet.copies_unknown(hashes bytea[], tags integer[])
    RETURNS TABLE (hash bytea, tag integer)
    LANGUAGE sql STABLE
AS $$
    SELECT u.hash, u.tag
      FROM unnest($1, $2) AS u(hash, tag)
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x
                        WHERE x.hash = u.hash AND x.tag = u.tag)
       AND NOT EXISTS (SELECT FROM xet.gc_copies g
                        WHERE g.hash = u.hash AND g.tag = u.tag);
$$;


-- Which of these copies may be removed, since neither a row nor a note leads to
-- them.  None while a backup or a rebuild goes on, as in xet.gc_copies(), nor
-- while the database may not know all of the store.
--
-- Who removes one asks after he has taken the file aside, so that a rebuild
-- which begins behind this does not find it any more, and one that has read it
-- before has the lock.

CREATE FUNCTION xet.orphans(hashes bytea[], tags integer[])
    RETURNS TABLE (hash bytea, tag integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0)
        OR xet.store_suspects() IS NOT NULL
    THEN
        RETURN;
    END IF;

    RETURN QUERY SELECT u.hash, u.tag FROM xet.copies_unknown($1, $2) u;
END;
$$;
