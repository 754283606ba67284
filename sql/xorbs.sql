-- Functions for xorbs: chunk lists, copies, dedup, and records of the repos and
-- subjects that may refer to a xorb in a shard.


-- Returns parts of the chunk lists of xorbs, one row per element of the
-- arguments, in order: the hashes and ends of chunks starts[i]..ends[i] - 1.
-- The ends start with the end of the chunk before starts[i], or with four zero
-- bytes if there is none.  All columns are NULL for a xorb that is not stored;
-- hashes and ends are NULL for a range beyond the xorb.  copy_id and
-- stored_size belong to the copy that stored_ends describe; intact is false if
-- the copy is known to be damaged.

CREATE FUNCTION xet.xorb_slices(xorbs bytea[], starts integer[],
    ends integer[], with_hashes boolean)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, copy_id integer, stored_size bigint,
                   intact boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.chunk_count,
           CASE WHEN w.e <= x.chunk_count AND with_hashes
                THEN substring(x.chunk_hashes FROM 32 * w.s + 1
                               FOR 32 * (w.e - w.s))
           END,
           CASE WHEN w.e > x.chunk_count THEN NULL
                WHEN w.s = 0
                THEN '\x00000000'::bytea
                     || substring(x.raw_ends FROM 1 FOR 4 * w.e)
                ELSE substring(x.raw_ends FROM 4 * (w.s - 1) + 1
                               FOR 4 * (w.e - w.s + 1))
           END,
           CASE WHEN w.e > x.chunk_count THEN NULL
                WHEN w.s = 0
                THEN '\x00000000'::bytea
                     || substring(x.stored_ends FROM 1 FOR 4 * w.e)
                ELSE substring(x.stored_ends FROM 4 * (w.s - 1) + 1
                               FOR 4 * (w.e - w.s + 1))
           END,
           x.copy_id, x.stored_size, x.damaged_at IS NULL
      FROM unnest(xorbs, starts, ends) WITH ORDINALITY AS w(hash, s, e, n)
      LEFT JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                          WHERE x.hash = w.hash
                         OFFSET 0) x ON true
     ORDER BY w.n;
$$;


-- Returns the chunks of a xorb that a repo and a subject may name without a
-- proof.  These are the chunks that the repo or the subject has sent or
-- registered, and the chunks of files that the repo may see; the 64 oldest and
-- the 64 newest files are checked.  Without a repo, the whole store is visible,
-- except a xorb of one chunk that no file uses: its name is the hash of that
-- chunk, which proves nothing.
--
-- A xorb that is not stored takes the same work.  Callers must make this call
-- for it, too, with id -1 and one chunk: otherwise the response time would
-- reveal what other users have stored.  The function makes at least at_least
-- look-ups of files, some of them of files that do not exist.  at_least is 128
-- if the time must not reveal whether the xorb exists, else 0.
--
-- Sessions cache plans, which may have been made while the tables were empty.
-- With "= ANY" of a one-element array, only one index gives the order.  With
-- "=", the index that starts with the file would also give the order, and
-- would be scanned completely.  So there is an ORDER BY even where the order
-- does not matter.

CREATE FUNCTION xet.xorb_seen(id bigint, chunk_count integer,
    any_repo boolean, repo text, subject bytea, at_least integer)
    RETURNS int4multirange
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    had      int4multirange;
    repo_row bigint;
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RETURN '{}';
    END IF;

    IF any_repo THEN
        IF chunk_count > 1
           OR EXISTS (SELECT FROM xet.file_xorbs fx
                       WHERE fx.xorb_id = ANY (ARRAY[id])
                       ORDER BY fx.xorb_id, fx.file_id
                      OFFSET 0)
        THEN
            RETURN '{[0,)}';
        END IF;

    ELSE
        SELECT r.id INTO repo_row FROM xet.repos r WHERE r.name = repo;

        IF EXISTS (SELECT FROM xet.xorb_repos o
                    WHERE o.xorb_id = id
                      AND o.repo_id = coalesce(repo_row, -1))
        THEN
            RETURN '{[0,)}';
        END IF;
    END IF;

    SELECT o.chunks INTO had
      FROM xet.xorb_subjects o
     WHERE o.xorb_id = id AND o.subject = sha256(subject);

    had := coalesce(had, '{}');

    IF any_repo OR had @> int4range(0, NULL) THEN
        RETURN had;
    END IF;

    RETURN had + (
        WITH found AS MATERIALIZED (
            (SELECT fx.file_id, fx.chunks
               FROM xet.file_xorbs fx
              WHERE fx.xorb_id = ANY (ARRAY[id])
              ORDER BY fx.xorb_id, fx.file_id
              LIMIT 64)
            UNION ALL
            (SELECT fx.file_id, fx.chunks
               FROM xet.file_xorbs fx
              WHERE fx.xorb_id = ANY (ARRAY[id])
              ORDER BY fx.xorb_id DESC, fx.file_id DESC
              LIMIT 64)
        ), visible AS MATERIALIZED (
            SELECT f.chunks
              FROM (SELECT f.file_id, f.chunks FROM found f
                    UNION ALL
                    SELECT -g, '{}' FROM generate_series(1, 128) AS g
                     WHERE g > (SELECT count(*) FROM found)
                       AND g <= at_least) f
             WHERE EXISTS (SELECT FROM xet.usable(f.file_id, repo) OFFSET 0)
        )
        SELECT coalesce(range_agg(c), '{}')
          FROM visible v, unnest(v.chunks) AS c);
END;
$$;


-- Returns true if at least one chunk of the range has a hash that is never sent
-- in the clear.  The last chunk is checked first, since clients query the first
-- chunk.  For a xorb that is not stored, the function looks up the name of the
-- xorb instead.

CREATE FUNCTION xet.slice_secret(xorb bytea, first integer, last integer)
    RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
