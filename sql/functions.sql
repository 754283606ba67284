-- What the module calls, one function a statement.  Applied again whenever
-- this file changes; nothing here holds data.


-- Replaced as a whole: a function whose result changes can't be replaced.

DROP FUNCTION IF EXISTS xet.file_terms, xet.files_terms, xet.xorb_slices,
    xet.shard_slices, xet.slice_secret, xet.xorb_seen, xet.file_seen,
    xet.xorb_brought, xet.xorb_grant, xet.repo_row, xet.shard_had,
    xet.xorb_put, xet.xorb_heal, xet.xorb_get, xet.xorb_advertised,
    xet.xorb_damaged, xet.xorb_whole, xet.le4, xet.terms_moved,
    xet.store_claim, xet.store_confirm, xet.file_get,
    xet.file_open,
    xet.chunk_find, xet.shard_stage, xet.shard_put, xet.shard_unstage,
    xet.shard_batches, xet.shard_doubts, xet.shard_mend, xet.shard_files,
    xet.shard_known, xet.shard_terms,
    xet.telemetry_put, xet.sweep,
    xet.visible, xet.repo_forget, xet.repo_set_public, xet.repo_delete,
    xet.repo_create, xet.repo_add, xet.repo_list, xet.file_list,
    xet.file_prove,
    xet.zt_get, xet.zt_put, xet.zt_reports_get, xet.zt_reports_put;


-- A reader with a token of a repo sees the files of that repo and of public
-- ones; NULL is a store without repos, the empty name a token of no repo.
-- Both are one look-up, in however many repos the file is, and are asked for a
-- file that is not there, id -1, as well: else time tells what others have.
-- The condition is written out where it is used: a function of it would not
-- be inlined, and makes a lookup five times as expensive.  OFFSET 0 keeps the
-- planner from hashing all of repo_files for one file, which looks cheap to a
-- plan made while the table was small.


-- The size of a file and the packed terms that overlap bytes
-- first_byte..last_byte, in order, as far as 8 rows hold them; the caller asks
-- for the rest from there on.  A known file always gives a row; packed is NULL
-- when nothing of it overlaps.  One index probe for a usual file.

CREATE FUNCTION xet.file_terms(file bytea, first_byte bigint,
    last_byte bigint, repo text)
    RETURNS TABLE (size bigint, first_offset bigint, packed bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT f.size, coalesce(t.first_offset, 0), coalesce(t.packed, f.packed)
      FROM (SELECT file_terms.file AS hash) w
      LEFT JOIN xet.files f ON f.hash = w.hash
      LEFT JOIN LATERAL (
               SELECT s.first_offset, s.packed
                 FROM xet.terms s
                WHERE f.packed IS NULL
                  AND s.file_id = f.id
                  AND s.first_offset <= file_terms.last_byte
                  AND s.first_offset >= coalesce((
                          SELECT b.first_offset
                            FROM xet.terms b
                           WHERE b.file_id = f.id
                             AND b.first_offset <= file_terms.first_byte
                           ORDER BY b.first_offset DESC
                           LIMIT 1), 0)
                  AND s.end_offset > file_terms.first_byte
                ORDER BY s.first_offset
                LIMIT 8
           ) t ON true
     WHERE CASE
               WHEN file_terms.repo IS NULL THEN f.id IS NOT NULL
               ELSE EXISTS (SELECT FROM xet.repo_files rf
                             WHERE rf.file_id = coalesce(f.id, -1)
                               AND rf.repo_id = (SELECT r.id
                                                   FROM xet.repos r
                                                  WHERE r.name
                                                        = file_terms.repo)
                            OFFSET 0)
                    OR EXISTS (SELECT FROM xet.repo_files rf
                                WHERE rf.public_file = coalesce(f.id, -1)
                               OFFSET 0)
           END;
$$;


-- A file for a reader: its size, its SHA-256 where that is proven, and the
-- packed terms around a byte, up to 256 of them.  A usual file gives all of
-- its terms, wherever the byte is.

CREATE FUNCTION xet.file_open(file bytea, byte_at bigint, repo text)
    RETURNS TABLE (size bigint, sha256 bytea, first_offset bigint,
                   packed bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT f.size, CASE WHEN f.sha256_proven THEN f.sha256 END,
           coalesce(t.first_offset, 0), coalesce(t.packed, f.packed)
      FROM (SELECT file_open.file AS hash) w
      LEFT JOIN xet.files f ON f.hash = w.hash
      LEFT JOIN LATERAL (
               SELECT s.first_offset, s.packed
                 FROM xet.terms s
                WHERE f.packed IS NULL
                  AND s.file_id = f.id
                  AND s.first_offset <= file_open.byte_at
                ORDER BY s.first_offset DESC
                LIMIT 1
           ) t ON true
     WHERE CASE
               WHEN file_open.repo IS NULL THEN f.id IS NOT NULL
               ELSE EXISTS (SELECT FROM xet.repo_files rf
                             WHERE rf.file_id = coalesce(f.id, -1)
                               AND rf.repo_id = (SELECT r.id
                                                   FROM xet.repos r
                                                  WHERE r.name
                                                        = file_open.repo)
                            OFFSET 0)
                    OR EXISTS (SELECT FROM xet.repo_files rf
                                WHERE rf.public_file = coalesce(f.id, -1)
                               OFFSET 0)
           END;
$$;


-- Several whole files in one statement, from byte first_byte of file
-- first_file on, likewise as far as 8 rows hold them; n is the place in the
-- array, files that are not visible give no row.

CREATE FUNCTION xet.files_terms(files bytea[], first_file bigint,
    first_byte bigint, repo text)
    RETURNS TABLE (n bigint, size bigint, first_offset bigint, packed bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT w.n, f.size, coalesce(t.first_offset, 0),
           coalesce(t.packed, f.packed)
      FROM unnest(files) WITH ORDINALITY AS w(hash, n)
      LEFT JOIN LATERAL (SELECT f.id, f.size, f.packed
                           FROM xet.files f
                          WHERE f.hash = w.hash
                         OFFSET 0) f ON true
      LEFT JOIN LATERAL (
               SELECT s.first_offset, s.packed
                 FROM xet.terms s
                WHERE f.packed IS NULL
                  AND s.file_id = f.id
                  AND s.first_offset >= coalesce((
                          SELECT b.first_offset
                            FROM xet.terms b
                           WHERE b.file_id = f.id
                             AND w.n = first_file
                             AND b.first_offset <= first_byte
                           ORDER BY b.first_offset DESC
                           LIMIT 1), 0)
                  AND (w.n > first_file OR s.end_offset > first_byte)
                ORDER BY s.first_offset
                LIMIT 8
           ) t ON true
     WHERE w.n >= first_file
       AND CASE
               WHEN files_terms.repo IS NULL THEN f.id IS NOT NULL
               ELSE EXISTS (SELECT FROM xet.repo_files rf
                             WHERE rf.file_id = coalesce(f.id, -1)
                               AND rf.repo_id = (SELECT r.id
                                                   FROM xet.repos r
                                                  WHERE r.name
                                                        = files_terms.repo)
                            OFFSET 0)
                    OR EXISTS (SELECT FROM xet.repo_files rf
                                WHERE rf.public_file = coalesce(f.id, -1)
                               OFFSET 0)
           END
     ORDER BY w.n, 3
     LIMIT 8;
$$;


-- Parts of the chunk lists of xorbs, one row for each element, in order:
-- hashes and ends of chunks starts[i]..ends[i] - 1.  The ends begin with the
-- one before starts[i], four bytes of zero where there is none.  All NULL
-- for a xorb that is not stored; ends NULL for a range that is not inside.
-- tag and stored_size are of the copy that stored_ends are of; whole is false
-- where it is known to be damaged.

CREATE FUNCTION xet.xorb_slices(xorbs bytea[], starts integer[],
    ends integer[], with_hashes boolean)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, tag integer, stored_size bigint,
                   whole boolean)
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
           x.tag, x.stored_size, x.damaged_at IS NULL
      FROM unnest(xorbs, starts, ends) WITH ORDINALITY AS w(hash, s, e, n)
      LEFT JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                          WHERE x.hash = w.hash
                         OFFSET 0) x ON true
     ORDER BY w.n;
$$;


-- Which chunks of a xorb a repo and a subject may name without a proof: those
-- that one of them has had, and those of files that the repo sees, of which
-- the 64 oldest and the 64 newest are looked at.  Without a repo all of the
-- store is seen, but that a xorb of one chunk has its hash for a name proves
-- nothing: some file has to use it.
--
-- For a xorb that is not stored, id -1 of one chunk, it takes the same work,
-- and whoever asks must ask then, too: else time tells what others have.  So
-- files that do not exist are looked for until there are as many as at_least:
-- 128 where it must not show whether there is anything, else 0.
--
-- The plans are kept, by sessions that have seen the tables empty.  BETWEEN
-- leaves them one index that gives the order: with "=" the one that begins
-- with the file would, too, and all of it be walked.

CREATE FUNCTION xet.xorb_seen(id bigint, chunk_count integer, repo text,
    subject bytea, at_least integer)
    RETURNS int4multirange
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    had      int4multirange;
    repo_row bigint;
BEGIN
    IF repo IS NULL THEN
        IF chunk_count > 1
           OR EXISTS (SELECT FROM xet.file_xorbs fx
                       WHERE fx.xorb_id BETWEEN id AND id)
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

    IF repo IS NULL OR had @> int4range(0, NULL) THEN
        RETURN had;
    END IF;

    RETURN had + (
        WITH found AS MATERIALIZED (
            (SELECT fx.file_id, fx.chunks
               FROM xet.file_xorbs fx
              WHERE fx.xorb_id BETWEEN id AND id
              ORDER BY fx.xorb_id, fx.file_id
              LIMIT 64)
            UNION ALL
            (SELECT fx.file_id, fx.chunks
               FROM xet.file_xorbs fx
              WHERE fx.xorb_id BETWEEN id AND id
              ORDER BY fx.xorb_id DESC, fx.file_id DESC
              LIMIT 64)
        ), visible AS MATERIALIZED (
            SELECT f.chunks
              FROM (SELECT f.file_id, f.chunks FROM found f
                    UNION ALL
                    SELECT -g, '{}' FROM generate_series(1, 128) AS g
                     WHERE g > (SELECT count(*) FROM found)
                       AND g <= at_least) f
             WHERE EXISTS (SELECT FROM xet.repo_files rf
                            WHERE rf.file_id = f.file_id
                              AND rf.repo_id = coalesce(repo_row, -1)
                           OFFSET 0)
                OR EXISTS (SELECT FROM xet.repo_files rf
                            WHERE rf.public_file = f.file_id
                           OFFSET 0)
        )
        SELECT coalesce(range_agg(c), '{}')
          FROM visible v, unnest(v.chunks) AS c);
END;
$$;


-- The slices that the terms of a shard name, for xet.xorb_slices().  own: the
-- term may name them; else its verification hash has to prove that the client
-- has the chunks, and must be of one at least whose hash goes nowhere in clear:
-- it is no name of a xorb, and clients do not ask for it.  With wide they were
-- shown other repos' chunks that they ask for.
--
-- With proof asked for, a xorb that a term may not name looks like one that
-- is not stored, and for both there is a slice as large as the one asked for,
-- which takes as long to send and to hash: of noise, so that no verification
-- hash is the one of it.

CREATE FUNCTION xet.shard_slices(xorbs bytea[], starts integer[],
    ends integer[], proof boolean, wide boolean, repo text, subject bytea)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, tag integer, stored_size bigint,
                   whole boolean, own boolean)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    owns  boolean[];
    noise text := md5(gen_random_uuid()::text || gen_random_uuid()::text);
