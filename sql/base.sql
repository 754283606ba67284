-- Functions for retried statements, isolation, days and times; all other files
-- use them.


-- Returns the recorded result of an earlier statement with this id, which may
-- have finished after its session was lost; NULL if there is no such result.
-- The lock waits for a statement in progress with the same id; the query after
-- the lock sees the result of that statement.

CREATE FUNCTION xet.act_said(act bytea)
    RETURNS jsonb
    LANGUAGE plpgsql
AS $$
BEGIN
    IF act IS NULL THEN
        RETURN NULL;
    END IF;

    PERFORM pg_advisory_xact_lock(hashtext('xet.acts'),
                                  hashtext(encode(act, 'hex')));

    RETURN (SELECT a.said FROM xet.acts a WHERE a.act = $1);
END;
$$;


CREATE FUNCTION xet.act_note(act bytea, said jsonb)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF act IS NOT NULL THEN
        INSERT INTO xet.acts (act, said) VALUES ($1, $2);
    END IF;
END;
$$;


-- Runs before a statement for a client, in the same transaction: checks by the
-- clock of PostgreSQL, in ms since 1970, whether the statement may still
-- start.  A statement may have waited in a socket while PostgreSQL was halted,
-- and in the meantime its client may have retried on another server.  Returns
-- the time of the clock; an error has this time in its detail.
--
-- Raises SQLSTATE 40XT2 if the deadline has passed; nothing was done then.  If
-- the client still waits, the module computes a new deadline from the time in
-- the detail, and retries the statement.

CREATE FUNCTION xet.in_time(until bigint)
    RETURNS bigint
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    clock  bigint := floor(date_part('epoch', clock_timestamp()) * 1000);
BEGIN
    IF until IS NULL OR clock > until THEN
        RAISE EXCEPTION 'the statement arrived too late'
              USING ERRCODE = '40XT2', DETAIL = clock;
    END IF;

    RETURN clock;
END;
$$;


-- Days are in UTC: sessions may have different time zones.

CREATE FUNCTION xet.today()
    RETURNS date
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT (now() AT TIME ZONE 'UTC')::date;
$$;


-- Returns the end of a day in UTC; NULL if the day is NULL.

CREATE FUNCTION xet.day_ends(day date)
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (day + 1)::timestamp AT TIME ZONE 'UTC';
$$;


-- Returns a stored time, or NULL if the time is in the future: then a clock
-- was or is wrong, and nothing should wait until that time.  Code that waits
-- for a stored time must use this function, or limit the wait to its longest
-- regular value.

CREATE FUNCTION xet.past(at timestamptz)
    RETURNS timestamptz
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN at <= clock_timestamp() THEN at END;
$$;


-- Returns the 4 bytes of an integer, little-endian, as the core writes them.

CREATE FUNCTION xet.le4(n integer)
    RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT int4send(((n & 255) << 24) | ((n & 65280) << 8)
                    | ((n >> 8) & 65280) | ((n >> 24) & 255));
$$;


-- For triggers: refuses a transaction that is not read committed.  A snapshot
-- taken before a row was locked would not see the rows that refer to it, and
-- were added before the lock was granted.

CREATE FUNCTION xet.read_committed()
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'the isolation level must be read committed'
              USING ERRCODE = '25001';
    END IF;
END;
$$;


-- For the health check: tests whether PostgreSQL can write.  The transaction
-- gets an id, so its commit is written to the WAL.  The sort of half a MiB
-- exceeds work_mem, so PostgreSQL writes a temporary file.  The function stores
-- no data, and does not wait for locks.

CREATE FUNCTION xet.write_probe()
    RETURNS bigint
    LANGUAGE plpgsql
    SET work_mem = '64kB'
AS $$
BEGIN
    PERFORM pg_current_xact_id();

    RETURN (SELECT count(*)
              FROM (SELECT repeat(md5(i::text), 4) AS t
                      FROM generate_series(1, 4000) AS s(i)
                     ORDER BY 1
                    OFFSET 0) s);
END;
$$;