BEGIN
    RETURN EXISTS (
        SELECT FROM (SELECT xorb AS hash) w
          LEFT JOIN LATERAL (SELECT x.chunk_hashes FROM xet.xorbs x
                              WHERE x.hash = w.hash
                                AND last <= x.chunk_count
                             OFFSET 0) x ON true
         CROSS JOIN LATERAL generate_series(least(last, 8192) - 1, first,
                                            -1) AS i
         CROSS JOIN LATERAL (SELECT coalesce(substring(x.chunk_hashes
                                                       FROM 32 * i + 1
                                                       FOR 32),
                                             w.hash) AS hash
                              OFFSET 0) c
         WHERE NOT EXISTS (SELECT FROM xet.chunks k WHERE k.hash = c.hash
                           OFFSET 0)
           AND NOT EXISTS (SELECT FROM xet.xorbs y
                            WHERE y.hash = c.hash
                           OFFSET 0));
END;
$$;


-- Records that a repo and a subject have sent all of a xorb.  Returns true if
-- the repo or the subject had not sent it before.  Without a repo, only xorbs
-- of one chunk are recorded, for the subject.

CREATE FUNCTION xet.xorb_brought(xorb bigint, repo bigint, subject bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    inserted boolean := false;
BEGIN
    IF subject IS NOT NULL THEN
        INSERT INTO xet.xorb_subjects AS o (xorb_id, subject, chunks)
        VALUES (xorb, sha256($3), '{[0,)}')
        ON CONFLICT ON CONSTRAINT xorb_subjects_pkey
           DO UPDATE SET chunks = excluded.chunks
                   WHERE o.chunks <> excluded.chunks;

        inserted := FOUND;
    END IF;

    IF repo IS NOT NULL THEN
        INSERT INTO xet.xorb_repos (xorb_id, repo_id) VALUES (xorb, repo)
        ON CONFLICT DO NOTHING;

        inserted := inserted OR FOUND;
    END IF;

    RETURN inserted;
END;
$$;


-- Returns the maximum age of a copy at the time when its row is inserted: half
-- of the age at which a copy without a row is removed (XET_XORB_ORPHAN_AGE).
-- The other half allows for differences between the clocks of nginx,
-- PostgreSQL and the store.

CREATE FUNCTION xet.copy_age()
    RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT interval '12 hours';
$$;


-- Returns copy_id.  Raises 40XT1 if the copy, which was made at the time "made"
-- in seconds since 1970, is older than xet.copy_age().  The worker or the whole
-- machine may have been halted after the copy was made and before its row was
-- inserted.  In the meantime the collector may have removed the copy, since it
-- had no row.
--
-- SQLSTATE 40XT1, here and below: the copy can not be restored, so the module
-- does not retry the statement.  Older versions of the module retry it; after
-- errors of class 40, they also keep the copy.

CREATE FUNCTION xet.copy_made(copy_id integer, made bigint)
    RETURNS integer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    most  interval := xet.copy_age();
BEGIN
    IF now() - to_timestamp(made) NOT BETWEEN -most AND most
    THEN
        RAISE EXCEPTION 'the copy was made % seconds ago by the clock of its '
                        'server: the server was halted since then, or the '
                        'clocks differ',
                        floor(extract(epoch FROM now()) - made)
              USING ERRCODE = '40XT1';
    END IF;

    RETURN copy_id;
END;
$$;


-- Inserts the row of a xorb whose bytes are durable in the copy with this copy
-- id, with its eligible chunks (given by index), and records its sender.  The
-- caller calls xet.quota_hold() last.  Returns the current row.  If the row has
-- the same copy id, this statement inserted the row.  If it has another copy
-- id, the xorb was stored before, by this or another node, and the new copy is
-- not used.  inserted: true if the xorb was not stored before.  With a repo,
-- also true if the repo or the subject had not sent the xorb before, since
-- uploads of other users must not be revealed.  new_id: NULL if the row is not
-- new.  repo_id: NULL without a repo.
--
-- If the xorb was stored before, the response reports this, and the sender will
-- refer to the xorb.  So the xorb is recorded as advertised, like a xorb in a
-- dedup response.  The lock waits for a collector that is about to remove the
-- xorb; the xorb is then inserted as new.

CREATE FUNCTION xet.xorb_insert(xorb bytea, chunk_hashes bytea, raw_ends bytea,
    stored_ends bytea, raw_size bigint, stored_size bigint,
    eligible integer[], copy_id integer, digest bytea, any_repo boolean,
    repo text, subject bytea, OUT the_copy_id integer, OUT the_size bigint,
    OUT the_digest bytea, OUT intact boolean, OUT inserted boolean,
    OUT new_id bigint, OUT repo_id bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    old_id   bigint;
    single   boolean := length(chunk_hashes) = 32;
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RAISE EXCEPTION 'a xorb has no repo' USING ERRCODE = '22004';
    END IF;

    LOOP
        INSERT INTO xet.xorbs AS x (hash, chunk_count, raw_size, stored_size,
                                    chunk_hashes, raw_ends, stored_ends,
                                    copy_id, digest)
        VALUES (xorb, length(chunk_hashes) / 32, raw_size, stored_size,
                chunk_hashes, raw_ends, stored_ends, copy_id, digest)
        ON CONFLICT DO NOTHING
        RETURNING x.id INTO new_id;

        EXIT WHEN new_id IS NOT NULL;

        PERFORM xet.xorb_advertised(ARRAY[xorb]);

        SELECT x.id, x.chunk_count = 1 INTO old_id, single
          FROM xet.xorbs x
         WHERE x.hash = xorb
           FOR KEY SHARE;

        EXIT WHEN FOUND;
    END LOOP;

    -- this statement may be a retry after a lost session, and the copy may have
    -- been collected in the meantime, with its file.  The check follows the
    -- insert, which may have waited for that collection.

    IF new_id IS NOT NULL THEN
        IF EXISTS (SELECT FROM xet.gc_copies g
                    WHERE g.hash = xorb AND g.copy_id = xorb_insert.copy_id)
        THEN
            RAISE EXCEPTION 'the copy was removed in the meantime'
                  USING ERRCODE = '40XT1';
        END IF;

        IF cardinality(eligible) = 1 THEN
            INSERT INTO xet.chunks (hash, xorb_id, idx)
            VALUES (substring(chunk_hashes FROM 32 * eligible[1] + 1 FOR 32),
                    new_id, eligible[1])
            ON CONFLICT DO NOTHING;

        ELSIF eligible <> '{}' THEN
            INSERT INTO xet.chunks (hash, xorb_id, idx)
            SELECT substring(chunk_hashes FROM 32 * i + 1 FOR 32), new_id,
                   min(i)
              FROM unnest(eligible) AS i
             GROUP BY 1
             ORDER BY 1
            ON CONFLICT DO NOTHING;
        END IF;
    END IF;

    IF NOT any_repo THEN
        repo_id := xet.repo_row(repo);
    END IF;

    inserted := (NOT any_repo OR single)
                AND xet.xorb_brought(coalesce(new_id, old_id), repo_id,
                                     subject);

    IF new_id IS NULL THEN

        -- if the row has this copy id, an earlier try of this call has
        -- inserted it

        SELECT x.copy_id, x.stored_size, x.digest, x.damaged_at IS NULL,
               x.copy_id = xorb_insert.copy_id OR NOT any_repo AND inserted
          INTO the_copy_id, the_size, the_digest, intact, inserted
          FROM xet.xorbs x
         WHERE x.hash = xorb;

        RETURN;
    END IF;

    INSERT INTO xet.charges (xorb_id, repo_id, subject, bytes)
    VALUES (new_id, repo_id, sha256(subject), stored_size);

    the_copy_id := copy_id;
    the_size := stored_size;
    the_digest := digest;
    intact := true;
    inserted := true;
END;
$$;


-- Registers a xorb: see xet.xorb_insert().
--
-- flush: whether the transaction is durable when the function's caller gets the
-- result.  A caller that calls xet.shard_put() next does not need this: WAL is
-- flushed in order, so a crash that loses the xorb also loses the file.

CREATE FUNCTION xet.xorb_put(xorb bytea, chunk_hashes bytea, raw_ends bytea,
    stored_ends bytea, raw_size bigint, stored_size bigint,
    eligible integer[], copy_id integer, digest bytea, any_repo boolean,
    repo text, subject bytea, flush boolean DEFAULT true,
    OUT the_copy_id integer, OUT the_size bigint, OUT the_digest bytea,
    OUT intact boolean, OUT inserted boolean)
    LANGUAGE plpgsql
AS $$
DECLARE
    x        record;
    commits  text;
BEGIN
    IF NOT flush THEN
        commits := set_config('synchronous_commit', 'off', true);
    END IF;

    x := xet.xorb_insert($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

    IF x.new_id IS NOT NULL THEN
        PERFORM xet.quota_hold($10, $11, $12, $6, 0);
    END IF;

    the_copy_id := x.the_copy_id;
    the_size := x.the_size;
    the_digest := x.the_digest;
    intact := x.intact;
    inserted := x.inserted;
END;
$$;


-- Registers a xorb, as xet.xorb_put() does, and a file that consists of all
-- chunks of this xorb, as xet.shard_put() does, in one transaction.  packed is
-- the only term of the file, with the copy id; the server has computed the
-- digest.  put: false if the xorb or the file was stored before; then the
-- caller registers the file with xet.shard_put().

CREATE FUNCTION xet.file_put(file bytea, size bigint, sha256 bytea,
    packed bytea, kept boolean, xorb bytea, chunk_hashes bytea, raw_ends bytea,
    stored_ends bytea, raw_size bigint, stored_size bigint,
    eligible integer[], copy_id integer, digest bytea, any_repo boolean,
    repo text, subject bytea, OUT the_copy_id integer, OUT the_size bigint,
    OUT the_digest bytea, OUT intact boolean, OUT inserted boolean,
    OUT put boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    x        record;
    file_id  bigint;
    placed   bigint := 0;
BEGIN
    x := xet.xorb_insert($6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                         $17);

    the_copy_id := x.the_copy_id;
    the_size := x.the_size;
    the_digest := x.the_digest;
    intact := x.intact;
    inserted := x.inserted;

    IF x.new_id IS NULL THEN

        -- an earlier try of this call may have inserted both rows

        put := EXISTS (SELECT FROM xet.files f
                        WHERE f.hash = file AND f.packed = file_put.packed);
        RETURN;
    END IF;

    INSERT INTO xet.files AS f (hash, size, sha256, term_count, packed, held,
                                sha256_proven)
    VALUES (file, size, sha256, 1, packed, any_repo, true)
    ON CONFLICT DO NOTHING
    RETURNING f.id INTO file_id;

    put := file_id IS NOT NULL;

    IF put THEN
        INSERT INTO xet.file_xorbs (file_id, xorb_id, chunks)
        VALUES (file_id, x.new_id,
                int4multirange(int4range(0, length(raw_ends) / 4)));

        IF NOT any_repo THEN
            placed := xet.shard_place(x.repo_id, ARRAY[file_id], ARRAY[sha256],
                                      subject, repo LIKE '\_hub/%', kept);
        END IF;
    END IF;

    PERFORM xet.quota_hold(any_repo, repo, subject, stored_size, placed * size);
END;
$$;


-- Replaces the damaged copy of a known xorb by another copy: updates the row,
-- and all terms that refer to the damaged copy.  Returns the current row.  If
-- its copy_id is the argument copy_id, the new copy is used.  If the copy id of
-- the row was no longer old_copy_id, another session was first, and nothing is
-- changed.
--
-- The lock excludes commits of shards, which check the copy ids of their terms
-- under FOR KEY SHARE (xet.shard_terms()).  So either their terms exist when
-- this statement updates terms, or the commits see the new copy id and are
-- refused.  This requires read committed isolation, which sessions of the
-- module set.
--
-- A heal of a xorb uses one session.  A heal that would have to wait for
-- another heal, or for a large shard, gives up after three seconds (55P03),
-- and the caller retries later.  Statements that send or name the xorb during
-- the heal wait up to the lock_timeout of their session.

CREATE FUNCTION xet.xorb_heal(xorb bytea, stored_ends bytea,
    stored_size bigint, copy_id integer, digest bytea, old_copy_id integer)
    RETURNS TABLE (the_copy_id integer, the_size bigint, the_digest bytea,
                   intact boolean)
    LANGUAGE plpgsql
    SET lock_timeout = '3s'
AS $$
#variable_conflict use_variable
DECLARE
    xorb_row bigint;
BEGIN
    SELECT x.id INTO xorb_row
      FROM xet.xorbs x
     WHERE x.hash = xorb AND x.copy_id = old_copy_id
       FOR UPDATE;

    IF xorb_row IS NOT NULL THEN
        UPDATE xet.xorbs AS x
           SET stored_ends = stored_ends, stored_size = stored_size,
               copy_id = copy_id, digest = digest, damaged_at = NULL
         WHERE x.id = xorb_row;

        -- all heals lock rows in the same order; otherwise heals of two xorbs
        -- could deadlock

        PERFORM 1
           FROM xet.files f
          WHERE f.id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                          WHERE fx.xorb_id = xorb_row)
          ORDER BY f.id
            FOR NO KEY UPDATE;

        UPDATE xet.files AS f
           SET packed = xet.terms_moved(f.packed, xorb, stored_ends, copy_id)
         WHERE f.id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                         WHERE fx.xorb_id = xorb_row)
           AND f.packed IS NOT NULL;

        UPDATE xet.terms AS t
           SET packed = xet.terms_moved(t.packed, xorb, stored_ends, copy_id)
         WHERE t.file_id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                              WHERE fx.xorb_id = xorb_row)
           AND position(xorb IN t.packed) > 0;
    END IF;

    RETURN QUERY
    SELECT x.copy_id, x.stored_size, x.digest, x.damaged_at IS NULL
      FROM xet.xorbs x
     WHERE x.hash = xorb;
END;
$$;


-- Calls xet.xorb_heal() for a command, which can retry later.  Returns the
-- current copy id, or old_copy_id if the row no longer exists.  Returns NULL if
-- other sessions have locked the xorb or its files: then the caller should
-- retry.

CREATE FUNCTION xet.xorb_healed(xorb bytea, stored_ends bytea,
    stored_size bigint, copy_id integer, digest bytea, old_copy_id integer)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce((SELECT h.the_copy_id
                       FROM xet.xorb_heal($1, $2, $3, $4, $5, $6) h),
                    old_copy_id);

EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
END;
$$;


-- Returns packed terms (src/core/plan/xet_plan.h) in which all terms of one
-- xorb refer to another copy of that xorb.  Their chunks and raw lengths are
-- unchanged; their stored bytes and copy id are those of the new copy.

CREATE FUNCTION xet.terms_moved(packed bytea, xorb bytea, stored_ends bytea,
    copy_id integer)
    RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    moved  bytea := ''::bytea;
    done   integer := 0;                   -- bytes of packed handled so far
    found  integer;                        -- position of the hash, 1: at done
    start  integer;                        -- start of the term
    first  integer;                        -- first chunk of the term
    last   integer;
BEGIN
    LOOP
        found := position(xorb IN substring(packed FROM done + 1));

        EXIT WHEN found = 0;

        start := (done + found - 1) / 52 * 52;

        -- all terms before this term refer to other xorbs; so may this term, if
        -- the bytes that match the hash span two terms

        moved := moved || substring(packed FROM done + 1 FOR start - done);

        IF substring(packed FROM start + 1 FOR 32) = xorb THEN
            first := get_byte(packed, start + 32)
                     + 256 * get_byte(packed, start + 33);
            last := get_byte(packed, start + 34)
                    + 256 * get_byte(packed, start + 35);

            moved := moved || substring(packed FROM start + 1 FOR 36)
                     || CASE WHEN first = 0 THEN '\x00000000'::bytea
                             ELSE substring(stored_ends
                                            FROM 4 * first - 3 FOR 4)
                        END
                     || substring(stored_ends FROM 4 * last + 1 FOR 4)
                     || substring(packed FROM start + 45 FOR 4)
                     || xet.le4(copy_id);
        ELSE
            moved := moved || substring(packed FROM start + 1 FOR 52);
        END IF;

        done := start + 52;
    END LOOP;

    RETURN moved || substring(packed FROM done + 1);
END;
$$;


-- Returns a row for a xorb that need not be sent, since the caller may name all
-- of its chunks in a shard; recorded is as in xet.chunk_find().

CREATE FUNCTION xet.xorb_grant(xorb bytea, proof boolean, any_repo boolean,
    repo text, subject bytea)
    RETURNS TABLE (stored_size bigint, copy_id integer, intact boolean,
                   recorded boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.stored_size, x.copy_id, x.damaged_at IS NULL,
           x.advertised_on IS NOT DISTINCT FROM xet.today()
      FROM (SELECT xorb_grant.xorb AS hash) w
      LEFT JOIN xet.xorbs x ON x.hash = w.hash
     WHERE CASE WHEN proof IS NULL OR any_repo IS NULL OR repo IS NULL
                THEN false
                WHEN NOT proof THEN x.id IS NOT NULL
                ELSE xet.xorb_seen(coalesce(x.id, -1),
                                   coalesce(x.chunk_count, 1), any_repo, repo,
                                   subject, 128)
                     @> int4range(0, coalesce(x.chunk_count, 1))
           END;
$$;


-- Returns the row of xet.xorb_grant() for a caller who reads the xorb.  Unlike
-- in xet.xorb_grant(), a caller with access to the whole store may read any
-- xorb, even if no file uses it.

CREATE FUNCTION xet.xorb_get(xorb bytea, any_repo boolean, repo text,
    subject bytea)
    RETURNS TABLE (stored_size bigint, copy_id integer, intact boolean,
                   recorded boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT g.stored_size, g.copy_id, g.intact, g.recorded
      FROM xet.xorb_grant($1, NOT $2, $2, $3, $4) g;
$$;


-- Records that the copies with these copy ids were found missing, truncated or
-- damaged.  Clients forget them, and send them again.

CREATE FUNCTION xet.xorb_damaged(xorbs bytea[], copy_ids integer[])
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    WITH lost AS (
        UPDATE xet.xorbs SET damaged_at = now()
         WHERE id IN (SELECT x.id
                        FROM xet.xorbs x
                        JOIN unnest($1, $2) AS d(hash, copy_id)
                          ON d.hash = x.hash AND d.copy_id = x.copy_id
                       WHERE x.damaged_at IS NULL
                       ORDER BY x.id
                         FOR NO KEY UPDATE OF x)
        RETURNING 1
    )
    SELECT xet.clients_forget() WHERE EXISTS (SELECT FROM lost);

    SELECT count(*)::integer
      FROM unnest($1, $2) AS d(hash, copy_id)
      JOIN xet.xorbs x ON x.hash = d.hash AND x.copy_id = d.copy_id;
$$;


-- Records that a copy was read completely, and matches its row.

CREATE FUNCTION xet.xorb_intact(xorb bytea, copy_id integer)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE xet.xorbs x SET damaged_at = NULL
     WHERE x.hash = $1 AND x.copy_id = $2
       AND x.damaged_at IS NOT NULL;

    RETURN FOUND;
END;
$$;


-- Returns xorbs that a client probably needs next if it has chunk idx of the
-- first xorb: it queries only one chunk in a thousand, so it would find these
-- xorbs only by luck.  Returns at most 63 xorbs, which have at most 65,536
-- chunks together with the first xorb, in this order:
--
--     1  xorbs after the first xorb in two files that use the first xorb
--     2  xorbs after the first xorb that the repo or the subject has sent
--     3  xorbs before the first xorb in these files
--     4  xorbs before the first xorb that the repo or the subject has sent
--
-- Ids order xorbs as they were sent, usually in the order of the data; near
-- xorbs come first.  The two files are those that use the queried chunk and
-- most chunks of the first xorb, among its 32 oldest and 32 newest files.
-- Files that the caller may not see do not matter: so a new repo of the same
-- owner often has no file, only the ranks 2 and 4.  These exist only if the
-- repo or the subject has sent the first xorb, too.  They may have sent
-- anything before and after it, but a small upload makes a small xorb.  So
-- these ranks have at most 64 times as many chunks as the first xorb: with
-- chunks of the mean size, their part of the response has at most 5 % of the
-- bytes of the first xorb.
--
-- seen: the chunks that may be shown; NULL with any_repo, as all may be shown.
-- Ids are looked up as one-element arrays for the reason given at
-- xet.xorb_seen().

CREATE FUNCTION xet.xorbs_near(first_id bigint, idx integer,
    first_count integer, wide boolean, any_repo boolean, repo text,
    subject bytea)
    RETURNS TABLE (xorb_id bigint, seen int4multirange)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 64
AS $$
#variable_conflict use_variable
DECLARE
    repo_row bigint;
    sender   bytea;
BEGIN
    IF wide IS NULL OR any_repo IS NULL OR repo IS NULL THEN
        RETURN;
    END IF;

    IF NOT any_repo THEN
        SELECT o.repo_id INTO repo_row
          FROM xet.xorb_repos o
         WHERE o.xorb_id = first_id
           AND o.repo_id = (SELECT r.id FROM xet.repos r
                             WHERE r.name = repo);

        SELECT o.subject INTO sender
          FROM xet.xorb_subjects o
         WHERE o.xorb_id = first_id AND o.subject = sha256(subject);
    END IF;

    RETURN QUERY
    WITH users AS MATERIALIZED (
        (SELECT fx.file_id, fx.chunks @> idx AS uses,
                upper(fx.chunks) - lower(fx.chunks) AS span
           FROM xet.file_xorbs fx
          WHERE fx.xorb_id = ANY (ARRAY[first_id])
          ORDER BY fx.xorb_id, fx.file_id
          LIMIT 32)
        UNION
        (SELECT fx.file_id, fx.chunks @> idx,
                upper(fx.chunks) - lower(fx.chunks)
           FROM xet.file_xorbs fx
          WHERE fx.xorb_id = ANY (ARRAY[first_id])
          ORDER BY fx.xorb_id DESC, fx.file_id DESC
          LIMIT 32)
    ), files AS MATERIALIZED (
        SELECT f.file_id
          FROM (SELECT u.file_id, u.uses, u.span FROM users u
                UNION ALL
                SELECT -g, false, 0 FROM generate_series(1, 64) AS g
                 WHERE NOT any_repo AND NOT wide
                   AND g > (SELECT count(*) FROM users)) f
         WHERE any_repo OR wide
            OR EXISTS (SELECT FROM xet.usable(f.file_id, repo) OFFSET 0)
         ORDER BY f.uses DESC, f.span DESC NULLS LAST, f.file_id DESC
         LIMIT 2
    ), near AS MATERIALIZED (
        SELECT n.rank, n.id, n.chunks
          FROM files f
         CROSS JOIN LATERAL (
                   (SELECT 1 AS rank, fx.xorb_id AS id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.file_id = ANY (ARRAY[f.file_id])
                       AND fx.xorb_id > first_id
                     ORDER BY fx.file_id, fx.xorb_id
                     LIMIT 63)
                   UNION ALL
                   (SELECT 3, fx.xorb_id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.file_id = ANY (ARRAY[f.file_id])
                       AND fx.xorb_id < first_id
                     ORDER BY fx.file_id DESC, fx.xorb_id DESC
                     LIMIT 63)) n
        UNION ALL
        (SELECT 2, o.xorb_id, '{}'
           FROM xet.xorb_repos o
          WHERE o.repo_id = ANY (ARRAY[repo_row])
            AND o.xorb_id > first_id
          ORDER BY o.repo_id, o.xorb_id
          LIMIT 63)
        UNION ALL
        (SELECT 4, o.xorb_id, '{}'
           FROM xet.xorb_repos o
          WHERE o.repo_id = ANY (ARRAY[repo_row])
            AND o.xorb_id < first_id
          ORDER BY o.repo_id DESC, o.xorb_id DESC
          LIMIT 63)
        UNION ALL
        (SELECT 2, o.xorb_id, '{}'
           FROM xet.xorb_subjects o
          WHERE o.subject = ANY (ARRAY[sender])
            AND o.xorb_id > first_id
          ORDER BY o.subject, o.xorb_id
          LIMIT 63)
        UNION ALL
        (SELECT 4, o.xorb_id, '{}'
           FROM xet.xorb_subjects o
          WHERE o.subject = ANY (ARRAY[sender])
            AND o.xorb_id < first_id
          ORDER BY o.subject DESC, o.xorb_id DESC
          LIMIT 63)
    ), nearest AS MATERIALIZED (
        SELECT x.id, x.chunk_count, n.rank, abs(x.id - first_id) AS distance
          FROM (SELECT n.id, min(n.rank) AS rank
                  FROM near n
                 GROUP BY n.id) n
         CROSS JOIN LATERAL (SELECT x.id, x.chunk_count FROM xet.xorbs x
                              WHERE x.id = n.id
                                AND x.damaged_at IS NULL
                             OFFSET 0) x
         ORDER BY n.rank, distance
         LIMIT 63
    ), shown AS MATERIALIZED (
        SELECT n.id, n.chunk_count, n.rank, n.distance,
               CASE WHEN NOT any_repo
                    THEN xet.xorb_seen(n.id, n.chunk_count, any_repo, repo,
                                       subject, 0)
                         + CASE WHEN NOT wide
                                THEN (SELECT coalesce(range_agg(c), '{}')
                                        FROM near f, unnest(f.chunks) AS c
                                       WHERE f.id = n.id)
                                ELSE '{}'
                           END
               END AS chunks
          FROM nearest n
    )
    SELECT s.id, s.chunks
      FROM (SELECT n.id, n.chunks, n.rank,
                   sum(n.chunk_count) OVER w AS total,
                   sum(n.chunk_count) FILTER (WHERE n.rank IN (2, 4))
                       OVER w AS sent
              FROM shown n
             WHERE any_repo OR NOT isempty(n.chunks)
                OR wide AND n.chunk_count > 1
            WINDOW w AS (ORDER BY n.rank, n.distance)) s
     WHERE s.total <= 65536 - first_count
       AND (s.rank IN (1, 3) OR s.sent <= 64 * first_count);
END;
$$;


-- Returns the xorbs of the response to a dedup query for a chunk, at most 64
-- xorbs and 65,536 chunks.  The first row is the xorb that has the most chunks
-- after that chunk, since a client extends a match over the chunks that
-- follow.  The other rows are those of xet.xorbs_near().
--
-- The hash is looked up as a one-element array, and is part of the order: so
-- only the primary key gives this order.  With "=", the index chunks_xorb
-- would also give the order: a plan made for an empty table uses the index
-- that was created first, and after a restore this may be chunks_xorb.
--
-- With a repo, only the chunks of xet.xorb_seen() and the chunks that visible
-- files use are shown.  seen has the first chunk and the end of each range, as
-- integers in network byte order; NULL if all chunks may be shown.  With wide,
-- all chunks are shown, except those of xorbs of one chunk, whose names are
-- the hashes of chunks.
--
-- The work is bounded, whatever other users have stored; anything beyond a
-- bound is a miss, which only costs an upload.  A chunk may be in 100,000
-- xorbs.  The function checks the 8 oldest xorbs, which nobody can displace,
-- and the 8 newest xorbs, which a young repo most likely has.  A xorb may be
-- in 100,000 files of other users.  If the caller sent none of these 16 xorbs,
-- 16 of the oldest and 16 of the newest files are checked, in equal shares for
-- the xorbs that files use.
--
-- A miss takes the same work whether or not other users have the chunk: ids
-- that do not exist are looked up until there are 16 xorbs and 32 files.  Most
-- queries are misses, so the bounds are small, and only a hit takes the second
-- statement.
--
-- recorded: whether the xorb is already recorded as advertised today.

CREATE FUNCTION xet.chunk_find(chunk bytea, wide boolean, any_repo boolean,
    repo text, subject bytea)
    RETURNS TABLE (hash bytea, chunk_count integer, raw_size bigint,
                   stored_size bigint, hashes bytea, raw_ends bytea,
                   recorded boolean, copy_id integer, seen bytea)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 64
AS $$
#variable_conflict use_variable
DECLARE
    repo_row  bigint;
    sender    bytea := sha256(subject);
    best      record;
    shown     int4multirange;
BEGIN
    IF wide IS NULL OR any_repo IS NULL OR repo IS NULL THEN
        RETURN;
    END IF;

    -- most queries are misses; without repos there is nothing to hide

    IF any_repo AND NOT EXISTS (SELECT FROM xet.chunks c
                                 WHERE c.hash = ANY (ARRAY[chunk])
                                 ORDER BY c.hash)
    THEN
        RETURN;
    END IF;

    repo_row := coalesce((SELECT r.id FROM xet.repos r WHERE r.name = repo),
                         -1);

    WITH found AS MATERIALIZED (
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = ANY (ARRAY[chunk])
          ORDER BY c.hash, c.xorb_id
          LIMIT 8)
        UNION
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = ANY (ARRAY[chunk])
          ORDER BY c.hash DESC, c.xorb_id DESC
          LIMIT 8)
    ), candidates AS MATERIALIZED (
        SELECT c.xorb_id AS id, c.idx, x.chunk_count,
               CASE
                   WHEN any_repo
                   THEN x.chunk_count IS NOT NULL
                   ELSE (EXISTS (SELECT FROM xet.xorb_repos o
                                  WHERE o.xorb_id = c.xorb_id
                                    AND o.repo_id = repo_row
                                 OFFSET 0)
                         OR EXISTS (SELECT FROM xet.xorb_subjects o
                                     WHERE o.xorb_id = c.xorb_id
                                       AND o.subject = sender
                                       AND o.chunks @> c.idx
                                    OFFSET 0)
                         OR (wide AND x.chunk_count > 1))
                        AND x.chunk_count IS NOT NULL
               END AS had,
               NOT any_repo
                   AND EXISTS (SELECT FROM xet.file_xorbs fx
                                WHERE fx.xorb_id = ANY (ARRAY[c.xorb_id])
                                ORDER BY fx.xorb_id, fx.file_id
                               OFFSET 0) AS used
          FROM (SELECT f.xorb_id, f.idx FROM found f
                UNION ALL
                SELECT -g, 0 FROM generate_series(1, 16) AS g
                 WHERE NOT any_repo
                   AND g > (SELECT count(*) FROM found)) c
          LEFT JOIN LATERAL (SELECT x.chunk_count FROM xet.xorbs x
                              WHERE x.id = c.xorb_id
                                AND x.damaged_at IS NULL
                             OFFSET 0) x ON true
    ), files AS MATERIALIZED (
        SELECT c.id, c.idx, c.chunk_count, fx.file_id, fx.chunks
          FROM candidates c
         CROSS JOIN LATERAL (
                   (SELECT fx.file_id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.xorb_id = ANY (ARRAY[c.id])
                     ORDER BY fx.xorb_id, fx.file_id
                     LIMIT (SELECT 16 / greatest(count(*), 1)
                              FROM candidates WHERE used))
                   UNION ALL
                   (SELECT fx.file_id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.xorb_id = ANY (ARRAY[c.id])
                     ORDER BY fx.xorb_id DESC, fx.file_id DESC
                     LIMIT (SELECT 16 / greatest(count(*), 1)
                              FROM candidates WHERE used))) fx
         WHERE NOT any_repo
           AND NOT EXISTS (SELECT FROM candidates WHERE had)
    ), visible AS MATERIALIZED (
        SELECT f.id, f.idx, f.chunk_count, f.chunks
          FROM (SELECT f.* FROM files f
                UNION ALL
                SELECT NULL, 0, NULL, -g, '{}'
                  FROM generate_series(1, 32) AS g
                 WHERE NOT any_repo
                   AND NOT EXISTS (SELECT FROM candidates WHERE had)
                   AND g > (SELECT count(*) FROM files)) f
         WHERE EXISTS (SELECT FROM xet.usable(f.file_id, repo) OFFSET 0)
    )
    SELECT c.id, c.idx, c.chunk_count
      INTO best
      FROM (SELECT c.id, c.idx, c.chunk_count
              FROM candidates c
             WHERE c.had
            UNION ALL
            SELECT v.id, v.idx, v.chunk_count
              FROM visible v
             WHERE v.chunks @> v.idx) c
     WHERE c.chunk_count IS NOT NULL
     ORDER BY c.chunk_count - c.idx DESC, c.id
     LIMIT 1;

    IF NOT FOUND THEN
        RETURN;
    END IF;

    IF NOT any_repo THEN
        shown := xet.xorb_seen(best.id, best.chunk_count, any_repo, repo,
                               subject, 128);

        IF isempty(shown) AND NOT (wide AND best.chunk_count > 1) THEN
            RETURN;
        END IF;
    END IF;

    RETURN QUERY
    WITH chosen AS MATERIALIZED (
        SELECT best.id, shown AS seen, 0 AS n
        UNION ALL
        SELECT n.xorb_id, n.seen, 1
          FROM xet.xorbs_near(best.id, best.idx, best.chunk_count, wide,
                              any_repo, repo, subject) n
    )
    SELECT x.hash, x.chunk_count, x.raw_size, x.stored_size, x.chunk_hashes,
           x.raw_ends, x.advertised_on IS NOT DISTINCT FROM xet.today(),
           x.copy_id,
           CASE WHEN NOT any_repo AND NOT wide
                THEN (SELECT string_agg(int4send(lower(c))
                                        || int4send(upper(c)), '')
                        FROM unnest(c.seen * int4multirange(
                                        int4range(0, x.chunk_count))) AS c)
           END
      FROM chosen c
     CROSS JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                          WHERE x.id = c.id
                         OFFSET 0) x
     ORDER BY c.n, c.id;