BEGIN
    IF NOT proof THEN
        RETURN QUERY
        SELECT s.*, true FROM xet.xorb_slices(xorbs, starts, ends, true) s;
        RETURN;
    END IF;

    WITH wanted AS MATERIALIZED (
        SELECT w.hash, w.s, w.e, w.n
          FROM unnest(xorbs, starts, ends) WITH ORDINALITY AS w(hash, s, e, n)
    ), seen AS MATERIALIZED (
        SELECT w.hash, x.chunk_count, x.damaged_at,
               xet.xorb_seen(coalesce(x.id, -1), coalesce(x.chunk_count, 1),
                             repo, subject, 128) AS chunks
          FROM (SELECT DISTINCT w.hash FROM wanted w) w
          LEFT JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                              WHERE x.hash = w.hash
                             OFFSET 0) x ON true
    )
    SELECT array_agg(CASE
               WHEN s.chunks @> int4range(w.s, w.e) THEN true
               WHEN (wide OR xet.slice_secret(w.hash, w.s, w.e))
                    AND s.chunk_count > 1 AND w.e <= s.chunk_count
                    AND s.damaged_at IS NULL
               THEN false
           END ORDER BY w.n)
      INTO owns
      FROM wanted w JOIN seen s ON s.hash = w.hash;

    RETURN QUERY
    WITH wanted AS MATERIALIZED (
        SELECT array_agg(CASE WHEN w.own IS NOT NULL THEN w.hash
                              ELSE sha256(textsend(noise)) END
                         ORDER BY w.n) AS xorbs
          FROM unnest(xorbs, owns) WITH ORDINALITY AS w(hash, own, n)
    )
    SELECT CASE WHEN d.n > 0 THEN ends[s.n] ELSE s.chunk_count END,
           CASE WHEN d.n > 0 THEN textsend(repeat(noise, d.n))
                ELSE s.hashes END,
           CASE WHEN d.n > 0 THEN textsend(repeat('....', d.n + 1))
                ELSE s.raw_ends END,
           CASE WHEN d.n > 0 THEN textsend(repeat('....', d.n + 1))
                ELSE s.stored_ends END,
           CASE WHEN d.n > 0 THEN 0 ELSE s.tag END,
           CASE WHEN d.n > 0 THEN 0 ELSE s.stored_size END,
           d.n > 0 OR s.whole, owns[s.n]
      FROM wanted w
     CROSS JOIN xet.xorb_slices(w.xorbs, starts, ends, true) WITH ORDINALITY
             AS s(chunk_count, hashes, raw_ends, stored_ends, tag, stored_size,
                  whole, n)
     CROSS JOIN LATERAL (SELECT CASE
                             WHEN owns[s.n] IS NULL AND starts[s.n] >= 0
                                  AND ends[s.n] <= 8192
                             THEN ends[s.n] - starts[s.n]
                             ELSE 0
                         END AS n
                         OFFSET 0) d
     ORDER BY s.n;
