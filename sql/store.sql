-- Functions for the folder or bucket that this database describes, and for
-- copies in it that have no row.


-- Returns the identity of the folder or bucket that this database describes.
-- If no identity is recorded, records the given one; if that is NULL, returns
-- no row.

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


-- Returns a string that identifies these tables: tables restored from a dump
-- get another string.  The string has the oids of the tables.  A new cluster
-- assigns the same oids in the same order, so the string also has the
-- identifier of the cluster.  Not every role may read that identifier; with
-- SECURITY DEFINER all roles get the same string.

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


-- Allocates a block of 256 copy ids, exclusively for the caller, and returns
-- its first id.  The function updates a row, so its result is returned only
-- after it is durable, also on a synchronous standby.
--
-- A restored dump, or a standby that is promoted before it has received
-- everything, continues with an old number, and would allocate some blocks a
-- second time.  So the order of blocks depends on the identity of the tables
-- and the timeline of the cluster.  Blocks repeat after 2^32 copies.

CREATE FUNCTION xet.copy_ids_take()
    RETURNS bigint
    LANGUAGE plpgsql
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    block bigint;
BEGIN
    UPDATE xet.copy_ids t
       SET next = t.next + 1
     WHERE t.one = 1
    RETURNING (t.next - 1)
              # hashtextextended(concat_ws(' ', xet.store_tables(),
                                          'xet.copy_ids'::regclass::oid, t.salt,
                                          substr(pg_walfile_name(
                                              pg_current_wal_lsn()), 1, 8)),
                                0)
         INTO block;

    IF block IS NULL THEN
        RAISE EXCEPTION 'xet.copy_ids has no row: copies can''t be named';
    END IF;

    RETURN (block & 16777215) << 8;
END;
$$;


-- Makes this database allocate other copy ids than the database that it was
-- copied from.  Operators call this function in a copy that was not made by a
-- dump, such as a disk snapshot, if it runs in parallel with the original.

CREATE FUNCTION xet.copy_ids_anew()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.copy_ids SET salt = gen_random_uuid();
$$;


-- Makes all clients forget which xorbs they sent: new tokens name other
-- endpoints.  A sequence needs no lock; its owner is the owner of the function.

CREATE FUNCTION xet.clients_forget()
    RETURNS bigint
    LANGUAGE sql
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT nextval('xet.epochs');
$$;


-- Records that callers lose the right to chunks of a repo: shards in flight are
-- checked again.  The row is locked until the commit, so this call comes last
-- in a transaction.

CREATE FUNCTION xet.hidings_add()
    RETURNS void
    LANGUAGE sql
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE xet.hidings SET number = number + 1;
$$;


-- Does the same, and makes clients forget the chunks.

CREATE FUNCTION xet.hide()
    RETURNS void
    LANGUAGE sql
AS $$
    SELECT xet.clients_forget();
    SELECT xet.hidings_add();
$$;


-- Returns the key of a caller, a repo and a subject, in xet.refused.

CREATE FUNCTION xet.caller(repo text, subject text)
    RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT sha256(convert_to(concat(length($1), ' ', $1, $2), 'UTF8'));
$$;


-- Returns a number that changes whenever a client may remember xorbs that it
-- can no longer refer to: with the store, with tables restored from a dump or
-- a snapshot (salt, if the operator calls xet.copy_ids_anew()), with a
-- promoted standby, which may lack the last rows, with xet.clients_forget(),
-- and after a refusal of the same caller.

CREATE FUNCTION xet.token_epoch(repo text, subject text)
    RETURNS bigint
    LANGUAGE sql STABLE
    SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT hashtextextended(concat_ws(' ', (SELECT s.identity FROM xet.store s),
                                      xet.store_tables(), t.salt,
                                      substr(pg_walfile_name(
                                          pg_current_wal_lsn()), 1, 8),
                                      e.last_value, e.is_called,
                                      (SELECT extract(epoch FROM f.at)
                                         FROM xet.refused f
                                        WHERE f.caller = xet.caller($1, $2))),
                            0) & 9223372036854775807
      FROM xet.copy_ids t, xet.epochs e;