END;
$$;


-- Returns a part of the chunks that xet.chunk_find() may show to a caller, for
-- the filter of xet_chunk_filter (ngx_http_xet_chunk_filter.c): the first eight
-- bytes of the hash of each chunk.  The response time shows whether a filter
-- has a chunk, so no scope may have a chunk that is hidden from the caller.
-- A visible chunk that is in no scope only costs an upload.
--
--     0  all chunks, for a caller that sees the whole store
--     1  the chunks that the subject has sent
--     2  the chunks of the xorbs that the repo has received
--     3  the chunks that files of the repo use
--     4  the chunks that files of public repos use
--     5  the chunks that listed files of the Hub use, for callers of the Hub
--
-- A part has the chunks of up to 256 references to xorbs, after a file and a
-- xorb.  In the scopes of files, after_xorb 0 starts after the whole file; in
-- the other scopes, after_file is not used.

CREATE FUNCTION xet.chunk_scope(scope integer, after_file bigint,
    after_xorb bigint, any_repo boolean, repo text, subject bytea)
    RETURNS TABLE (chunks bytea, next_file bigint, next_xorb bigint,
                   last boolean)
    LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 1
AS $$
#variable_conflict use_variable
DECLARE
    most     CONSTANT integer := 256;
    repo_row bigint;
    files    bigint[] := '{}';
    xorbs    bigint[];
    ranges   int4multirange[];
