-- Requests that are sent again, days and times: for all other files.


-- What a statement has said that was sent before with this id, and may have
-- ended after its session was lost; NULL: it is the first.  The lock waits for
-- one that is under way, and the statement behind it sees what that did.

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
    LANGUAGE sql
AS $$
    INSERT INTO xet.acts (act, said) SELECT $1, $2 WHERE $1 IS NOT NULL;
$$;


-- Before a statement that acts for a client, in one transaction with it:
-- whether it may begin still, by this clock, in ms since 1970.  The client of
-- one that has lain in a socket, while PostgreSQL stood still, may have gone on
-- elsewhere.  Returns what the clock says, or says it in the detail of the
-- error.
--
-- SQLSTATE 40XT2: nothing was done, and the module sends it again for a client
-- that waits, with what it knows of the clock now.

CREATE FUNCTION xet.in_time(until bigint)
    RETURNS bigint
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    clock  bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    IF until IS NULL OR clock > until THEN
        RAISE EXCEPTION 'the statement arrived too late'
              USING ERRCODE = '40XT2', DETAIL = clock;
    END IF;

    RETURN clock;
END;
$$;


-- Days are those of UTC: sessions may have any time zone, and several.

CREATE FUNCTION xet.today()
    RETURNS date
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT (now() AT TIME ZONE 'UTC')::date;
$$;


-- The end of a day; NULL of none.

CREATE FUNCTION xet.day_ends(day date)
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (day + 1)::timestamp AT TIME ZONE 'UTC';
$$;


-- A time that was stored, as far as it is to be believed: one in the future is
-- of a clock that was wrong, then or now, and nobody waits until it comes.  The
-- rule for all that waits for a time which is stored: it goes through this, or
-- is bounded by the longest time that there is to wait.

CREATE FUNCTION xet.past(at timestamptz)
    RETURNS timestamptz
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN at <= clock_timestamp() THEN at END;
$$;


-- As the core writes 32 bits.

CREATE FUNCTION xet.le4(n integer)
    RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT substring(b FROM 4) || substring(b FROM 3 FOR 1)
           || substring(b FROM 2 FOR 1) || substring(b FROM 1 FOR 1)
      FROM int4send(n) AS b;
$$;


-- Whether PostgreSQL takes writes, for who asks after health: a commit of its
-- own, and half a MiB that does not fit into memory and goes to its disk.  It
-- leaves nothing, and waits for no lock.

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