END;
$$;


-- Whether one chunk of the range at least has a hash that goes nowhere in
-- clear: mostly the last, as the first is asked for.  Of a xorb that is not
-- stored its name is looked for.

CREATE FUNCTION xet.slice_secret(xorb bytea, first integer, last integer)
    RETURNS boolean
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
BEGIN
    RETURN EXISTS (
        SELECT FROM (SELECT xorb AS hash) w
          LEFT JOIN LATERAL (SELECT x.chunk_hashes FROM xet.xorbs x
                              WHERE x.hash = w.hash AND last <= x.chunk_count
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
           AND NOT EXISTS (SELECT FROM xet.xorbs y WHERE y.hash = c.hash
                           OFFSET 0));
END;
$$;


-- A repo and a subject have sent all of a xorb; whether that was news of one
-- of them.  Without a repo only xorbs of one chunk are noted, by subject.

CREATE FUNCTION xet.xorb_brought(xorb bytea, repo text, subject bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    xorb_row bigint;
    repo_row bigint;
    news     boolean := false;
BEGIN
    IF repo IS NULL AND subject IS NULL THEN
        RETURN false;
    END IF;

    SELECT x.id INTO xorb_row
      FROM xet.xorbs x
     WHERE x.hash = xorb AND (repo IS NOT NULL OR x.chunk_count = 1);

    IF xorb_row IS NULL THEN
        RETURN false;
    END IF;

    IF subject IS NOT NULL THEN
        INSERT INTO xet.xorb_subjects AS o (xorb_id, subject, chunks)
        SELECT xorb_row, sha256(subject), '{[0,)}'
        ON CONFLICT ON CONSTRAINT xorb_subjects_pkey
           DO UPDATE SET chunks = excluded.chunks
                   WHERE o.chunks <> excluded.chunks;

        news := FOUND;
    END IF;

    IF repo IS NOT NULL THEN
        repo_row := xet.repo_row(repo);

        INSERT INTO xet.xorb_repos (xorb_id, repo_id)
        VALUES (xorb_row, repo_row)
        ON CONFLICT DO NOTHING;

        news := news OR FOUND;
    END IF;

    RETURN news;
END;
$$;


-- The row of a repo, which begins with its first upload.

CREATE FUNCTION xet.repo_row(repo text)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    found_id bigint;
BEGIN
    SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;

    IF found_id IS NULL THEN
        INSERT INTO xet.repos (name) VALUES ($1) ON CONFLICT DO NOTHING;
        SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;
    END IF;

    IF found_id IS NULL THEN
        RAISE EXCEPTION 'the repo was deleted meanwhile'
              USING ERRCODE = '40001';
    END IF;

    RETURN found_id;
END;
$$;


-- Registers a xorb and its eligible chunks (given by index), whose bytes are
-- durable in the copy of that tag, and who has sent it.  The row that stands:
-- with that tag it is ours, with another one the xorb was there already, by
-- this or by another node, and our copy is not used.  news: it was not there;
-- with a repo, neither it nor the subject had sent it before, since what others
-- have is not told.

CREATE FUNCTION xet.xorb_put(xorb bytea, chunk_hashes bytea, raw_ends bytea,
    stored_ends bytea, raw_size bigint, stored_size bigint,
    eligible integer[], tag integer, digest bytea, repo text DEFAULT NULL,
    subject bytea DEFAULT NULL)
    RETURNS TABLE (the_tag integer, the_size bigint, the_digest bytea,
                   whole boolean, news boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    new_id  bigint;
    brought boolean;
BEGIN
    INSERT INTO xet.xorbs AS x (hash, chunk_count, raw_size, stored_size,
                                chunk_hashes, raw_ends, stored_ends, tag,
                                digest)
    VALUES (xorb, length(chunk_hashes) / 32, raw_size, stored_size,
            chunk_hashes, raw_ends, stored_ends, tag, digest)
    ON CONFLICT DO NOTHING
    RETURNING x.id INTO new_id;

    IF new_id IS NOT NULL THEN
        INSERT INTO xet.chunks (hash, xorb_id, idx)
        SELECT substring(chunk_hashes FROM 32 * i + 1 FOR 32), new_id, min(i)
          FROM unnest(eligible) AS i
         GROUP BY 1
         ORDER BY 1
        ON CONFLICT DO NOTHING;
    END IF;

    brought := xet.xorb_brought(xorb, repo, subject);

    RETURN QUERY
    SELECT x.tag, x.stored_size, x.digest, x.damaged_at IS NULL,
           CASE WHEN repo IS NULL THEN new_id IS NOT NULL ELSE brought END
      FROM xet.xorbs x
     WHERE x.hash = xorb;
END;
$$;


-- Puts another copy of a known xorb in the place of one that is not whole: the
-- row, and with it all terms that lead to it.  The row that stands: with tag
-- it is ours; where the tag was not old_tag any more, somebody else was first
-- and nothing is changed.
--
-- The lock keeps out shards that are being committed: they look at the tags of
-- their terms under FOR KEY SHARE (xet.shard_terms), so either their terms are
-- there when these are moved, or they see the new tag and are refused.  That
-- holds where each statement sees what was committed before it began, which is
-- what sessions of the module ask for.
--
-- One heal of a xorb takes one session.  Others that come meanwhile, or who
-- would have to wait for a large shard, give up after three seconds (55P03),
-- and are told to come again.  Who sends or names the xorb meanwhile has the
-- lock_timeout of the session for that.

CREATE FUNCTION xet.xorb_heal(xorb bytea, stored_ends bytea,
    stored_size bigint, tag integer, digest bytea, old_tag integer)
    RETURNS TABLE (the_tag integer, the_size bigint, the_digest bytea,
                   whole boolean)
    LANGUAGE plpgsql
    SET lock_timeout = '3s'
AS $$
#variable_conflict use_variable
DECLARE
    xorb_row bigint;
BEGIN
    SELECT x.id INTO xorb_row
      FROM xet.xorbs x
     WHERE x.hash = xorb AND x.tag = old_tag
       FOR UPDATE;

    IF xorb_row IS NOT NULL THEN
        UPDATE xet.xorbs AS x
           SET stored_ends = stored_ends, stored_size = stored_size,
               tag = tag, digest = digest, damaged_at = NULL
         WHERE x.id = xorb_row;

        -- in one order everywhere, or two xorbs could wait for each other

        PERFORM 1
           FROM xet.files f
          WHERE f.id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                          WHERE fx.xorb_id = xorb_row)
          ORDER BY f.id
            FOR NO KEY UPDATE;

        UPDATE xet.files AS f
           SET packed = xet.terms_moved(f.packed, xorb, stored_ends, tag)
         WHERE f.id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                         WHERE fx.xorb_id = xorb_row)
           AND f.packed IS NOT NULL;

        UPDATE xet.terms AS t
           SET packed = xet.terms_moved(t.packed, xorb, stored_ends, tag)
         WHERE t.file_id IN (SELECT fx.file_id FROM xet.file_xorbs fx
                              WHERE fx.xorb_id = xorb_row)
           AND position(xorb IN t.packed) > 0;
    END IF;

    RETURN QUERY
    SELECT x.tag, x.stored_size, x.digest, x.damaged_at IS NULL
      FROM xet.xorbs x
     WHERE x.hash = xorb;
END;
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


-- Packed terms (src/core/plan/xet_term.h), where those of one xorb lead to
-- another copy of it: chunks and raw lengths stay, stored bytes and tag are
-- those of the copy.

CREATE FUNCTION xet.terms_moved(packed bytea, xorb bytea, stored_ends bytea,
    tag integer)
    RETURNS bytea
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    moved  bytea := ''::bytea;
    done   integer := 0;                   -- bytes of packed that are in moved
    found  integer;                        -- behind them, from 1
    start  integer;                        -- of the term
    first  integer;                        -- chunk
    last   integer;
BEGIN
    LOOP
        found := position(xorb IN substring(packed FROM done + 1));

        EXIT WHEN found = 0;

        start := (done + found - 1) / 52 * 52;

        -- all terms before this one are of other xorbs; it may be, too, where
        -- the bytes of the hash stand across two terms

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
                     || xet.le4(tag);
        ELSE
            moved := moved || substring(packed FROM start + 1 FOR 52);
        END IF;

        done := start + 52;
    END LOOP;

    RETURN moved || substring(packed FROM done + 1);
END;
$$;


-- A xorb for who may know all of it.

CREATE FUNCTION xet.xorb_get(xorb bytea, repo text DEFAULT NULL,
    subject bytea DEFAULT NULL)
    RETURNS TABLE (stored_size bigint, tag integer, whole boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.stored_size, x.tag, x.damaged_at IS NULL
      FROM (SELECT xorb_get.xorb AS hash) w
      LEFT JOIN xet.xorbs x ON x.hash = w.hash
     WHERE CASE WHEN repo IS NULL THEN x.id IS NOT NULL
                ELSE xet.xorb_seen(coalesce(x.id, -1),
                                   coalesce(x.chunk_count, 1), repo, subject,
                                   128)
                     @> int4range(0, coalesce(x.chunk_count, 1))
           END;
$$;


-- A row for a xorb that need not be sent, since whoever asks may name all of
-- it in a shard; noted as in xet.chunk_find().

CREATE FUNCTION xet.xorb_grant(xorb bytea, proof boolean, repo text,
    subject bytea)
    RETURNS TABLE (stored_size bigint, tag integer, whole boolean,
                   noted boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.stored_size, x.tag, x.damaged_at IS NULL,
           x.advertised_on IS NOT DISTINCT FROM current_date
      FROM (SELECT xorb_grant.xorb AS hash) w
      LEFT JOIN xet.xorbs x ON x.hash = w.hash
     WHERE CASE WHEN NOT proof THEN x.id IS NOT NULL
                ELSE xet.xorb_seen(coalesce(x.id, -1),
                                   coalesce(x.chunk_count, 1), repo, subject,
                                   128)
                     @> int4range(0, coalesce(x.chunk_count, 1))
           END;
$$;


-- Somebody has found the copies of those tags missing, cut or damaged.

CREATE FUNCTION xet.xorb_damaged(xorbs bytea[], tags integer[])
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    UPDATE xet.xorbs SET damaged_at = now()
     WHERE id IN (SELECT x.id
                    FROM xet.xorbs x
                    JOIN unnest($1, $2) AS d(hash, tag)
                      ON d.hash = x.hash AND d.tag = x.tag
                   WHERE x.damaged_at IS NULL
                   ORDER BY x.id
                     FOR NO KEY UPDATE OF x);

    SELECT count(*)::integer
      FROM unnest($1, $2) AS d(hash, tag)
      JOIN xet.xorbs x ON x.hash = d.hash AND x.tag = d.tag;
$$;


-- Somebody has read all of it, and it is as the row says.

CREATE FUNCTION xet.xorb_whole(xorb bytea, tag integer)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE xet.xorbs x SET damaged_at = NULL
     WHERE x.hash = $1 AND x.tag = $2 AND x.damaged_at IS NOT NULL;

    RETURN FOUND;
END;
$$;


-- The identity of the folder that the rows describe; with one given, that one
-- where there is none yet.  No row: none was given, and there is none.

CREATE FUNCTION xet.store_claim(identity text)
    RETURNS TABLE (the_identity text, confirmed boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    IF identity IS NOT NULL AND NOT EXISTS (SELECT FROM xet.store) THEN
        INSERT INTO xet.store AS s (identity) VALUES (identity)
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


-- The xorbs that answer a dedup query for a chunk.  First the one with most
-- chunks from there on, since a client extends a match over the rows that
-- follow; then the other xorbs of the newest file that uses it, because who
-- has the beginning of a file mostly has the rest of it, and asks only about
-- one chunk in a thousand.  At most 64 xorbs and 65,536 chunks.
--
-- With a repo only what xet.xorb_seen() gives, and what visible files use, is
-- shown: seen has the first chunk and the end of each range, as integers in
-- network byte order; NULL where all may be shown.  With wide all are shown
-- but xorbs of one chunk, whose names are the hashes of chunks.
--
-- The work is bounded, whatever others have stored; what is beyond a bound is
-- a miss, which costs an upload and nothing else.  A chunk may be in 100,000
-- xorbs: the 16 oldest are looked at, which nobody can push out, and the 16
-- newest, which a repo that is young has most likely.  A xorb may be in
-- 100,000 files of others: where none of the 32 was sent by who asks, 64 of
-- the oldest and 64 of the newest files are looked at, each used xorb has the
-- same share of them.
--
-- A miss is the same work for a chunk of others and for one that is not there:
-- what is missing to 32 xorbs and to 128 files is looked for by ids that do not
-- exist.
--
-- noted tells whether today's answer is on record already.

CREATE FUNCTION xet.chunk_find(chunk bytea, wide boolean, repo text,
    subject bytea)
    RETURNS TABLE (hash bytea, chunk_count integer, raw_size bigint,
                   stored_size bigint, hashes bytea, raw_ends bytea,
                   noted boolean, tag integer, seen bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    WITH me AS MATERIALIZED (
        SELECT coalesce((SELECT r.id FROM xet.repos r
                          WHERE r.name = repo), -1) AS repo_id,
               sha256(chunk_find.subject) AS subject
    ), found AS MATERIALIZED (
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = chunk_find.chunk
          ORDER BY c.xorb_id
          LIMIT 16)
        UNION
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = chunk_find.chunk
          ORDER BY c.xorb_id DESC
          LIMIT 16)
    ), candidates AS MATERIALIZED (
        SELECT c.xorb_id AS id, c.idx, x.chunk_count,
               CASE
                   WHEN repo IS NULL
                   THEN x.chunk_count IS NOT NULL
                   ELSE (EXISTS (SELECT FROM xet.xorb_repos o
                                  WHERE o.xorb_id = c.xorb_id
                                    AND o.repo_id = (SELECT me.repo_id
                                                       FROM me)
                                 OFFSET 0)
                         OR EXISTS (SELECT FROM xet.xorb_subjects o
                                     WHERE o.xorb_id = c.xorb_id
                                       AND o.subject = (SELECT me.subject
                                                          FROM me)
                                       AND o.chunks @> c.idx
                                    OFFSET 0)
                         OR (wide AND x.chunk_count > 1))
                        AND x.chunk_count IS NOT NULL
               END AS had,
               repo IS NOT NULL
                   AND EXISTS (SELECT FROM xet.file_xorbs fx
                                WHERE fx.xorb_id BETWEEN c.xorb_id
                                                 AND c.xorb_id
                               OFFSET 0) AS used
          FROM (SELECT f.xorb_id, f.idx FROM found f
                UNION ALL
                SELECT -g, 0 FROM generate_series(1, 32) AS g
                 WHERE repo IS NOT NULL
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
                     WHERE fx.xorb_id BETWEEN c.id AND c.id
                     ORDER BY fx.xorb_id, fx.file_id
                     LIMIT (SELECT 64 / greatest(count(*), 1)
                              FROM candidates WHERE used))
                   UNION ALL
                   (SELECT fx.file_id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.xorb_id BETWEEN c.id AND c.id
                     ORDER BY fx.xorb_id DESC, fx.file_id DESC
                     LIMIT (SELECT 64 / greatest(count(*), 1)
                              FROM candidates WHERE used))) fx
         WHERE repo IS NOT NULL
           AND NOT EXISTS (SELECT FROM candidates WHERE had)
    ), shown AS MATERIALIZED (
        SELECT f.id, f.idx, f.chunk_count, f.chunks
          FROM (SELECT f.* FROM files f
                UNION ALL
                SELECT NULL, 0, NULL, -g, '{}'
                  FROM generate_series(1, 128) AS g
                 WHERE repo IS NOT NULL
                   AND NOT EXISTS (SELECT FROM candidates WHERE had)
                   AND g > (SELECT count(*) FROM files)) f
         WHERE EXISTS (SELECT FROM xet.repo_files rf
                        WHERE rf.file_id = f.file_id
                          AND rf.repo_id = (SELECT me.repo_id FROM me)
                       OFFSET 0)
            OR EXISTS (SELECT FROM xet.repo_files rf
                        WHERE rf.public_file = f.file_id
                       OFFSET 0)
    ), best AS MATERIALIZED (
        SELECT c.id,
               CASE WHEN repo IS NOT NULL
                    THEN xet.xorb_seen(c.id, c.chunk_count, repo, subject, 128)
               END AS seen
          FROM (SELECT c.id, c.chunk_count
                  FROM (SELECT c.id, c.idx, c.chunk_count
                          FROM candidates c
                         WHERE c.had
                        UNION ALL
                        SELECT s.id, s.idx, s.chunk_count
                          FROM shown s
                         WHERE s.chunks @> s.idx) c
                 WHERE c.chunk_count IS NOT NULL
                 ORDER BY c.chunk_count - c.idx DESC, c.id
                 LIMIT 1) c
    ), users AS MATERIALIZED (
        SELECT fx.file_id
          FROM best b
         CROSS JOIN LATERAL (SELECT fx.file_id
                               FROM xet.file_xorbs fx
                              WHERE fx.xorb_id BETWEEN b.id AND b.id
                              ORDER BY fx.xorb_id DESC, fx.file_id DESC
                              LIMIT 64) fx
    ), file AS MATERIALIZED (
        SELECT f.file_id
          FROM (SELECT u.file_id FROM users u
                UNION ALL
                SELECT -g FROM generate_series(1, 64) AS g
                 WHERE repo IS NOT NULL AND NOT wide
                   AND EXISTS (SELECT FROM best)
                   AND g > (SELECT count(*) FROM users)) f
         WHERE repo IS NULL OR wide
            OR EXISTS (SELECT FROM xet.repo_files rf
                        WHERE rf.file_id = f.file_id
                          AND rf.repo_id = (SELECT me.repo_id FROM me)
                       OFFSET 0)
            OR EXISTS (SELECT FROM xet.repo_files rf
                        WHERE rf.public_file = f.file_id
                       OFFSET 0)
         ORDER BY f.file_id DESC
         LIMIT 1
    ), rest AS MATERIALIZED (
        SELECT x.id,
               CASE WHEN repo IS NOT NULL
                    THEN xet.xorb_seen(x.id, x.chunk_count, repo, subject, 0)
                         + CASE WHEN wide THEN '{}' ELSE fx.chunks END
               END AS seen
          FROM file f
         CROSS JOIN LATERAL (SELECT fx.xorb_id, fx.chunks
                               FROM xet.file_xorbs fx
                              WHERE fx.file_id = f.file_id
                              ORDER BY fx.xorb_id
                              LIMIT 64) fx
         CROSS JOIN LATERAL (SELECT x.id, x.chunk_count FROM xet.xorbs x
                              WHERE x.id = fx.xorb_id
                                AND x.damaged_at IS NULL
                             OFFSET 0) x
         WHERE x.id NOT IN (SELECT b.id FROM best b)
         ORDER BY x.id
         LIMIT 63
    ), chosen AS MATERIALIZED (
        SELECT a.id, a.n, a.seen,
               sum(x.chunk_count) OVER (ORDER BY a.n, a.id) AS total
          FROM (SELECT b.id, b.seen, 0 AS n FROM best b
                UNION ALL
                SELECT r.id, r.seen, 1 FROM rest r) a
         CROSS JOIN LATERAL (SELECT x.chunk_count FROM xet.xorbs x
                              WHERE x.id = a.id
                             OFFSET 0) x
         WHERE repo IS NULL OR NOT isempty(a.seen)
            OR (wide AND x.chunk_count > 1)
    )
    SELECT x.hash, x.chunk_count, x.raw_size, x.stored_size, x.chunk_hashes,
           x.raw_ends, x.advertised_on IS NOT DISTINCT FROM current_date,
           x.tag,
           CASE WHEN repo IS NOT NULL AND NOT wide
                THEN (SELECT string_agg(int4send(lower(c))
                                        || int4send(upper(c)), '')
                        FROM unnest(c.seen * int4multirange(
                                        int4range(0, x.chunk_count))) AS c)
           END
      FROM chosen c
     CROSS JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                          WHERE x.id = c.id
                         OFFSET 0) x
     WHERE c.total <= 65536
     ORDER BY c.n, c.id;
$$;


-- Puts on record that xorbs are advertised today: a row update a xorb and
-- day, however many queries it answers.

CREATE FUNCTION xet.xorb_advertised(xorbs bytea[])
    RETURNS integer
    LANGUAGE sql
AS $$
    UPDATE xet.xorbs SET advertised_on = current_date
     WHERE id IN (SELECT x.id FROM xet.xorbs x
                   WHERE x.hash = ANY ($1)
                     AND x.advertised_on IS DISTINCT FROM current_date
                   ORDER BY x.id
                     FOR NO KEY UPDATE);

    SELECT 1;
$$;


-- One batch of a shard, put aside.

CREATE FUNCTION xet.shard_stage(upload bytea, seq integer, serials bigint[],
    hashes bytea[], sizes bigint[], sha256 bytea[], counts bigint[],
    packed bytea[], chunks bytea[], xorbs bytea[], indexes integer[],
    seg_serials bigint[], seg_firsts bigint[], seg_ends bigint[],
    seg_packed bytea[])
    RETURNS integer
    LANGUAGE sql
AS $$
    INSERT INTO xet.staged (upload, seq, serials, hashes, sizes, sha256,
                            counts, packed, chunks, xorbs, indexes,
                            seg_serials, seg_firsts, seg_ends, seg_packed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
    ON CONFLICT DO NOTHING;

    SELECT 1;
$$;


CREATE FUNCTION xet.shard_unstage(upload bytea)
    RETURNS integer
    LANGUAGE sql
AS $$
    DELETE FROM xet.staged s WHERE s.upload = $1;
    SELECT 1;
$$;


-- All batches of a shard, the staged ones and the last, in their order.

CREATE FUNCTION xet.shard_batches(last xet.staged)
    RETURNS SETOF xet.staged
    LANGUAGE sql
AS $$
    SELECT b.*
      FROM (SELECT s.* FROM xet.staged s WHERE s.upload = ($1).upload
            UNION ALL
            SELECT ($1).*) b
     ORDER BY b.seq;
$$;


-- The copies that known files of a batch lead to by other terms than those of
-- the batch, of which somebody has just seen that their copies are there: by
-- windows of 1024 pairs of a file and a xorb, so that all windows together
-- read each pair once.  from_file is a place in the batch, from 0; of that file
-- the xorbs up to done are done.  A last row without a hash says where the next
-- window begins.
--
-- Files are looked at by 256, so that a window does not look up all of a large
-- batch.  For the settings see xet.shard_known.

CREATE FUNCTION xet.shard_doubts(hashes bytea[], packed bytea[],
    from_file bigint, done bigint)
    RETURNS TABLE (hash bytea, tag integer, stored_size bigint, file bigint,
                   xorb bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET enable_seqscan = off
    SET enable_nestloop = off
    SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    first    integer := $3;
    behind   bigint := $4;
    doubt    record;
    found_of bigint[];
    used     bigint[] := '{}';
    more     boolean := false;
BEGIN
    WHILE first < cardinality($1) AND NOT more LOOP

        FOR doubt IN
            SELECT f.id, first + b.n - 1 AS place
              FROM unnest($1[first + 1 : first + 256],
                          $2[first + 1 : first + 256])
                     WITH ORDINALITY AS b(hash, packed, n)
              JOIN xet.files f ON f.hash = b.hash
             WHERE f.hash = ANY ($1[first + 1 : first + 256])
               AND (f.packed IS NULL OR b.packed IS NULL
                    OR f.packed <> b.packed)
             ORDER BY b.n
        LOOP
            IF doubt.place > $3 THEN
                behind := 0;
            END IF;

            SELECT coalesce(array_agg(l.xorb_id), '{}') INTO found_of
              FROM (SELECT fx.xorb_id
                      FROM xet.file_xorbs fx
                     WHERE fx.file_id = doubt.id AND fx.xorb_id > behind
                     ORDER BY fx.xorb_id
                     LIMIT 1024 - cardinality(used)) l;

            used := used || found_of;
            more := cardinality(used) = 1024;

            EXIT WHEN more;
        END LOOP;

        first := first + 256;
    END LOOP;

    RETURN QUERY
    SELECT x.hash, x.tag, x.stored_size, NULL::bigint, NULL::bigint
      FROM xet.xorbs x
     WHERE x.id = ANY (used) AND x.damaged_at IS NULL;

    IF more THEN
        RETURN QUERY
        SELECT NULL::bytea, NULL::integer, NULL::bigint, doubt.place,
               used[1024];
    END IF;
END;
$$;


-- Known files of a batch that lead to a damaged copy get the terms that come
-- now, which is what makes them readable again; like new ones they are given
-- by their serials, for segments and references to be put in their places.

CREATE FUNCTION xet.shard_mend(serials bigint[], hashes bytea[],
    counts bigint[], packed bytea[])
    RETURNS TABLE (serial bigint, id bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    ids  bigint[];
BEGIN
    IF NOT EXISTS (SELECT FROM xet.xorbs x WHERE x.damaged_at IS NOT NULL) THEN
        RETURN;
    END IF;

    SELECT array_agg(l.id)
      INTO ids
      FROM (SELECT f.id
              FROM xet.files f
             WHERE f.hash = ANY ($2)
               AND EXISTS (SELECT FROM xet.file_xorbs fx
                             JOIN xet.xorbs x ON x.id = fx.xorb_id
                            WHERE fx.file_id = f.id
                              AND x.damaged_at IS NOT NULL)
             ORDER BY f.id
               FOR NO KEY UPDATE) l;

    DELETE FROM xet.terms t WHERE t.file_id = ANY (ids);
    DELETE FROM xet.file_xorbs fx WHERE fx.file_id = ANY (ids);

    RETURN QUERY
    UPDATE xet.files AS f SET packed = b.packed, term_count = b.n
      FROM (SELECT DISTINCT ON (u.hash) u.*
              FROM unnest($1, $2, $3, $4) AS u(serial, hash, n, packed)
             ORDER BY u.hash, u.serial) b
     WHERE f.hash = b.hash AND f.id = ANY (ids)
    RETURNING b.serial, f.id;
END;
$$;


-- Inserts the files of one batch, as far as they are new, and gives their
-- ids by their serials.  Of a file that comes twice the first one counts.

CREATE FUNCTION xet.shard_files(serials bigint[], hashes bytea[],
    sizes bigint[], sha256 bytea[], counts bigint[], packed bytea[])
    RETURNS TABLE (serial bigint, id bigint)
    LANGUAGE sql
AS $$
    WITH first AS MATERIALIZED (
        SELECT DISTINCT ON (f.hash) f.*
          FROM unnest($1, $2, $3, $4, $5, $6)
                 AS f(serial, hash, size, sha256, n, packed)
         ORDER BY f.hash, f.serial
    ), new AS (
        INSERT INTO xet.files (hash, size, sha256, term_count, packed)
        SELECT f.hash, f.size, f.sha256, f.n, f.packed
          FROM first f
         ORDER BY f.hash
        ON CONFLICT DO NOTHING
        RETURNING id, hash
    )
    SELECT f.serial, n.id FROM new n JOIN first f ON f.hash = n.hash;
$$;


-- What the files of one batch bring to those that are known: digests that
-- were not, and a place in the repo where one is given; the number of new
-- places.  A row that needs nothing is left alone.
--
-- The plan may be made while xet.files is empty, and then any way through all
-- of it looks cheap; the same shard fills it.  So no choice is left: files are
-- looked up in the index, what is found is joined by a hash table.

CREATE FUNCTION xet.shard_known(hashes bytea[], sha256 bytea[], repo bigint)
    RETURNS bigint
    LANGUAGE sql
    SET enable_seqscan = off
    SET enable_nestloop = off
    SET enable_mergejoin = off
AS $$
    UPDATE xet.files f SET sha256 = d.sha256
      FROM (SELECT DISTINCT ON (h.hash) h.hash, h.sha256
              FROM unnest($1, $2) WITH ORDINALITY AS h(hash, sha256, n)
             WHERE h.sha256 IS NOT NULL
             ORDER BY h.hash, h.n) d
     WHERE f.hash = ANY ($1) AND f.hash = d.hash AND f.sha256 IS NULL;

    WITH added AS (
        INSERT INTO xet.repo_files (repo_id, file_id)
        SELECT $3, f.id
          FROM xet.files f
         WHERE f.hash = ANY ($1) AND $3 IS NOT NULL
         ORDER BY f.id
        ON CONFLICT DO NOTHING
        RETURNING 1
    )
    SELECT count(*) FROM added;
$$;


-- Locks the xorbs that packed terms name, so that no collection can take one
-- away before the commit, checks that all are there (else SQLSTATE XT001) and
-- that the terms lead to their copies that stand and are whole (else XT003: one
-- was healed, or found damaged, since it was looked at), notes them as
-- references of the new files, and gives what is used of each.

CREATE FUNCTION xet.shard_terms(new_serials bigint[], new_ids bigint[],
    serials bigint[], packed bytea[])
    RETURNS TABLE (xorb_id bigint, chunks int4multirange)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    ids    bigint[];
    ranges int4multirange[];
    moved  bigint;
BEGIN
    WITH used AS MATERIALIZED (
        SELECT f.serial, substring(f.packed FROM g + 1 FOR 32) AS xorb,
               substring(f.packed FROM g + 49 FOR 4) AS tag,
               range_agg(int4range(
                   get_byte(f.packed, g + 32)
                       + 256 * get_byte(f.packed, g + 33),
                   get_byte(f.packed, g + 34)
                       + 256 * get_byte(f.packed, g + 35) + 1)) AS chunks
          FROM unnest(serials, packed) AS f(serial, packed),
               generate_series(0, length(f.packed) - 1, 52) AS g
         WHERE f.packed IS NOT NULL
         GROUP BY 1, 2, 3
    ), locked AS MATERIALIZED (
        SELECT x.id, x.hash, x.tag, x.damaged_at
          FROM xet.xorbs x
         WHERE x.hash IN (SELECT u.xorb FROM used u)
           FOR KEY SHARE
    ), refs AS (
        INSERT INTO xet.file_xorbs AS fx (file_id, xorb_id, chunks)
        SELECT n.id, l.id, u.chunks
          FROM used u
          JOIN unnest(new_serials, new_ids) AS n(serial, id)
            ON n.serial = u.serial
          JOIN locked l ON l.hash = u.xorb AND xet.le4(l.tag) = u.tag
        ON CONFLICT (file_id, xorb_id)
           DO UPDATE SET chunks = fx.chunks + excluded.chunks
    )
    SELECT array_agg(l.id), array_agg(u.chunks),
           count(*) FILTER (WHERE u.tag <> xet.le4(l.tag)
                                  OR l.damaged_at IS NOT NULL)
      INTO ids, ranges, moved
      FROM used u
      LEFT JOIN locked l ON l.hash = u.xorb;

    IF array_position(ids, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a xorb of the shard is not stored'
              USING ERRCODE = 'XT001';
    END IF;

    IF moved > 0 THEN
        RAISE EXCEPTION 'a xorb of the shard was healed or lost meanwhile'
              USING ERRCODE = 'XT003';
    END IF;

    RETURN QUERY
    SELECT u.id, range_agg(c)
      FROM unnest(ids, ranges) AS u(id, chunks), unnest(u.chunks) AS c
     GROUP BY u.id;
END;
$$;


-- A subject has shown that it has chunks, or was given them.  In one order
-- everywhere, or two shards could wait for each other.

CREATE FUNCTION xet.shard_had(xorbs bigint[], chunks int4multirange[],
    subject bytea)
    RETURNS void
    LANGUAGE sql
AS $$
    INSERT INTO xet.xorb_subjects AS o (xorb_id, subject, chunks)
    SELECT u.id, sha256($3), u.chunks
      FROM (SELECT u.id, range_agg(c) AS chunks
              FROM unnest($1, $2) AS u(id, chunks), unnest(u.chunks) AS c
             GROUP BY u.id
            OFFSET 0) u
     WHERE NOT EXISTS (SELECT FROM xet.xorb_subjects h
                        WHERE h.xorb_id = u.id AND h.subject = sha256($3)
                          AND h.chunks @> u.chunks)
     ORDER BY u.id
    ON CONFLICT (xorb_id, subject)
       DO UPDATE SET chunks = o.chunks + excluded.chunks;
$$;


-- The last batch of a shard, and with it all that were staged: one
-- transaction.  All files, new or known, go into the repo where one is given.
-- 1 when a file or its place in the repo is new, 0 when all were known.

CREATE FUNCTION xet.shard_put(upload bytea, seq integer, serials bigint[],
    hashes bytea[], sizes bigint[], sha256 bytea[], counts bigint[],
    packed bytea[], chunks bytea[], xorbs bytea[], indexes integer[],
    seg_serials bigint[], seg_firsts bigint[], seg_ends bigint[],
    seg_packed bytea[], repo text, subject bytea)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    new_serials bigint[] := '{}';
    new_ids     bigint[] := '{}';
    xorb_ids    bigint[] := '{}';
    ranges      int4multirange[] := '{}';
    fresh       record;
    used        record;
    b           xet.staged;
    last        xet.staged;
    repo_row    bigint;
    news        bigint := 0;
BEGIN
    -- locked, or who drops the batches of an upload that has ended for him
    -- could do it between two of the statements below

    IF $2 > 0 AND (SELECT count(*)
                     FROM (SELECT FROM xet.staged s
                            WHERE s.upload = $1
                            ORDER BY s.seq
                              FOR UPDATE) s) <> $2
    THEN
        RAISE EXCEPTION 'staged batches are missing' USING ERRCODE = 'XT002';
    END IF;

    IF $16 IS NOT NULL THEN
        repo_row := xet.repo_row($16);

        PERFORM pg_advisory_xact_lock_shared(hashtext('xet.repos'),
                                             hashint8(repo_row));
    END IF;

    last := ROW($1, $2, now(), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                $14, $15);

    -- files first: terms of one may stand in an earlier batch than its row

    FOR b IN SELECT s.* FROM xet.shard_batches(last) s LOOP
        SELECT coalesce(array_agg(f.serial), '{}') AS serials,
               coalesce(array_agg(f.id), '{}') AS ids
          INTO fresh
          FROM xet.shard_files(b.serials, b.hashes, b.sizes, b.sha256,
                               b.counts, b.packed) f;

        new_serials := new_serials || fresh.serials;
        new_ids := new_ids || fresh.ids;

        SELECT coalesce(array_agg(f.serial), '{}') AS serials,
               coalesce(array_agg(f.id), '{}') AS ids
          INTO fresh
          FROM xet.shard_mend(b.serials, b.hashes, b.counts, b.packed) f;

        new_serials := new_serials || fresh.serials;
        new_ids := new_ids || fresh.ids;

        news := news + xet.shard_known(b.hashes, b.sha256, repo_row);
    END LOOP;

    FOR b IN SELECT s.* FROM xet.shard_batches(last) s LOOP
        SELECT array_agg(t.xorb_id) AS ids, array_agg(t.chunks) AS chunks
          INTO used
          FROM xet.shard_terms(new_serials, new_ids,
                               b.serials || b.seg_serials,
                               b.packed || b.seg_packed) t;

        xorb_ids := xorb_ids || used.ids;
        ranges := ranges || used.chunks;

        -- a file known before keeps its own segments

        INSERT INTO xet.terms (file_id, first_offset, end_offset, packed)
        SELECT n.id, t.first_offset, t.end_offset, t.packed
          FROM unnest(b.seg_serials, b.seg_firsts, b.seg_ends, b.seg_packed)
                 AS t(serial, first_offset, end_offset, packed)
          JOIN unnest(new_serials, new_ids) AS n(serial, id)
            ON n.serial = t.serial;

        -- in one order everywhere, or two shards could wait for each other

        INSERT INTO xet.chunks (hash, xorb_id, idx)
        SELECT c.hash, x.id, min(c.idx)
          FROM unnest(b.chunks, b.xorbs, b.indexes) AS c(hash, xorb, idx)
          JOIN xet.xorbs x ON x.hash = c.xorb
         GROUP BY c.hash, x.id
         ORDER BY c.hash, x.id
        ON CONFLICT DO NOTHING;
    END LOOP;

    IF $16 IS NOT NULL AND $17 IS NOT NULL THEN
        PERFORM xet.shard_had(xorb_ids, ranges, $17);
    END IF;

    IF $2 > 0 THEN
        DELETE FROM xet.staged s WHERE s.upload = $1;
    END IF;

    RETURN CASE WHEN cardinality(new_ids) + news > 0 THEN 1 ELSE 0 END;
END;
$$;


-- A repo lets go of a file; its bytes stay as long as somebody refers to
-- them.  False when it did not hold it.

CREATE FUNCTION xet.repo_forget(repo text, file bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM xet.repo_files rf
     USING xet.repos r, xet.files f
     WHERE r.name = $1 AND f.hash = $2
       AND rf.repo_id = r.id AND rf.file_id = f.id;

    RETURN FOUND;
END;
$$;


-- For administrators.
--
-- The advisory lock is fair: shards that begin while this waits for those that
-- are being committed come after it.  Row locks are not, and with shards that
-- overlap it would wait for ever.

CREATE FUNCTION xet.repo_set_public(repo text, public boolean)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('xet.repos'), hashint8(r.id))
       FROM xet.repos r
      WHERE r.name = $1;

    UPDATE xet.repos r SET public = $2 WHERE r.name = $1;

    RETURN FOUND;
END;
$$;


CREATE FUNCTION xet.repo_delete(repo text)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM xet.repos r WHERE r.name = $1;

    RETURN FOUND;
END;
$$;


-- False when it is there already.

CREATE FUNCTION xet.repo_create(repo text)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.repos (name) VALUES ($1) ON CONFLICT DO NOTHING;

    RETURN FOUND;
END;
$$;


-- Puts a file that is stored into a repo; false when there is no such file or
-- no such repo.

CREATE FUNCTION xet.repo_add(repo text, file bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.repo_files AS rf (repo_id, file_id)
    SELECT r.id, f.id
      FROM xet.repos r, xet.files f
     WHERE r.name = $1 AND f.hash = $2
    ON CONFLICT (file_id, repo_id) DO UPDATE SET repo_id = rf.repo_id;

    RETURN FOUND;
END;
$$;


CREATE FUNCTION xet.repo_list()
    RETURNS TABLE (name text, public boolean, files bigint, bytes bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT r.name, r.public, count(f.id),
           coalesce(sum(f.size), 0)::bigint
      FROM xet.repos r
      LEFT JOIN xet.repo_files rf ON rf.repo_id = r.id
      LEFT JOIN xet.files f ON f.id = rf.file_id
     GROUP BY r.id;
$$;


-- The files of a repo, or all of them when it is NULL; oldest first.

CREATE FUNCTION xet.file_list(repo text)
    RETURNS TABLE (hash bytea, size bigint, created_at timestamptz,
                   sha256 bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT f.hash, f.size, f.created_at, f.sha256
      FROM xet.files f
     WHERE file_list.repo IS NULL
        OR f.id IN (SELECT rf.file_id
                      FROM xet.repo_files rf
                      JOIN xet.repos r ON r.id = rf.repo_id
                     WHERE r.name = file_list.repo)
     ORDER BY f.id;
$$;


-- Somebody has read all of the file, and this is its SHA-256, whatever was
-- claimed for it; whether that was news.

CREATE FUNCTION xet.file_prove(file bytea, digest bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE xet.files f SET sha256 = $2, sha256_proven = true
     WHERE f.hash = $1 AND NOT f.sha256_proven;

    RETURN FOUND;
END;
$$;


-- Keeps a report of a client, as long as there are not too many.

CREATE FUNCTION xet.telemetry_put(event text, session_id text,
    user_agent text, metrics text)
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    INSERT INTO xet.telemetry (event, session_id, user_agent, metrics)
    SELECT $1, $2, $3, $4::jsonb
     WHERE (SELECT c.reltuples FROM pg_class c
             WHERE c.oid = 'xet.telemetry'::regclass) < 200000;

    SELECT 1;
$$;


-- What is known of a file as a zTensor file by these rules; no row where
-- nothing is.  Who asks has opened the file, so may see it.  The file is found
-- first: to an empty table, for which plans are made and then kept, a join by
-- the rules alone is as good, and walks through all that was kept.

CREATE FUNCTION xet.zt_get(file bytea, rules bigint, with_attributes boolean)
    RETURNS TABLE (verdict bytea, attributes bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT z.verdict, CASE WHEN with_attributes THEN z.attributes END
      FROM xet.zt_files z
     WHERE z.file_id = (SELECT f.id FROM xet.files f
                         WHERE f.hash = zt_get.file)
       AND z.rules = zt_get.rules;
$$;


-- The last one stands: all who check a file by the same rules find the same.

CREATE FUNCTION xet.zt_put(file bytea, rules bigint, verdict bytea,
    attributes bytea)
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    INSERT INTO xet.zt_files AS z (file_id, rules, verdict, attributes)
    SELECT f.id, $2, $3, $4 FROM xet.files f WHERE f.hash = $1
    ON CONFLICT (file_id, rules) DO UPDATE
       SET verdict = excluded.verdict, attributes = excluded.attributes,
           checked_at = excluded.checked_at;

    SELECT 1;
$$;


-- Reports on objects first..last of a file, for those that were verified.

CREATE FUNCTION xet.zt_reports_get(file bytea, rules bigint, first bigint,
    last bigint)
    RETURNS TABLE (object bigint, report bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT z.object, z.report
      FROM xet.zt_reports z
     WHERE z.file_id = (SELECT f.id FROM xet.files f
                         WHERE f.hash = zt_reports_get.file)
       AND z.rules = zt_reports_get.rules
       AND z.object BETWEEN zt_reports_get.first AND zt_reports_get.last
     ORDER BY z.object;
$$;


-- In one order everywhere, or two requests could wait for each other.

CREATE FUNCTION xet.zt_reports_put(file bytea, rules bigint,
    objects bigint[], reports bytea[])
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    INSERT INTO xet.zt_reports (file_id, rules, object, report)
    SELECT f.id, $2, w.object, w.report
      FROM xet.files f, unnest($3, $4) AS w(object, report)
     WHERE f.hash = $1
     ORDER BY w.object
    ON CONFLICT (file_id, rules, object) DO UPDATE
       SET report = excluded.report, checked_at = now();

    SELECT 1;
$$;


-- Drops what crashed uploads have staged, old telemetry, and what was found
-- out about zTensor files long ago; to be called now and then, from cron for
-- one.

CREATE FUNCTION xet.sweep(age interval DEFAULT '1 day',
    telemetry_age interval DEFAULT '30 days',
    zt_age interval DEFAULT '90 days')
    RETURNS bigint
    LANGUAGE sql
AS $$
    DELETE FROM xet.telemetry WHERE received_at < now() - telemetry_age;

    DELETE FROM xet.zt_files WHERE checked_at < now() - zt_age;
    DELETE FROM xet.zt_reports WHERE checked_at < now() - zt_age;

    WITH gone AS (
        DELETE FROM xet.staged WHERE created_at < now() - age RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;