BEGIN
    IF any_repo IS NULL OR repo IS NULL OR scope NOT BETWEEN 0 AND 5
       OR scope = 0 AND NOT any_repo
       OR scope = 5 AND repo NOT LIKE '\_hub/%'
    THEN
        RETURN;
    END IF;

    repo_row := coalesce((SELECT r.id FROM xet.repos r WHERE r.name = repo),
                         -1);

    IF scope = 0 THEN
        SELECT array_agg(x.id ORDER BY x.id),
               array_agg('{[0,)}'::int4multirange)
          INTO xorbs, ranges
          FROM (SELECT x.id FROM xet.xorbs x
                 WHERE x.id > after_xorb
                 ORDER BY x.id
                 LIMIT most) x;

    ELSIF scope = 1 THEN
        SELECT array_agg(x.xorb_id ORDER BY x.xorb_id),
               array_agg(x.chunks ORDER BY x.xorb_id)
          INTO xorbs, ranges
          FROM (SELECT o.xorb_id, o.chunks FROM xet.xorb_subjects o
                 WHERE o.subject = ANY (ARRAY[sha256(subject)])
                   AND o.xorb_id > after_xorb
                 ORDER BY o.subject, o.xorb_id
                 LIMIT most) x;

    ELSIF scope = 2 THEN
        SELECT array_agg(x.xorb_id ORDER BY x.xorb_id),
               array_agg('{[0,)}'::int4multirange)
          INTO xorbs, ranges
          FROM (SELECT o.xorb_id FROM xet.xorb_repos o
                 WHERE o.repo_id = ANY (ARRAY[repo_row])
                   AND o.xorb_id > after_xorb
                 ORDER BY o.repo_id, o.xorb_id
                 LIMIT most) x;

    ELSE
        -- the rest of a file comes first

        next_file := after_file - CASE WHEN after_xorb > 0 THEN 1 ELSE 0 END;

        IF scope = 3 THEN
            SELECT array_agg(x.file_id ORDER BY x.file_id)
              INTO files
              FROM (SELECT rf.file_id FROM xet.repo_files rf
                     WHERE rf.repo_id = ANY (ARRAY[repo_row])
                       AND rf.file_id > next_file
                     ORDER BY rf.repo_id, rf.file_id
                     LIMIT most) x;

            next_file := files[most];

        ELSE
            -- one file after the other, however many repos have it

            FOR i IN 1 .. most LOOP

                IF scope = 4 THEN
                    next_file := (SELECT rf.public_file FROM xet.repo_files rf
                                   WHERE rf.public_file > next_file
                                   ORDER BY rf.public_file
                                   LIMIT 1);
                ELSE
                    next_file := (SELECT rf.listed_file FROM xet.repo_files rf
                                   WHERE rf.listed_file > next_file
                                   ORDER BY rf.listed_file, rf.repo_id
                                   LIMIT 1);
                END IF;

                EXIT WHEN next_file IS NULL;

                IF scope = 4
                   OR EXISTS (SELECT FROM xet.hub_listed(next_file) OFFSET 0)
                THEN
                    files := files || next_file;
                END IF;
            END LOOP;
        END IF;

        -- LIMIT keeps the order of the files: only a nested loop can join them,
        -- and a sort would read all xorbs of large files for each part

        SELECT array_agg(x.file_id ORDER BY x.file_id, x.xorb_id),
               array_agg(x.xorb_id ORDER BY x.file_id, x.xorb_id),
               array_agg(x.chunks ORDER BY x.file_id, x.xorb_id)
          INTO files, xorbs, ranges
          FROM (SELECT f.file_id, fx.xorb_id, fx.chunks
                  FROM unnest(files) AS f (file_id)
                 CROSS JOIN LATERAL
                       (SELECT fx.xorb_id, fx.chunks FROM xet.file_xorbs fx
                         WHERE fx.file_id = ANY (ARRAY[f.file_id])
                           AND (f.file_id > after_file
                                OR fx.xorb_id > after_xorb)
                         ORDER BY fx.file_id, fx.xorb_id
                         LIMIT most) fx
                 LIMIT most) x;

        IF cardinality(xorbs) = most THEN
            next_file := files[most];
        END IF;
    END IF;

    last := coalesce(cardinality(xorbs), 0) < most
            AND (scope < 3 OR next_file IS NULL);
    next_xorb := xorbs[most];

    -- Many small files share a xorb: its rows are read once.  A filter has at
    -- most one chunk less.

    chunks := (SELECT string_agg(substr(c.hash, 1, 8), '')
                 FROM (SELECT c.hash
                         FROM (SELECT x.xorb_id, range_agg(r) AS chunks
                                 FROM unnest(xorbs, ranges)
                                          AS x (xorb_id, chunks),
                                      unnest(x.chunks) AS r
                                GROUP BY x.xorb_id) x
                        CROSS JOIN LATERAL
                              (SELECT c.hash FROM xet.chunks c
                                WHERE c.xorb_id = x.xorb_id
                                  AND x.chunks @> c.idx
                               OFFSET 0) c
                        LIMIT 170001) c);
    next_file := coalesce(next_file, 0);
    next_xorb := coalesce(next_xorb, 0);
    chunks := coalesce(chunks, '');

    RETURN NEXT;