$$;


-- Records that a shard of a caller was refused, because it referred to an
-- unknown xorb.

CREATE FUNCTION xet.caller_refused(repo text, subject text)
    RETURNS integer
    LANGUAGE sql
AS $$
    INSERT INTO xet.refused AS f (caller) VALUES (xet.caller($1, $2))
    ON CONFLICT ON CONSTRAINT refused_pkey DO UPDATE SET at = excluded.at;

    SELECT 1;
$$;


-- Explains why a copy without a row may be the only copy of a xorb, and what
-- to do; NULL if this database knows all copies.  A database without a row in
-- xet.store does not know all copies.

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


-- Records that this database knows all copies; after that, each copy without a
-- row is an orphan.  "xet rebuild" calls this function at its end.  Operators
-- call it if they give up the copies without a row.

CREATE FUNCTION xet.store_known()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.store s SET tables = xet.store_tables(), since = '-infinity';
$$;


-- Records that this database does not know all copies.  "xet rebuild" calls
-- this function before it inserts its first row.

CREATE FUNCTION xet.store_unknown()
    RETURNS void
    LANGUAGE sql
AS $$
    UPDATE xet.store s SET tables = NULL;
$$;


-- Records that a search for files of the store without a row has ended, and
-- found n such files; NULL means that the number is unknown.  swept: whether
-- the search covered all files, and removed those that may be removed.
-- started_at in xet.jobs is the time of the last such sweep:
-- xet.job_now('orphans') resets it, so that a server sweeps in its next run.

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


-- Returns the range of times, in seconds since 1970, in which a file was
-- written that may be an orphan.  Only "xet rebuild" can judge files older
-- than this database.  For files younger than its newest xorb, the database
-- may still be about to receive the rows.  unsafe is the reason why no file
-- may be removed, or NULL.

CREATE FUNCTION xet.orphans_from()
    RETURNS TABLE (since bigint, newest bigint, unsafe text)
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


-- Returns whether a server must start the daily sweep now, or continue a sweep
-- in progress; also returns the times of xet.orphans_from().  why is the reason
-- not to sweep; empty if it need not be reported.  unsafe: it is unknown which
-- copies may be removed, so xet.gc_copies() also returns no copies until an
-- operator has intervened.

CREATE FUNCTION xet.orphans_due(begun boolean)
    RETURNS TABLE (due boolean, since bigint, newest bigint, why text,
                   unsafe boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    SELECT o.since, o.newest, o.unsafe INTO since, newest, why
      FROM xet.orphans_from() o;

    unsafe := why IS NOT NULL;

    IF unsafe THEN
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


-- Returns those copies to which neither a row nor a note refers.

CREATE FUNCTION xet.copies_unknown(hashes bytea[], copy_ids integer[])
    RETURNS TABLE (hash bytea, copy_id integer)
    LANGUAGE sql STABLE
AS $$
    SELECT u.hash, u.copy_id
      FROM unnest($1, $2) AS u(hash, copy_id)
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x
                        WHERE x.hash = u.hash AND x.copy_id = u.copy_id)
       AND NOT EXISTS (SELECT FROM xet.gc_copies g
                        WHERE g.hash = u.hash AND g.copy_id = u.copy_id);
$$;


-- Returns those copies that may be removed, since neither a row nor a note
-- refers to them.  Like xet.gc_copies(), returns no copies during a backup or
-- a rebuild, or while the database may not know all copies of the store.
--
-- The caller must put the file of a copy into quarantine before this call.
-- Then a rebuild that starts later does not find the file; a rebuild that has
-- already read the file holds the lock.

CREATE FUNCTION xet.orphans(hashes bytea[], copy_ids integer[])
    RETURNS TABLE (hash bytea, copy_id integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0)
        OR xet.store_suspects() IS NOT NULL
    THEN
        RETURN;
    END IF;

    RETURN QUERY SELECT u.hash, u.copy_id FROM xet.copies_unknown($1, $2) u;
END;
$$;
