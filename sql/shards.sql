-- Functions for shards, which register files.


-- Returns the slices of xorbs that the terms of a shard name, like
-- xet.xorb_slices().  own: whether the caller may name the chunks of the term.
-- If not, the verification hash of the term must prove that the client has the
-- chunks.  For this proof at least one chunk must have a hash that is never
-- sent in the clear: the hash is not the name of a xorb, and clients do not
-- query it.  This does not apply if wide is set, since then dedup answers also
-- show chunks of other repos.
--
-- With proof, a xorb that a term may not name looks like a xorb that is not
-- stored.  In both cases, the result is a slice of noise of the requested
-- length, which takes as long to send and to hash as a real slice.  No
-- verification hash matches noise.
--
-- hidden is the number of xet.hidings, or 0 without proof; xet.shard_put()
-- takes it from the first slices of the shard.

CREATE FUNCTION xet.shard_slices(xorbs bytea[], starts integer[],
    ends integer[], proof boolean, wide boolean, any_repo boolean, repo text,
    subject bytea)
    RETURNS TABLE (chunk_count integer, hashes bytea, raw_ends bytea,
                   stored_ends bytea, copy_id integer, stored_size bigint,
                   intact boolean, own boolean, hidden bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_variable
DECLARE
    owns  boolean[];
    noise text;
BEGIN
    IF proof IS NULL OR wide IS NULL OR any_repo IS NULL OR repo IS NULL THEN
        RETURN;
    END IF;

    IF NOT proof THEN
        RETURN QUERY
        SELECT s.*, true, int8(0)
          FROM xet.xorb_slices(xorbs, starts, ends, true) s;
        RETURN;
    END IF;

    noise := md5(gen_random_uuid()::text || gen_random_uuid()::text);

    WITH wanted AS MATERIALIZED (
        SELECT w.hash, w.s, w.e, w.n
          FROM unnest(xorbs, starts, ends) WITH ORDINALITY AS w(hash, s, e, n)
    ), seen AS MATERIALIZED (
        SELECT w.hash, x.chunk_count, x.damaged_at,
               xet.xorb_seen(coalesce(x.id, -1), coalesce(x.chunk_count, 1),
                             any_repo, repo, subject, 128) AS chunks
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
           CASE WHEN d.n > 0 THEN 0 ELSE s.copy_id END,
           CASE WHEN d.n > 0 THEN 0 ELSE s.stored_size END,
           d.n > 0 OR s.intact, owns[s.n], h.number
      FROM wanted w
     CROSS JOIN xet.xorb_slices(w.xorbs, starts, ends, true) WITH ORDINALITY
             AS s(chunk_count, hashes, raw_ends, stored_ends, copy_id,
                  stored_size, intact, n)
     CROSS JOIN LATERAL (SELECT CASE
                             WHEN owns[s.n] IS NULL AND starts[s.n] >= 0
                                  AND ends[s.n] <= 8192
                             THEN ends[s.n] - starts[s.n]
                             ELSE 0
                         END AS n
                         OFFSET 0) d
     CROSS JOIN xet.hidings h
     ORDER BY s.n;
END;
$$;


-- Stages one batch of a shard.

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


-- Returns all batches of a shard in order: the staged batches and the last
-- batch, which is the argument.

CREATE FUNCTION xet.shard_batches(last xet.staged)
    RETURNS SETOF xet.staged
    LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    SELECT s.* FROM xet.staged s WHERE s.upload = last.upload ORDER BY s.seq;

    RETURN NEXT last;
END;
$$;


-- Returns the copies that the caller must still check for a batch.  The caller
-- has checked the copies that the terms of the batch refer to.  But a known
-- file may have other terms; the function returns the copies of these terms.
--
-- A call covers up to 1024 pairs of a file and a xorb, and all calls together
-- read each pair once.  The call starts at file from_file, an index in the
-- batch from 0, after the xorb id "done" of that file.  If more pairs remain,
-- the last row has no hash, but the arguments of the next call.
--
-- Files are looked up 256 at a time, so that a call does not look up all files
-- of a large batch.

CREATE FUNCTION xet.shard_suspects(hashes bytea[], packed bytea[],
    from_file bigint, done bigint)
    RETURNS TABLE (hash bytea, copy_id integer, stored_size bigint, file bigint,
                   xorb bigint)
    LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
#variable_conflict use_column
DECLARE
    first    integer := $3;
    behind   bigint := $4;
    suspect    record;
    found_of bigint[];
    used     bigint[] := '{}';
    more     boolean := false;
BEGIN
    IF cardinality($1) = 1
       AND NOT EXISTS (SELECT FROM xet.files f WHERE f.hash = $1[1])
    THEN
        RETURN;
    END IF;

    WHILE first < cardinality($1) AND NOT more LOOP

        FOR suspect IN
            SELECT f.id, first + b.n - 1 AS place
              FROM unnest($1[first + 1 : first + 256],
                          $2[first + 1 : first + 256])
                     WITH ORDINALITY AS b(hash, packed, n)
             CROSS JOIN LATERAL (SELECT f.id, f.packed FROM xet.files f
                                  WHERE f.hash = b.hash
                                 OFFSET 0) f
             WHERE f.packed IS NULL OR b.packed IS NULL
                OR f.packed <> b.packed
             ORDER BY b.n
        LOOP
            IF suspect.place > $3 THEN
                behind := 0;
            END IF;

            SELECT coalesce(array_agg(l.xorb_id), '{}') INTO found_of
              FROM (SELECT fx.xorb_id
                      FROM xet.file_xorbs fx
                     WHERE fx.file_id = suspect.id AND fx.xorb_id > behind
                     ORDER BY fx.xorb_id
                     LIMIT 1024 - cardinality(used)) l;

            used := used || found_of;
            more := cardinality(used) = 1024;

            EXIT WHEN more;
        END LOOP;

        first := first + 256;
    END LOOP;

    IF used = '{}' THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT x.hash, x.copy_id, x.stored_size, NULL::bigint, NULL::bigint
      FROM xet.xorbs x
     WHERE x.id = ANY (used) AND x.damaged_at IS NULL;

    IF more THEN
        RETURN QUERY
        SELECT NULL::bytea, NULL::integer, NULL::bigint, suspect.place,
               used[1024];
    END IF;
END;
$$;


-- Replaces the terms of known files that refer to a damaged copy by the terms
-- of the batch, which makes the files readable again.  Returns the serials and
-- ids of these files, like xet.shard_files(), so that the caller inserts their
-- segments and references.

CREATE FUNCTION xet.shard_mend(serials bigint[], hashes bytea[],
    counts bigint[], packed bytea[], OUT fresh bigint[], OUT ids bigint[])
    LANGUAGE plpgsql
AS $$
DECLARE
    damaged  bigint[];
BEGIN
    fresh := '{}';
    ids := '{}';

    IF NOT EXISTS (SELECT FROM xet.xorbs x WHERE x.damaged_at IS NOT NULL) THEN
        RETURN;
    END IF;

    SELECT array_agg(l.id)
      INTO damaged
      FROM (SELECT f.id
              FROM xet.files f
             WHERE f.hash = ANY ($2)
               AND EXISTS (SELECT FROM xet.file_xorbs fx
                             JOIN xet.xorbs x ON x.id = fx.xorb_id
                            WHERE fx.file_id = f.id
                              AND x.damaged_at IS NOT NULL)
             ORDER BY f.id
               FOR NO KEY UPDATE) l;

    DELETE FROM xet.terms t WHERE t.file_id = ANY (damaged);
    DELETE FROM xet.file_xorbs fx WHERE fx.file_id = ANY (damaged);

    WITH mended AS (
        UPDATE xet.files AS f SET packed = b.packed, term_count = b.n
          FROM (SELECT DISTINCT ON (u.hash) u.*
                  FROM unnest($1, $2, $3, $4) AS u(serial, hash, n, packed)
                 ORDER BY u.hash, u.serial) b
         WHERE f.hash = b.hash AND f.id = ANY (damaged)
        RETURNING b.serial, f.id
    )
    SELECT coalesce(array_agg(m.serial), '{}'), coalesce(array_agg(m.id), '{}')
      INTO fresh, ids
      FROM mended m;
END;
$$;


-- Inserts the new files of one batch, and returns their serials, their ids, and
-- the digests that the batch claims for them.  If a file occurs twice, its
-- first entry counts.  held: set if the files are added to no repo, so that the
-- store holds them.  proven: set if the server has computed the digests.
--
-- This and the next functions run for each upload, however small: so they are
-- in PL/pgSQL, which keeps plans, and each row of a table is looked up by
-- LATERAL with OFFSET 0, so that a plan made for an empty table stays right.

CREATE FUNCTION xet.shard_files(serials bigint[], hashes bytea[],
    sizes bigint[], sha256 bytea[], counts bigint[], packed bytea[],
    held boolean, proven boolean, OUT fresh bigint[], OUT ids bigint[],
    OUT claims bytea[])
    LANGUAGE plpgsql
AS $$
BEGIN
    IF cardinality(hashes) = 1 THEN
        INSERT INTO xet.files AS f (hash, size, sha256, term_count, packed,
                                    held, sha256_proven)
        VALUES ($2[1], $3[1], $4[1], $5[1], $6[1], $7, $8)
        ON CONFLICT DO NOTHING
        RETURNING $1, ARRAY[f.id], $4 INTO fresh, ids, claims;

    ELSE
        WITH first AS MATERIALIZED (
            SELECT DISTINCT ON (f.hash) f.*
              FROM unnest($1, $2, $3, $4, $5, $6)
                     AS f(serial, hash, size, sha256, n, packed)
             ORDER BY f.hash, f.serial
        ), new AS (
            INSERT INTO xet.files AS f (hash, size, sha256, term_count, packed,
                                        held, sha256_proven)
            SELECT w.hash, w.size, w.sha256, w.n, w.packed, $7, $8
              FROM first w
            ON CONFLICT DO NOTHING
            RETURNING f.id, f.hash
        )
        SELECT array_agg(w.serial), array_agg(n.id), array_agg(w.sha256)
          INTO fresh, ids, claims
          FROM new n JOIN first w ON w.hash = n.hash;
    END IF;

    IF ids IS NULL THEN
        fresh := '{}';
        ids := '{}';
        claims := '{}';
    END IF;
END;
$$;


-- Locks files until the commit, which excludes the collector and deletions.
-- Raises XT003 if a file was deleted since it was looked up.  The ids are in
-- order: otherwise two shards could deadlock.

CREATE FUNCTION xet.shard_stay(ids bigint[])
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF cardinality(ids)
       > (SELECT count(*)
            FROM (SELECT FROM unnest($1) AS u(id)
                   CROSS JOIN LATERAL (SELECT FROM xet.files f
                                        WHERE f.id = u.id
                                          AND f.hash IS NOT NULL
                                       OFFSET 0 FOR KEY SHARE) f) k)
    THEN
        RAISE EXCEPTION 'a file of the shard was deleted in the meantime'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- Locks the files of one batch, some of which are known.  If "held" is set,
-- also sets the held flag of the files, so that they stay in use without a
-- repo.  Sets the digests of files that have none, or with "proven", of all
-- files whose digest is not proven.  Returns the ids of all files of the batch,
-- and the digests that the batch claims for them.

CREATE FUNCTION xet.shard_known(hashes bytea[], sha256 bytea[], held boolean,
    proven boolean, OUT ids bigint[], OUT claims bytea[])
    LANGUAGE plpgsql
AS $$
DECLARE
    old  record;
BEGIN
    SELECT array_agg(f.id ORDER BY f.id), array_agg(h.sha256 ORDER BY f.id)
      INTO ids, claims
      FROM (SELECT DISTINCT ON (u.hash) u.hash, u.sha256
              FROM unnest($1, $2) WITH ORDINALITY AS u(hash, sha256, n)
             ORDER BY u.hash, u.sha256 IS NULL, u.n) h
      LEFT JOIN LATERAL (SELECT f.id FROM xet.files f
                          WHERE f.hash = h.hash
                         OFFSET 0) f ON true;

    PERFORM xet.shard_stay(ids);

    IF $3 THEN
        UPDATE xet.files f SET held = true
         WHERE f.id = ANY (ids) AND NOT f.held;
    END IF;

    -- a row that needs no change is not updated

    FOR old IN
        SELECT u.id, u.sha256
          FROM unnest(ids, claims) AS u(id, sha256)
         CROSS JOIN LATERAL (SELECT FROM xet.files f
                              WHERE f.id = u.id
                                AND CASE WHEN $4 THEN NOT f.sha256_proven
                                         ELSE f.sha256 IS NULL END
                             OFFSET 0) f
         WHERE u.sha256 IS NOT NULL
    LOOP
        UPDATE xet.files AS f SET sha256 = old.sha256, sha256_proven = $4
         WHERE f.id = old.id
           AND CASE WHEN $4 THEN NOT f.sha256_proven
                    ELSE f.sha256 IS NULL END;
    END LOOP;
END;
$$;


-- Adds the files of one batch to a repo, and returns the number of new entries.
-- If the repo is of the Hub, records the SHA-256 that the shard claims for the
-- files in this repo, and notes them for xet.hub_sweep(): no commit has them
-- yet.  With "kept", they stay without a commit.

CREATE FUNCTION xet.shard_place(repo bigint, ids bigint[], claims bytea[],
    subject bytea, hub boolean, kept boolean)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    n  bigint;
    f  record;
BEGIN
    INSERT INTO xet.repo_files (repo_id, file_id, public_file, listed_file,
                                subject, sha256, kept)
    SELECT r.id, u.id, CASE WHEN r.public THEN u.id END,
           CASE WHEN r.listed THEN u.id END, sha256($4),
           CASE WHEN $5 THEN u.sha256 END, $6
      FROM xet.repos r, unnest($2, $3) AS u(id, sha256)
     WHERE r.id = $1
     ORDER BY u.id
    ON CONFLICT DO NOTHING;

    GET DIAGNOSTICS n = ROW_COUNT;

    IF NOT hub THEN
        RETURN n;
    END IF;

    IF NOT kept THEN
        INSERT INTO xet.hub_loose AS l (repo_id, file_id)
        SELECT $1, u.id FROM unnest($2) AS u(id) ORDER BY u.id
        ON CONFLICT ON CONSTRAINT hub_loose_pkey
           DO UPDATE SET since = excluded.since;
    END IF;

    IF n = cardinality(ids) THEN
        RETURN n;
    END IF;

    FOR f IN SELECT u.id, u.sha256
               FROM unnest($2, $3) AS u(id, sha256)
              CROSS JOIN LATERAL (SELECT rf.sha256, rf.kept
                                    FROM xet.repo_files rf
                                   WHERE rf.repo_id = $1
                                     AND rf.file_id = u.id
                                  OFFSET 0) rf
              WHERE u.sha256 IS NOT NULL
                AND (rf.sha256 IS DISTINCT FROM u.sha256
                     OR $6 AND NOT rf.kept)
              ORDER BY u.id
    LOOP
        UPDATE xet.repo_files AS rf
           SET sha256 = f.sha256, kept = rf.kept OR $6
         WHERE rf.repo_id = $1 AND rf.file_id = f.id;
    END LOOP;

    -- a sweep may have removed a file since the insertion

    IF kept
       AND cardinality(ids)
           > (SELECT count(*)
                FROM unnest($2) AS u(id)
               CROSS JOIN LATERAL (SELECT FROM xet.repo_files rf
                                    WHERE rf.repo_id = $1
                                      AND rf.file_id = u.id AND rf.kept
                                   OFFSET 0) rf)
    THEN
        RAISE EXCEPTION 'the file was removed in the meantime'
              USING ERRCODE = 'XT003';
    END IF;

    RETURN n;
END;
$$;


-- Returns the xorb, the copy and the chunks of each packed term.

CREATE FUNCTION xet.packed_terms(packed bytea)
    RETURNS TABLE (xorb bytea, copy_id bytea, chunks int4range)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT substring(packed FROM g + 1 FOR 32),
           substring(packed FROM g + 49 FOR 4),
           int4range(get_byte(packed, g + 32)
                         + 256 * get_byte(packed, g + 33),
                     get_byte(packed, g + 34)
                         + 256 * get_byte(packed, g + 35) + 1)
      FROM generate_series(0, length(packed) - 1, 52) AS g;
$$;


-- Returns whether a shard refers to chunks that the caller may not name without
-- a proof.

CREATE FUNCTION xet.shard_hidden(last xet.staged, repo text, subject bytea)
    RETURNS boolean
    LANGUAGE sql
AS $$
    SELECT EXISTS (
        SELECT FROM (SELECT t.xorb, range_agg(t.chunks) AS chunks
                       FROM xet.shard_batches($1) b,
                            unnest(b.packed || b.seg_packed) AS p(packed),
                            xet.packed_terms(p.packed) t
                      GROUP BY t.xorb
                     OFFSET 0) u
          LEFT JOIN LATERAL (SELECT x.id, x.chunk_count FROM xet.xorbs x
                              WHERE x.hash = u.xorb
                             OFFSET 0) x ON true
         WHERE NOT xet.xorb_seen(coalesce(x.id, -1),
                                 coalesce(x.chunk_count, 1), false, $2, $3, 0)
                   @> u.chunks);
$$;


-- Locks the xorbs that packed terms name, so that no collection can remove one
-- before the commit.  Raises XT001 if a xorb does not exist.  Raises XT003 if
-- a term does not refer to the current, undamaged copy: the xorb was healed,
-- or found damaged, since the term was checked.  Inserts the references
-- of the new files, and returns the used chunks of each xorb.

CREATE FUNCTION xet.shard_terms(new_serials bigint[], new_ids bigint[],
    serials bigint[], packed bytea[], OUT ids bigint[],
    OUT ranges int4multirange[])
    LANGUAGE plpgsql
AS $$
DECLARE
    one    CONSTANT boolean := cardinality(packed) = 1
                               AND coalesce(length(packed[1]) = 52, false);
    term   bytea;
    moved  bigint;
    id     bigint;
BEGIN
    IF one THEN
        term := packed[1];

        SELECT x.id, (xet.le4(x.copy_id) <> substring(term FROM 49 FOR 4)
                      OR x.damaged_at IS NOT NULL)::integer
          INTO id, moved
          FROM xet.xorbs x
         WHERE x.hash = substring(term FROM 1 FOR 32)
           FOR KEY SHARE;

        ids := ARRAY[id];
        ranges := ARRAY[int4multirange(int4range(
                            get_byte(term, 32) + 256 * get_byte(term, 33),
                            get_byte(term, 34) + 256 * get_byte(term, 35)
                                + 1))];

    ELSE
        WITH used AS MATERIALIZED (
            SELECT f.serial, t.xorb, t.copy_id, range_agg(t.chunks) AS chunks
              FROM unnest($3, $4) AS f(serial, packed),
                   xet.packed_terms(f.packed) t
             GROUP BY 1, 2, 3
        ), locked AS MATERIALIZED (
            SELECT x.id, x.hash, x.copy_id, x.damaged_at
              FROM (SELECT DISTINCT u.xorb FROM used u) u
             CROSS JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                                  WHERE x.hash = u.xorb
                                 OFFSET 0
                                    FOR KEY SHARE) x
        ), refs AS (
            INSERT INTO xet.file_xorbs AS fx (file_id, xorb_id, chunks)
            SELECT n.id, l.id, u.chunks
              FROM used u
              JOIN unnest($1, $2) AS n(serial, id) ON n.serial = u.serial
              JOIN locked l
                ON l.hash = u.xorb AND xet.le4(l.copy_id) = u.copy_id
            ON CONFLICT (file_id, xorb_id)
               DO UPDATE SET chunks = fx.chunks + excluded.chunks
        )
        SELECT array_agg(k.id), array_agg(k.chunks), sum(k.moved)
          INTO ids, ranges, moved
          FROM (SELECT l.id, range_agg(c) AS chunks,
                       count(*) FILTER (WHERE u.copy_id <> xet.le4(l.copy_id)
                                              OR l.damaged_at IS NOT NULL)
                           AS moved
                  FROM used u
                  LEFT JOIN locked l ON l.hash = u.xorb
                 CROSS JOIN unnest(u.chunks) AS c
                 GROUP BY l.id) k;
    END IF;

    IF ids IS NULL THEN
        ids := '{}';
        ranges := '{}';

    ELSIF array_position(ids, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a xorb of the shard is not stored'
              USING ERRCODE = 'XT001';
    END IF;

    IF moved > 0 THEN
        RAISE EXCEPTION 'a xorb of the shard was replaced or lost'
              USING ERRCODE = 'XT003';
    END IF;

    IF one AND serials[1] = ANY (new_serials) THEN
        INSERT INTO xet.file_xorbs AS fx (file_id, xorb_id, chunks)
        VALUES ($2[array_position($1, $3[1])], ids[1], ranges[1])
        ON CONFLICT (file_id, xorb_id)
           DO UPDATE SET chunks = fx.chunks + excluded.chunks;
    END IF;
END;
$$;


-- Records that a subject has proven that it has chunks, or may read them.  All
-- shards insert the rows in the same order; otherwise two shards could
-- deadlock.

CREATE FUNCTION xet.shard_had(xorbs bigint[], chunks int4multirange[],
    subject bytea)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.xorb_subjects AS o (xorb_id, subject, chunks)
    SELECT u.id, sha256($3), u.chunks
      FROM (SELECT u.id, range_agg(c) AS chunks
              FROM unnest($1, $2) AS u(id, chunks), unnest(u.chunks) AS c
             GROUP BY u.id
            OFFSET 0) u
      LEFT JOIN LATERAL (SELECT h.chunks FROM xet.xorb_subjects h
                          WHERE h.xorb_id = u.id AND h.subject = sha256($3)
                         OFFSET 0) h ON true
     WHERE h.chunks IS NULL OR NOT h.chunks @> u.chunks
     ORDER BY u.id
    ON CONFLICT ON CONSTRAINT xorb_subjects_pkey
       DO UPDATE SET chunks = o.chunks + excluded.chunks;
END;
$$;


-- Commits the last batch of a shard and all staged batches in one transaction.
-- All files, new or known, are added to the repo, if a repo is given.  Returns
-- 1 if a file or its entry in the repo is new, 0 if all files and entries were
-- known.  proven: the server has computed the digests.  kept: the repo keeps
-- the files even if no commit uses them.
--
-- checked: whether the caller has called xet.shard_suspects().  For a shard of
-- one file, it can call that function later: if the file is known with other
-- terms, this function changes nothing and returns 2.
--
-- hidden is what xet.shard_slices() returned first.  If a repo has been hidden
-- since, the caller may have lost the right to chunks of checked terms: then
-- the terms are checked again, and XT003 makes the client repeat a shard with a
-- term that needs a proof.

CREATE FUNCTION xet.shard_put(upload bytea, seq integer, serials bigint[],
    hashes bytea[], sizes bigint[], sha256 bytea[], counts bigint[],
    packed bytea[], chunks bytea[], xorbs bytea[], indexes integer[],
    seg_serials bigint[], seg_firsts bigint[], seg_ends bigint[],
    seg_packed bytea[], any_repo boolean, repo text, subject bytea,
    hidden bigint, proven boolean DEFAULT false, kept boolean DEFAULT false,
    checked boolean DEFAULT true)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    said        jsonb;
    new_serials bigint[] := '{}';
    new_ids     bigint[] := '{}';
    xorb_ids    bigint[] := '{}';
    ranges      int4multirange[] := '{}';
    f           record;
    used        record;
    b           xet.staged;
    last        xet.staged;
    repo_row    bigint;
    inserted    bigint := 0;
BEGIN
    IF $16 IS NULL OR $17 IS NULL THEN
        RAISE EXCEPTION 'a shard has no repo' USING ERRCODE = '22004';
    END IF;

    -- if there is a result, this statement is a retry: the upload was
    -- committed, and the response was lost

    SELECT a.said INTO said FROM xet.acts a WHERE a.act = $1;

    IF FOUND THEN
        RETURN said::integer;
    END IF;

    -- lock the batches: otherwise a statement of a lost session could drop them
    -- between two of the statements below

    IF $2 > 0 THEN
        IF (SELECT count(*)
              FROM (SELECT FROM xet.staged s
                     WHERE s.upload = $1 AND s.seq < $2
                     ORDER BY s.seq
                       FOR UPDATE) s) <> $2
        THEN
            -- an earlier try may have been in progress until now

            SELECT a.said INTO said FROM xet.acts a WHERE a.act = $1;

            IF FOUND THEN
                RETURN said::integer;
            END IF;

            RAISE EXCEPTION 'staged batches are missing'
                  USING ERRCODE = 'XT002';
        END IF;
    END IF;

    IF NOT $16 THEN
        repo_row := xet.repo_row($17);
    END IF;

    last := ROW($1, $2, now(), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                $14, $15);

    IF NOT $16 AND $19 IS DISTINCT FROM 0 THEN
        IF $19 IS DISTINCT FROM (SELECT h.number FROM xet.hidings h)
           AND xet.shard_hidden(last, $17, $18)
        THEN
            RAISE EXCEPTION 'a repo was hidden meanwhile'
                  USING ERRCODE = 'XT003';
        END IF;
    END IF;

    -- insert all files first: the terms of a file may be in an earlier batch
    -- than its row

    FOR i IN 0 .. $2 LOOP
        b := last;

        IF i < $2 THEN
            SELECT s.* INTO b FROM xet.staged s
             WHERE s.upload = $1 AND s.seq = i;
        END IF;

        f := xet.shard_files(b.serials, b.hashes, b.sizes, b.sha256, b.counts,
                             b.packed, $16, $20);

        new_serials := new_serials || f.fresh;
        new_ids := new_ids || f.ids;

        IF cardinality(f.ids) < cardinality(b.hashes) THEN
            IF NOT $22
               AND NOT EXISTS (SELECT FROM xet.files k
                                WHERE k.hash = $4[1] AND k.packed = $8[1])
            THEN
                RETURN 2;
            END IF;

            f := xet.shard_mend(b.serials, b.hashes, b.counts, b.packed);

            new_serials := new_serials || f.fresh;
            new_ids := new_ids || f.ids;

            f := xet.shard_known(b.hashes, b.sha256, $16, $20);
        END IF;

        IF repo_row IS NOT NULL AND f.ids <> '{}' THEN
            inserted := inserted + xet.shard_place(repo_row, f.ids, f.claims,
                                                   $18, $17 LIKE '\_hub/%',
                                                   $21);
        END IF;
    END LOOP;

    FOR i IN 0 .. $2 LOOP
        b := last;

        IF i < $2 THEN
            SELECT s.* INTO b FROM xet.staged s
             WHERE s.upload = $1 AND s.seq = i;
        END IF;

        used := xet.shard_terms(new_serials, new_ids,
                                b.serials || b.seg_serials,
                                b.packed || b.seg_packed);

        xorb_ids := xorb_ids || used.ids;
        ranges := ranges || used.ranges;

        -- insert only segments of new files: a known file keeps its segments

        IF b.seg_serials <> '{}' THEN
            INSERT INTO xet.terms (file_id, first_offset, end_offset, packed)
            SELECT n.id, t.first_offset, t.end_offset, t.packed
              FROM unnest(b.seg_serials, b.seg_firsts, b.seg_ends,
                          b.seg_packed)
                     AS t(serial, first_offset, end_offset, packed)
              JOIN unnest(new_serials, new_ids) AS n(serial, id)
                ON n.serial = t.serial;
        END IF;

        -- all shards insert chunks in the same order; otherwise two shards
        -- could deadlock

        IF cardinality(b.chunks) = 1 THEN
            INSERT INTO xet.chunks (hash, xorb_id, idx)
            SELECT b.chunks[1], x.id, b.indexes[1]
              FROM xet.xorbs x
             WHERE x.hash = b.xorbs[1]
            ON CONFLICT DO NOTHING;

        ELSIF b.chunks <> '{}' THEN
            INSERT INTO xet.chunks (hash, xorb_id, idx)
            SELECT c.hash, x.id, min(c.idx)
              FROM unnest(b.chunks, b.xorbs, b.indexes) AS c(hash, xorb, idx)
             CROSS JOIN LATERAL (SELECT x.id FROM xet.xorbs x
                                  WHERE x.hash = c.xorb
                                 OFFSET 0) x
             GROUP BY c.hash, x.id
             ORDER BY c.hash, x.id
            ON CONFLICT DO NOTHING;
        END IF;
    END LOOP;

    IF NOT $16 AND $18 IS NOT NULL THEN
        PERFORM xet.shard_had(xorb_ids, ranges, $18);
    END IF;

    IF inserted > 0 THEN
        IF EXISTS (SELECT FROM xet.quotas) THEN
            PERFORM xet.quota_shard(last, $16, $17, repo_row, $18);
        END IF;
    END IF;

    IF $2 > 0 THEN
        DELETE FROM xet.staged s WHERE s.upload = $1;
    END IF;

    -- if nothing changed and nothing was staged, the result is not recorded:
    -- the statement may be repeated; if this is a retry that waited for its
    -- first try, return the result of the first try

    IF cardinality(new_ids) + inserted = 0 AND $2 = 0 THEN
        RETURN coalesce((SELECT a.said::integer FROM xet.acts a
                          WHERE a.act = $1), 0);
    END IF;

    said := CASE WHEN cardinality(new_ids) + inserted > 0 THEN 1 ELSE 0 END;

    INSERT INTO xet.acts (act, said) VALUES ($1, said);

    RETURN said::integer;
END;
$$;