END;
$$;


-- Records that xorbs are advertised today: one row update per xorb and day,
-- however many responses name the xorb.  Returns the number of these xorbs
-- that exist: a xorb may have been collected since it was found.

CREATE FUNCTION xet.xorb_advertised(xorbs bytea[])
    RETURNS integer
    LANGUAGE sql
AS $$
    UPDATE xet.xorbs SET advertised_on = xet.today()
     WHERE id IN (SELECT x.id
                    FROM unnest($1) AS u(hash)
                    JOIN xet.xorbs x ON x.hash = u.hash
                   WHERE x.advertised_on IS DISTINCT FROM xet.today()
                   ORDER BY x.id
                     FOR NO KEY UPDATE OF x);

    SELECT count(*)::integer
      FROM (SELECT DISTINCT u.hash FROM unnest($1) AS u(hash)) u
      JOIN xet.xorbs x ON x.hash = u.hash;
$$;


-- Records that copies were found missing, truncated or damaged, and returns
-- those copies that a row still names.  If a xorb was collected or healed
-- after the look-up, nothing needs its copy, and the copy is not returned.

CREATE FUNCTION xet.copies_lost(xorbs bytea[], copy_ids integer[])
    RETURNS TABLE (xorb bytea, copy integer)
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.xorb_damaged($1, $2);

    RETURN QUERY
    SELECT x.hash, x.copy_id
      FROM unnest($1, $2) AS d(hash, copy_id)
      JOIN xet.xorbs x ON x.hash = d.hash AND x.copy_id = d.copy_id;
END;
$$;
