-- What the module calls, one function a statement.  Applied again whenever
-- this file changes; nothing here holds data.


-- Replaced as a whole: a function whose result changes can't be replaced.

DROP FUNCTION IF EXISTS xet.file_terms, xet.files_terms, xet.xorb_slices,
    xet.shard_slices, xet.slice_secret, xet.xorb_seen, xet.file_seen,
    xet.xorb_brought, xet.xorb_grant, xet.repo_row, xet.shard_had,
    xet.copy_made, xet.copy_age,
    xet.xorb_put, xet.xorb_heal, xet.xorb_healed, xet.xorb_get,
    xet.xorb_advertised,
    xet.xorb_damaged, xet.xorb_whole, xet.le4, xet.terms_moved,
    xet.store_claim, xet.store_confirm, xet.store_tables,
    xet.tags_take, xet.tags_anew,
    xet.store_doubts, xet.store_known, xet.store_unknown, xet.file_get,
    xet.file_open,
    xet.chunk_find, xet.shard_stage, xet.shard_put, xet.shard_unstage,
    xet.shard_batches, xet.shard_doubts, xet.shard_mend, xet.shard_files,
    xet.shard_known, xet.shard_terms, xet.shard_stay,
    xet.sweep, xet.copies_lost,
    xet.file_delete, xet.files_release, xet.gc_files, xet.gc_xorbs,
    xet.gc_copies, xet.gc_removed, xet.gc_preview,
    xet.visible, xet.repo_forget, xet.repo_set_public, xet.repo_delete,
    xet.repo_create, xet.repo_add, xet.repo_named, xet.repo_list,
    xet.file_list,
    xet.file_prove,
    xet.files_prove,
    xet.zt_get, xet.zt_put, xet.zt_reports_get, xet.zt_reports_put,
    xet.figures_sum, xet.chore_wait, xet.chore_take, xet.chore_keep,
    xet.chore_done, xet.chore_now, xet.chores_show, xet.scrub_next,
    xet.heal_next, xet.heal_later, xet.figures, xet.repo_figures,
    xet.orphans_found, xet.orphans_from, xet.orphans_due, xet.orphans,
    xet.copies_unknown, xet.quota_of, xet.quota_set, xet.quota_any,
    xet.quota_look, xet.quota_hold, xet.quota_shard, xet.quota_check,
    xet.usage_of, xet.usage_get, xet.usage_list, xet.usage_total,
    xet.usage_settle, xet.usage_recount, xet.usage_forget, xet.today,
    xet.in_time, xet.act_note, xet.act_said, xet.day_ends, xet.gc_files_once,
    xet.gc_removed_once, xet.gc_xorbs_once, xet.hub_above, xet.hub_again,
    xet.hub_at, xet.hub_batch, xet.hub_begin, xet.hub_below, xet.hub_branch,
    xet.hub_bucket_file, xet.hub_bucket_prune, xet.hub_bucket_put,
    xet.hub_bucket_take, xet.hub_charge, xet.hub_claim, xet.hub_claimed,
    xet.hub_claims, xet.hub_claims_bad, xet.hub_clash, xet.hub_close,
    xet.hub_commit, xet.hub_commits_get, xet.hub_copies, xet.hub_create,
    xet.hub_date, xet.hub_delete, xet.hub_describe, xet.hub_duplicate,
    xet.hub_enter, xet.hub_entry, xet.hub_files_of, xet.hub_find,
    xet.hub_folder,
    xet.hub_folders, xet.hub_fork, xet.hub_gone, xet.hub_hash, xet.hub_hash_at,
    xet.hub_here, xet.hub_hold, xet.hub_ids, xet.hub_info, xet.hub_is_folder,
    xet.hub_is_id,
    xet.hub_is_last, xet.hub_known, xet.hub_last, xet.hub_line, xet.hub_list,
    xet.hub_may,
    xet.hub_meets, xet.hub_metadata, xet.hub_move, xet.hub_named, xet.hub_node,
    xet.hub_nursery, xet.hub_object, xet.hub_objects, xet.hub_oid,
    xet.hub_page_list, xet.hub_page_refs, xet.hub_page_repo, xet.hub_page_tree,
    xet.hub_paths_info, xet.hub_paths_rows, xet.hub_preupload, xet.hub_proven,
    xet.hub_puts, xet.hub_ref_beside, xet.hub_ref_put, xet.hub_refs_get,
    xet.hub_resolve, xet.hub_rev, xet.hub_settings, xet.hub_source,
    xet.hub_stage, xet.hub_staged_most, xet.hub_staged_ops, xet.hub_store,
    xet.hub_store_of,
    xet.hub_sweep, xet.hub_title, xet.hub_title_of, xet.hub_tombstones,
    xet.hub_too_many,
    xet.hub_tree, xet.hub_tree_end, xet.hub_tree_rows, xet.hub_tree_then,
    xet.hub_unstage, xet.hub_vain_add, xet.hub_vain_much, xet.hub_walk,
    xet.hub_weight,
    xet.hub_whole, xet.hub_write, xet.past, xet.usage_settle_once,
    xet.write_probe;


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
        RAISE EXCEPTION 'the statement comes too late'
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


-- Whose files a caller sees is given by two parameters.  With any_repo the
-- caller sees the whole store.  Otherwise the caller sees the files of the repo
-- and those of public repos; the empty name stands for a token without a repo.
-- Both are always given: a NULL is no right, and refuses.
--
-- The repo's files and the public ones are one look-up, in however many repos
-- the file is, and are asked for a file that is not there, id -1, as well: else
-- time tells what others have.  The condition is written out where it is used:
-- a function of it would not be inlined, and makes a lookup five times as
-- expensive.  OFFSET 0 keeps the planner from hashing all of repo_files for one
-- file, which looks cheap to a plan made while the table was small.


-- The size of a file and the packed terms that overlap bytes
-- first_byte..last_byte, in order, as far as 8 rows hold them; the caller asks
-- for the rest from there on.  A known file always gives a row; packed is NULL
-- when nothing of it overlaps.  One index probe for a usual file.

CREATE FUNCTION xet.file_terms(file bytea, first_byte bigint,
    last_byte bigint, any_repo boolean, repo text)
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
               WHEN file_terms.repo IS NULL THEN false
               WHEN any_repo THEN f.id IS NOT NULL
               WHEN NOT any_repo
               THEN EXISTS (SELECT FROM xet.repo_files rf
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

CREATE FUNCTION xet.file_open(file bytea, byte_at bigint, any_repo boolean,
    repo text)
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
               WHEN file_open.repo IS NULL THEN false
               WHEN any_repo THEN f.id IS NOT NULL
               WHEN NOT any_repo
               THEN EXISTS (SELECT FROM xet.repo_files rf
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
    first_byte bigint, any_repo boolean, repo text)
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
               WHEN files_terms.repo IS NULL THEN false
               WHEN any_repo THEN f.id IS NOT NULL
               WHEN NOT any_repo
               THEN EXISTS (SELECT FROM xet.repo_files rf
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
-- The plans are kept, by sessions that have seen the tables empty.  An array of
-- one leaves them one index that gives the order: with "=" the one that begins
-- with the file would, too, and all of it be walked.  So there is an order also
-- where any row would do.

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
    ends integer[], proof boolean, wide boolean, any_repo boolean, repo text,
    subject bytea)
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
    IF proof IS NULL OR wide IS NULL OR any_repo IS NULL OR repo IS NULL THEN
        RETURN;
    END IF;

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


-- A repo and a subject have sent all of a xorb; whether that was news of one
-- of them.  Without a repo only xorbs of one chunk are noted, by subject.

CREATE FUNCTION xet.xorb_brought(xorb bytea, any_repo boolean, repo text,
    subject bytea)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    xorb_row bigint;
    repo_row bigint;
    news     boolean := false;
BEGIN
    IF any_repo IS NULL OR repo IS NULL OR any_repo AND subject IS NULL THEN
        RETURN false;
    END IF;

    SELECT x.id INTO xorb_row
      FROM xet.xorbs x
     WHERE x.hash = xorb
       AND (NOT any_repo OR x.chunk_count = 1);

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

    IF NOT any_repo THEN
        repo_row := xet.repo_row(repo);

        INSERT INTO xet.xorb_repos (xorb_id, repo_id)
        VALUES (xorb_row, repo_row)
        ON CONFLICT DO NOTHING;

        news := news OR FOUND;
    END IF;

    RETURN news;
END;
$$;


-- The row of a repo, which begins with its first upload, and stays until the
-- commit: who deletes the repo comes before or after that.  The advisory lock
-- comes first, as it does for him, or the two could wait for each other.
--
-- That of a Hub's repo begins with the repo: who has a token for one that was
-- deleted must not make it again.

CREATE FUNCTION xet.repo_row(repo text)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    found_id bigint;
BEGIN
    FOR i IN 1 .. 4 LOOP
        SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;

        IF found_id IS NULL AND $1 LIKE '\_hub/%' THEN
            RAISE EXCEPTION 'the repo was deleted' USING ERRCODE = 'XT006';
        END IF;

        IF found_id IS NULL THEN
            INSERT INTO xet.repos (name) VALUES ($1) ON CONFLICT DO NOTHING;
            SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;
        END IF;

        IF found_id IS NOT NULL THEN
            PERFORM pg_advisory_xact_lock_shared(hashtext('xet.repos'),
                                                 hashint8(found_id));

            PERFORM FROM xet.repos r WHERE r.id = found_id FOR KEY SHARE;

            IF FOUND THEN
                RETURN found_id;
            END IF;
        END IF;
    END LOOP;

    RAISE EXCEPTION 'the repo was deleted meanwhile' USING ERRCODE = '40001';
END;
$$;


-- How old a copy may be when its row is written: half of the age at which one
-- without a row is removed (XET_XORB_ORPHAN_AGE), so that the clocks of nginx,
-- of PostgreSQL and of the store may differ by the other half.

CREATE FUNCTION xet.copy_age()
    RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT interval '12 hours';
$$;


-- The tag of a copy that was made at a time, in seconds since 1970, and is
-- young enough.  An upload may have stood still between its copy and its row,
-- with its worker or its whole machine, while the collector found a copy
-- without a row and removed it.
--
-- SQLSTATE 40XT1, here and below: the copy does not come back, so the module
-- does not send the statement again.  Of class 40, because of which it leaves
-- the copy where it is, in versions that do send it again, too.

CREATE FUNCTION xet.copy_made(tag integer, made bigint)
    RETURNS integer
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF abs(extract(epoch FROM now()) - made)
       > extract(epoch FROM xet.copy_age())
    THEN
        RAISE EXCEPTION 'the copy was made % seconds ago, by the clock of the '
                        'server that has made it: it stood still meanwhile, '
                        'or clocks differ',
                        floor(extract(epoch FROM now()) - made)
              USING ERRCODE = '40XT1';
    END IF;

    RETURN tag;
END;
$$;


-- Registers a xorb and its eligible chunks (given by index), whose bytes are
-- durable in the copy of that tag, and who has sent it.  The row that stands:
-- with that tag it is ours, with another one the xorb was there already, by
-- this or by another node, and our copy is not used.  news: it was not there;
-- with a repo, neither it nor the subject had sent it before, since what others
-- have is not told.
--
-- Of a xorb that was there, whoever has sent it is told so and will refer to
-- it: that is on record like a dedup answer.  The lock waits for a collector
-- that is about to remove the xorb, which is new then.

CREATE FUNCTION xet.xorb_put(xorb bytea, chunk_hashes bytea, raw_ends bytea,
    stored_ends bytea, raw_size bigint, stored_size bigint,
    eligible integer[], tag integer, digest bytea, any_repo boolean,
    repo text, subject bytea)
    RETURNS TABLE (the_tag integer, the_size bigint, the_digest bytea,
                   whole boolean, news boolean)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    new_id  bigint;
    brought boolean;
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RAISE EXCEPTION 'a xorb comes with no repo' USING ERRCODE = '22004';
    END IF;

    LOOP
        INSERT INTO xet.xorbs AS x (hash, chunk_count, raw_size, stored_size,
                                    chunk_hashes, raw_ends, stored_ends, tag,
                                    digest)
        VALUES (xorb, length(chunk_hashes) / 32, raw_size, stored_size,
                chunk_hashes, raw_ends, stored_ends, tag, digest)
        ON CONFLICT DO NOTHING
        RETURNING x.id INTO new_id;

        EXIT WHEN new_id IS NOT NULL;

        PERFORM xet.xorb_advertised(ARRAY[xorb]);
        PERFORM FROM xet.xorbs x
          WHERE x.hash = xorb
            FOR KEY SHARE;

        EXIT WHEN FOUND;
    END LOOP;

    -- sent again by a session that was lost, for a copy that was collected
    -- meanwhile: its file may be gone.  Behind the insert, which may have
    -- waited for that collection.

    IF new_id IS NOT NULL AND EXISTS (
           SELECT FROM xet.gc_copies g
            WHERE g.hash = xorb AND g.tag = xorb_put.tag)
    THEN
        RAISE EXCEPTION 'the copy was collected meanwhile'
              USING ERRCODE = '40XT1';
    END IF;

    IF new_id IS NOT NULL THEN
        INSERT INTO xet.chunks (hash, xorb_id, idx)
        SELECT substring(chunk_hashes FROM 32 * i + 1 FOR 32), new_id, min(i)
          FROM unnest(eligible) AS i
         GROUP BY 1
         ORDER BY 1
        ON CONFLICT DO NOTHING;
    END IF;

    brought := xet.xorb_brought(xorb, any_repo, repo, subject);

    IF new_id IS NOT NULL THEN
        INSERT INTO xet.charges (xorb_id, repo_id, subject, bytes)
        VALUES (new_id, CASE WHEN NOT any_repo THEN xet.repo_row(repo) END,
                sha256(subject), stored_size);

        PERFORM xet.quota_hold(any_repo, repo, subject, stored_size, 0);
    END IF;

    -- a row that has this tag was made by this statement, now or before

    RETURN QUERY
    SELECT x.tag, x.stored_size, x.digest, x.damaged_at IS NULL,
           x.tag = xorb_put.tag OR NOT any_repo AND brought
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


-- The same for a command, which has time: the tag that stands, the old one
-- where there is no row any more, or NULL where others have the xorb or its
-- files locked, and it is to come again.

CREATE FUNCTION xet.xorb_healed(xorb bytea, stored_ends bytea,
    stored_size bigint, tag integer, digest bytea, old_tag integer)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
BEGIN
    RETURN coalesce((SELECT h.the_tag
                       FROM xet.xorb_heal($1, $2, $3, $4, $5, $6) h), old_tag);

EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
    RETURN NULL;
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


-- A xorb for who may know all of it; noted as in xet.chunk_find().

CREATE FUNCTION xet.xorb_get(xorb bytea, any_repo boolean, repo text,
    subject bytea)
    RETURNS TABLE (stored_size bigint, tag integer, whole boolean,
                   noted boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.stored_size, x.tag, x.damaged_at IS NULL,
           x.advertised_on IS NOT DISTINCT FROM xet.today()
      FROM (SELECT xorb_get.xorb AS hash) w
      LEFT JOIN xet.xorbs x ON x.hash = w.hash
     WHERE CASE WHEN repo IS NULL THEN false
                WHEN any_repo THEN x.id IS NOT NULL
                ELSE xet.xorb_seen(coalesce(x.id, -1),
                                   coalesce(x.chunk_count, 1), any_repo, repo,
                                   subject, 128)
                     @> int4range(0, coalesce(x.chunk_count, 1))
           END;
$$;


-- A row for a xorb that need not be sent, since whoever asks may name all of
-- it in a shard; noted as in xet.chunk_find().

CREATE FUNCTION xet.xorb_grant(xorb bytea, proof boolean, any_repo boolean,
    repo text, subject bytea)
    RETURNS TABLE (stored_size bigint, tag integer, whole boolean,
                   noted boolean)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT x.stored_size, x.tag, x.damaged_at IS NULL,
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
     WHERE x.hash = $1 AND x.tag = $2
       AND x.damaged_at IS NOT NULL;

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
        RAISE EXCEPTION 'xet.tags has no row: no copy could have a name';
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

CREATE FUNCTION xet.store_doubts()
    RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN s.tables IS NULL
                THEN 'a rebuild has not come to its end'
                WHEN s.tables <> xet.store_tables()
                THEN 'the database came from a dump, and does not know what'
                     || ' came later'
           END || ': run "xet rebuild" to its end, or give up what it would'
           || ' find by "SELECT xet.store_known()"'
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


-- The xorbs that answer a dedup query for a chunk.  First the one with most
-- chunks from there on, since a client extends a match over the rows that
-- follow; then the other xorbs of the newest file that uses it, because who
-- has the beginning of a file mostly has the rest of it, and asks only about
-- one chunk in a thousand.  At most 64 xorbs and 65,536 chunks.
--
-- The hash is looked for as an array of one, and is in the order: so only the
-- primary key gives this order.  chunks_xorb would, too, and a plan made for an
-- empty table took whichever of them was made first, also after a restore.
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

CREATE FUNCTION xet.chunk_find(chunk bytea, wide boolean, any_repo boolean,
    repo text, subject bytea)
    RETURNS TABLE (hash bytea, chunk_count integer, raw_size bigint,
                   stored_size bigint, hashes bytea, raw_ends bytea,
                   noted boolean, tag integer, seen bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    WITH me AS MATERIALIZED (
        SELECT coalesce((SELECT r.id FROM xet.repos r
                          WHERE r.name = repo), -1) AS repo_id,
               sha256(chunk_find.subject) AS subject,
               wide IS NOT NULL AND any_repo IS NOT NULL
                   AND repo IS NOT NULL AS given
    ), found AS MATERIALIZED (
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = ANY (ARRAY[chunk_find.chunk])
            AND (SELECT me.given FROM me)
          ORDER BY c.hash, c.xorb_id
          LIMIT 16)
        UNION
        (SELECT c.xorb_id, c.idx FROM xet.chunks c
          WHERE c.hash = ANY (ARRAY[chunk_find.chunk])
            AND (SELECT me.given FROM me)
          ORDER BY c.hash DESC, c.xorb_id DESC
          LIMIT 16)
    ), candidates AS MATERIALIZED (
        SELECT c.xorb_id AS id, c.idx, x.chunk_count,
               CASE
                   WHEN any_repo
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
               NOT any_repo
                   AND EXISTS (SELECT FROM xet.file_xorbs fx
                                WHERE fx.xorb_id = ANY (ARRAY[c.xorb_id])
                                ORDER BY fx.xorb_id, fx.file_id
                               OFFSET 0) AS used
          FROM (SELECT f.xorb_id, f.idx FROM found f
                UNION ALL
                SELECT -g, 0 FROM generate_series(1, 32) AS g
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
                     LIMIT (SELECT 64 / greatest(count(*), 1)
                              FROM candidates WHERE used))
                   UNION ALL
                   (SELECT fx.file_id, fx.chunks
                      FROM xet.file_xorbs fx
                     WHERE fx.xorb_id = ANY (ARRAY[c.id])
                     ORDER BY fx.xorb_id DESC, fx.file_id DESC
                     LIMIT (SELECT 64 / greatest(count(*), 1)
                              FROM candidates WHERE used))) fx
         WHERE NOT any_repo
           AND NOT EXISTS (SELECT FROM candidates WHERE had)
    ), shown AS MATERIALIZED (
        SELECT f.id, f.idx, f.chunk_count, f.chunks
          FROM (SELECT f.* FROM files f
                UNION ALL
                SELECT NULL, 0, NULL, -g, '{}'
                  FROM generate_series(1, 128) AS g
                 WHERE NOT any_repo
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
               CASE WHEN NOT any_repo
                    THEN xet.xorb_seen(c.id, c.chunk_count, any_repo, repo,
                                       subject, 128)
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
                              WHERE fx.xorb_id = ANY (ARRAY[b.id])
                              ORDER BY fx.xorb_id DESC, fx.file_id DESC
                              LIMIT 64) fx
    ), file AS MATERIALIZED (
        SELECT f.file_id
          FROM (SELECT u.file_id FROM users u
                UNION ALL
                SELECT -g FROM generate_series(1, 64) AS g
                 WHERE NOT any_repo AND NOT wide
                   AND EXISTS (SELECT FROM best)
                   AND g > (SELECT count(*) FROM users)) f
         WHERE any_repo OR wide
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
               CASE WHEN NOT any_repo
                    THEN xet.xorb_seen(x.id, x.chunk_count, any_repo, repo,
                                       subject, 0)
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
         WHERE any_repo OR NOT isempty(a.seen)
            OR (wide AND x.chunk_count > 1)
    )
    SELECT x.hash, x.chunk_count, x.raw_size, x.stored_size, x.chunk_hashes,
           x.raw_ends, x.advertised_on IS NOT DISTINCT FROM xet.today(),
           x.tag,
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
     WHERE c.total <= 65536
     ORDER BY c.n, c.id;
$$;


-- Puts on record that xorbs are advertised today: a row update a xorb and
-- day, however many queries it answers.  How many of them are there: one may
-- have been collected since it was found.

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
-- Without a repo that has them the store holds them itself.

CREATE FUNCTION xet.shard_files(serials bigint[], hashes bytea[],
    sizes bigint[], sha256 bytea[], counts bigint[], packed bytea[],
    held boolean)
    RETURNS TABLE (serial bigint, id bigint)
    LANGUAGE sql
AS $$
    WITH first AS MATERIALIZED (
        SELECT DISTINCT ON (f.hash) f.*
          FROM unnest($1, $2, $3, $4, $5, $6)
                 AS f(serial, hash, size, sha256, n, packed)
         ORDER BY f.hash, f.serial
    ), new AS (
        INSERT INTO xet.files (hash, size, sha256, term_count, packed, held)
        SELECT f.hash, f.size, f.sha256, f.n, f.packed, $7
          FROM first f
         ORDER BY f.hash
        ON CONFLICT DO NOTHING
        RETURNING id, hash
    )
    SELECT f.serial, n.id FROM new n JOIN first f ON f.hash = n.hash;
$$;


-- The files of one batch that were known stay until the commit, and where the
-- store is to hold them it does: their rows are locked, which keeps out the
-- collector and who deletes them.  One that was deleted since it was found
-- known is XT003.  For the settings see xet.shard_known.

CREATE FUNCTION xet.shard_stay(hashes bytea[], held boolean)
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_nestloop = off
    SET enable_mergejoin = off
AS $$
DECLARE
    ids  bigint[];
BEGIN
    SELECT coalesce(array_agg(l.id), '{}') INTO ids
      FROM (SELECT f.id
              FROM xet.files f
             WHERE f.hash = ANY ($1)
             ORDER BY f.id
               FOR KEY SHARE) l;

    IF cardinality(ids) < (SELECT count(DISTINCT h) FROM unnest($1) AS h) THEN
        RAISE EXCEPTION 'a file of the shard was deleted meanwhile'
              USING ERRCODE = 'XT003';
    END IF;

    IF $2 THEN
        UPDATE xet.files f SET held = true
         WHERE f.id = ANY (ids) AND NOT f.held;
    END IF;
END;
$$;


-- What the files of one batch bring to those that are known: digests that
-- were not, and a place in the repo where one is given; the number of new
-- places.  A row that needs nothing is left alone.
--
-- The plan may be made while xet.files is empty, and then any way through all
-- of it looks cheap; the same shard fills it.  So no choice is left: files are
-- looked up in the index, what is found is joined by a hash table.

CREATE FUNCTION xet.shard_known(hashes bytea[], sha256 bytea[], repo bigint,
    subject bytea)
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
        INSERT INTO xet.repo_files (repo_id, file_id, subject)
        SELECT $3, f.id, sha256($4)
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
          FROM (SELECT DISTINCT u.xorb FROM used u) u
         CROSS JOIN LATERAL (SELECT x.* FROM xet.xorbs x
                              WHERE x.hash = u.xorb
                             OFFSET 0
                                FOR KEY SHARE) x
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
    seg_packed bytea[], any_repo boolean, repo text, subject bytea)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    said        jsonb;
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
    IF $16 IS NULL OR $17 IS NULL THEN
        RAISE EXCEPTION 'a shard comes with no repo' USING ERRCODE = '22004';
    END IF;

    -- the same upload: it was committed, and the answer was lost

    SELECT a.said INTO said FROM xet.acts a WHERE a.act = $1;

    IF FOUND THEN
        RETURN said::integer;
    END IF;

    -- locked, or who drops the batches of an upload that has ended for him
    -- could do it between two of the statements below

    IF $2 > 0 AND (SELECT count(*)
                     FROM (SELECT FROM xet.staged s
                            WHERE s.upload = $1
                            ORDER BY s.seq
                              FOR UPDATE) s) <> $2
    THEN
        -- it may have been under way until now

        SELECT a.said INTO said FROM xet.acts a WHERE a.act = $1;

        IF FOUND THEN
            RETURN said::integer;
        END IF;

        RAISE EXCEPTION 'staged batches are missing' USING ERRCODE = 'XT002';
    END IF;

    IF NOT $16 THEN
        repo_row := xet.repo_row($17);

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
                               b.counts, b.packed, $16) f;

        new_serials := new_serials || fresh.serials;
        new_ids := new_ids || fresh.ids;

        IF cardinality(fresh.ids) < cardinality(b.hashes) THEN
            PERFORM xet.shard_stay(b.hashes, $16);
        END IF;

        SELECT coalesce(array_agg(f.serial), '{}') AS serials,
               coalesce(array_agg(f.id), '{}') AS ids
          INTO fresh
          FROM xet.shard_mend(b.serials, b.hashes, b.counts, b.packed) f;

        new_serials := new_serials || fresh.serials;
        new_ids := new_ids || fresh.ids;

        news := news + xet.shard_known(b.hashes, b.sha256, repo_row,
                                       $18);

        IF NOT $16 AND $17 LIKE '\_hub/%' THEN
            PERFORM xet.hub_claim(repo_row, b.hashes, b.sha256);
        END IF;
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

    IF NOT $16 AND $18 IS NOT NULL THEN
        PERFORM xet.shard_had(xorb_ids, ranges, $18);
    END IF;

    IF news > 0 AND EXISTS (SELECT FROM xet.quotas) THEN
        PERFORM xet.quota_shard(last, $16, $17, repo_row, $18);
    END IF;

    IF $2 > 0 THEN
        DELETE FROM xet.staged s WHERE s.upload = $1;
    END IF;

    -- one that has changed nothing may do so again, or has waited for itself

    IF cardinality(new_ids) + news = 0 AND $2 = 0 THEN
        RETURN coalesce((SELECT a.said::integer FROM xet.acts a
                          WHERE a.act = $1), 0);
    END IF;

    said := CASE WHEN cardinality(new_ids) + news > 0 THEN 1 ELSE 0 END;

    INSERT INTO xet.acts (act, said) VALUES ($1, said);

    RETURN said::integer;
END;
$$;


-- A repo lets go of a file; the file stays as long as somebody has it.  False
-- when the repo did not have it.

CREATE FUNCTION xet.repo_forget(repo text, file bytea, act bytea DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN true;
    END IF;

    DELETE FROM xet.repo_files rf
     USING xet.repos r, xet.files f
     WHERE r.name = $1 AND f.hash = $2
       AND rf.repo_id = r.id AND rf.file_id = f.id;

    IF NOT FOUND THEN
        RETURN false;
    END IF;

    PERFORM xet.act_note(act, '1');

    RETURN true;
END;
$$;


-- The store lets go of a file, for readers at once, since what has no hash is
-- not found.  0: there is no such file; 1: it is deleted; 2: repos have it, and
-- nothing is changed, for who may write to the store need not be one of them.

CREATE FUNCTION xet.file_delete(file bytea, act bytea DEFAULT NULL)
    RETURNS integer
    LANGUAGE plpgsql
AS $$
DECLARE
    found_id bigint;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN 1;
    END IF;

    SELECT f.id INTO found_id
      FROM xet.files f
     WHERE f.hash = $1
       FOR UPDATE;

    IF found_id IS NULL THEN
        RETURN 0;
    END IF;

    -- a statement of its own, which sees what was committed before the lock

    IF EXISTS (SELECT FROM xet.repo_files rf WHERE rf.file_id = found_id) THEN
        RETURN 2;
    END IF;

    UPDATE xet.files f SET hash = NULL, held = false WHERE f.id = found_id;

    INSERT INTO xet.gc_files AS n (file_id) VALUES (found_id)
    ON CONFLICT (file_id) DO UPDATE SET since = excluded.since;

    PERFORM xet.act_note(act, '1');

    RETURN 1;
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


-- A repo with all of its places; what nobody else has is for the collector.
-- False where there is no such repo.  Nobody waits but who uploads to it.
--
-- What refers to the repo is deleted before it is: the statements by which the
-- keys would do it may have been planned while the tables were small.

CREATE FUNCTION xet.repo_delete(repo text, act bytea DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    found_id bigint;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN true;
    END IF;

    SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;

    IF found_id IS NULL THEN
        RETURN false;
    END IF;

    PERFORM pg_advisory_xact_lock(hashtext('xet.repos'), hashint8(found_id));
    PERFORM FROM xet.repos r WHERE r.id = found_id FOR UPDATE;

    DELETE FROM xet.repo_files rf WHERE rf.repo_id = found_id;
    DELETE FROM xet.xorb_repos o WHERE o.repo_id = found_id;
    DELETE FROM xet.repos r WHERE r.id = found_id;

    IF NOT FOUND THEN
        RETURN false;
    END IF;

    PERFORM xet.act_note(act, '1');

    RETURN true;
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
       FOR KEY SHARE OF f
    ON CONFLICT (file_id, repo_id) DO UPDATE SET repo_id = rf.repo_id;

    RETURN FOUND;
END;
$$;


-- What is said of a repo of the Hub besides its name, which tells nobody
-- anything; NULL for another one.

CREATE FUNCTION xet.hub_title(store text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT (ARRAY['models', 'datasets', 'spaces', 'buckets'])[h.kind + 1]
           || '/' || h.owner || '/' || h.name
      FROM xet.hub_repos h
     WHERE h.store = CASE WHEN $1 ~ '^_hub/[0-9]{1,18}$'
                          THEN substr($1, 6)::bigint END;
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


-- The files of a repo, or with any_repo all of them; oldest first.

CREATE FUNCTION xet.file_list(any_repo boolean, repo text)
    RETURNS TABLE (hash bytea, size bigint, created_at timestamptz,
                   sha256 bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT f.hash, f.size, f.created_at, f.sha256
      FROM xet.files f
     WHERE f.hash IS NOT NULL
       AND any_repo IS NOT NULL AND file_list.repo IS NOT NULL
       AND (any_repo
            OR f.id IN (SELECT rf.file_id
                          FROM xet.repo_files rf
                          JOIN xet.repos r ON r.id = rf.repo_id
                         WHERE r.name = file_list.repo))
     ORDER BY f.id;
$$;


-- Somebody has read all of the file, and this is its SHA-256, whatever was
-- claimed for it; whether that was news.

CREATE FUNCTION xet.file_prove(file bytea, digest bytea)
    RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
BEGIN
    UPDATE xet.files f SET sha256 = $2, sha256_proven = true
     WHERE f.hash = $1 AND NOT f.sha256_proven;

    RETURN FOUND;
END;
$$;


-- The same of some files, in one order everywhere; how many they are.

CREATE FUNCTION xet.files_prove(files bytea[], digests bytea[])
    RETURNS bigint
    LANGUAGE sql
AS $$
    SELECT count(xet.file_prove(o.file, o.digest))
      FROM (SELECT u.file, u.digest
              FROM unnest($1, $2) AS u(file, digest)
             ORDER BY u.file
            OFFSET 0) o;
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
    SELECT f.id, $2, $3, $4
      FROM xet.files f
     WHERE f.hash = $1
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


-- Looks at who is charged for xorbs of which that is not certain any more, and
-- charges a repo and a subject that use them; what nobody uses stays as it is
-- until it is collected.  How many notes were looked at; 0: none are left.
--
-- The work is bounded, or it would run into a timeout each time and never be
-- done.  Of the files of a xorb the 1000 oldest and the 1000 newest are looked
-- at: who is charged then uses it in any case.  There are batch notes at most,
-- and those of 2 * batch xorbs; a file of more is noted anew, by its xorbs.

CREATE FUNCTION xet.usage_settle(batch integer)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    noted bigint[] := '{}';
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

        noted := noted || note.id;
        ids := ids || used;
    END LOOP;

    DELETE FROM xet.usage_left l WHERE l.id = ANY (noted);

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

    RETURN cardinality(noted);
END;
$$;


-- Drops the sums of repos that are gone, where they have come to zero: all that
-- was theirs has been collected, or others are charged for it.  Rows that
-- others are counting in are left; what is removed adds up to nothing, so
-- whoever counts for such a repo meanwhile, in a row of his own, is right.

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


-- Files that repos have had for a day, and that no path leads to, are let go
-- of.  Locks come first: who commits such a file holds its place, and what is
-- committed by then is seen by the next statement.

CREATE FUNCTION xet.hub_sweep(age interval, most integer)
    RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    repos  bigint[];
    files  bigint[];
    place  text;
    n      bigint;
BEGIN
    DELETE FROM xet.hub_staged s WHERE s.created_at < now() - age;
    DELETE FROM xet.hub_proofs p WHERE p.until < now();
    DELETE FROM xet.hub_vain v WHERE v.day < xet.today();

    SELECT array_agg(d.repo_id), array_agg(d.file_id) INTO repos, files
      FROM (SELECT l.repo_id, l.file_id
              FROM xet.hub_loose l
              JOIN xet.repo_files rf
                ON rf.repo_id = l.repo_id AND rf.file_id = l.file_id
             WHERE l.since < now() - age
             ORDER BY l.since
             LIMIT most
               FOR UPDATE OF l, rf SKIP LOCKED) d;

    -- a repo of another kind may be called so by whoever gives out tokens

    DELETE FROM xet.repo_files rf
     USING unnest(repos, files) AS d(repo_id, file_id), xet.repos r,
           xet.files f, xet.hub_repos h
     WHERE rf.repo_id = d.repo_id AND rf.file_id = d.file_id
       AND r.id = d.repo_id AND f.id = d.file_id
       AND h.store = CASE WHEN r.name ~ '^_hub/[0-9]{1,18}$'
                          THEN substr(r.name, 6)::bigint END
       AND NOT EXISTS (SELECT FROM xet.hub_paths p
                        WHERE p.repo_id = h.id
                          AND p.hash = xet.hub_hash(f.hash));

    DELETE FROM xet.hub_loose l
     USING unnest(repos, files) AS d(repo_id, file_id)
     WHERE l.repo_id = d.repo_id AND l.file_id = d.file_id;

    GET DIAGNOSTICS n = ROW_COUNT;

    -- files that a repo has lost by other ways

    DELETE FROM xet.hub_loose l
     USING (SELECT k.repo_id, k.file_id
              FROM xet.hub_loose k
             WHERE k.since < now() - age
               AND NOT EXISTS (SELECT FROM xet.repo_files rf
                                WHERE rf.repo_id = k.repo_id
                                  AND rf.file_id = k.file_id)
             ORDER BY k.since
             LIMIT most
               FOR UPDATE SKIP LOCKED) d
     WHERE l.repo_id = d.repo_id AND l.file_id = d.file_id;

    -- those of repos that were never created

    FOR place IN SELECT r.name
                   FROM xet.repos r
                  WHERE r.name ~ '^_hub/new/[0-9a-f]{32}$'
                    AND r.created_at < now() - age
                  LIMIT 100
                    FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM xet.repo_delete(place);
    END LOOP;

    RETURN n;
END;
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


-- Drops what crashed uploads have staged, and old results of zTensor files; to
-- be called now and then, from cron for one.

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

    WITH gone AS (
        DELETE FROM xet.staged WHERE created_at < now() - age RETURNING 1
    )
    SELECT count(*) FROM gone;
$$;


-- The collector.
--
-- Three steps, each a transaction of bounded size that may be repeated, by as
-- many collectors at a time as there are: files that nobody has, xorbs that no
-- file needs, and stored copies whose row is gone.  The notes in xet.gc_* say
-- where to look; the row that a note is about is locked, and then looked at by
-- a statement of its own, which sees all that was committed before the lock was
-- had.  Whoever is about to need the row holds a lock on it until he has
-- committed (xet.shard_stay, xet.shard_terms, references), so there is no
-- moment between looking and deleting.  A collector waits for nobody: what
-- others have locked it leaves for the next time.


-- Deletes files that nobody has: their references and terms, as many as a
-- transaction should hold, and then the rows.  seen: notes that were looked
-- at; kept: files that somebody has; busy: files that others have locked;
-- files and bytes: that are gone; refs: references and segments of terms.

CREATE FUNCTION xet.gc_files(batch integer)
    RETURNS TABLE (seen bigint, files bigint, bytes bigint, refs bigint,
                   kept bigint, busy bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    noted bigint[];
    gone  bigint[];
    mine  bigint[];
    dead  bigint[];
    ended bigint[];
    last  record;
    n     bigint;
BEGIN
    SELECT coalesce(array_agg(l.file_id), '{}') INTO noted
      FROM (SELECT g.file_id FROM xet.gc_files g
             ORDER BY g.file_id
             LIMIT batch
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(l.id), '{}') INTO mine
      FROM (SELECT f.id FROM xet.files f
             WHERE f.id = ANY (noted)
             ORDER BY f.id
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(f.id), '{}') INTO dead
      FROM xet.files f
     WHERE f.id = ANY (mine) AND NOT f.held
       AND NOT EXISTS (SELECT FROM xet.repo_files rf WHERE rf.file_id = f.id);

    SELECT coalesce(array_agg(u.id), '{}') INTO gone
      FROM unnest(noted) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.files f WHERE f.id = u.id);

    -- the first of them in the order of the key

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

    -- one that is not done yet has lost references, and is not found any more

    UPDATE xet.files f SET hash = NULL
     WHERE f.id = ANY (dead) AND f.hash IS NOT NULL;

    DELETE FROM xet.gc_files g
     WHERE g.file_id = ANY (noted)
       AND (g.file_id = ANY (ended) OR g.file_id = ANY (gone)
            OR (g.file_id = ANY (mine) AND g.file_id <> ALL (dead)));

    seen := cardinality(noted);
    kept := cardinality(mine) - cardinality(dead);
    busy := cardinality(noted) - cardinality(mine) - cardinality(gone);

    RETURN NEXT;

-- Two that note what they let go of in several statements may wait for each
-- other; the batch is for the next time then.

EXCEPTION WHEN deadlock_detected THEN
    seen := 0;
    files := 0;
    bytes := 0;
    refs := 0;
    kept := 0;
    busy := 0;

    RETURN NEXT;
END;
$$;


-- Deletes xorbs that no file needs, and have been so, and unknown to clients,
-- for grace seconds: since they came or lost their last reference, and since
-- the day after the one on which they were last advertised.  With a grace of 0
-- it does not matter what clients remember.  Their copies are for
-- xet.gc_copies().
--
-- needed: xorbs that files need, told: that were advertised too lately, busy:
-- that others have locked; bytes: stored.

CREATE FUNCTION xet.gc_xorbs(grace bigint, batch integer)
    RETURNS TABLE (seen bigint, xorbs bigint, bytes bigint, needed bigint,
                   told bigint, busy bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    noted bigint[];
    gone  bigint[];
    mine  bigint[];
    free  bigint[];
    late  bigint[];
    dead  bigint[];
    born  timestamptz := now() - grace * interval '1 second';
BEGIN
    SELECT coalesce(array_agg(l.xorb_id), '{}') INTO noted
      FROM (SELECT g.xorb_id FROM xet.gc_xorbs g
             WHERE g.since <= CASE WHEN grace > 0 THEN born
                                   ELSE 'infinity' END
             ORDER BY g.since, g.xorb_id
             LIMIT batch
               FOR UPDATE SKIP LOCKED) l;

    SELECT coalesce(array_agg(l.id), '{}') INTO mine
      FROM (SELECT x.id FROM xet.xorbs x
             WHERE x.id = ANY (noted)
             ORDER BY x.id
               FOR UPDATE SKIP LOCKED) l;

    -- one look-up each, by OFFSET 0, and never a join with all there are

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
      FROM unnest(noted) AS u(id)
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x WHERE x.id = u.id OFFSET 0);

    UPDATE xet.gc_xorbs g SET since = xet.day_ends(x.advertised_on)
      FROM xet.xorbs x
     WHERE x.id = ANY (late) AND g.xorb_id = x.id;

    INSERT INTO xet.gc_copies (hash, tag, stored_size)
    SELECT x.hash, x.tag, x.stored_size FROM xet.xorbs x
     WHERE x.id = ANY (dead)
    ON CONFLICT DO NOTHING;

    DELETE FROM xet.chunks c WHERE c.xorb_id = ANY (dead);
    DELETE FROM xet.xorb_repos o WHERE o.xorb_id = ANY (dead);
    DELETE FROM xet.xorb_subjects o WHERE o.xorb_id = ANY (dead);
    DELETE FROM xet.charges o WHERE o.xorb_id = ANY (dead);

    WITH ends AS (
        DELETE FROM xet.xorbs x WHERE x.id = ANY (dead)
        RETURNING x.stored_size
    )
    SELECT count(*), coalesce(sum(e.stored_size), 0)::bigint INTO xorbs, bytes
      FROM ends e;

    DELETE FROM xet.gc_xorbs g
     WHERE g.xorb_id = ANY (noted)
       AND (g.xorb_id = ANY (dead) OR g.xorb_id = ANY (gone)
            OR (g.xorb_id = ANY (mine) AND g.xorb_id <> ALL (free)));

    seen := cardinality(noted);
    needed := cardinality(mine) - cardinality(free);
    told := cardinality(late);
    busy := cardinality(noted) - cardinality(mine) - cardinality(gone);

    RETURN NEXT;

-- Two that note what they let go of in several statements may wait for each
-- other; the batch is for the next time then.

EXCEPTION WHEN deadlock_detected THEN
    seen := 0;
    xorbs := 0;
    bytes := 0;
    needed := 0;
    told := 0;
    busy := 0;

    RETURN NEXT;
END;
$$;


-- Copies whose files are to be removed, as many as batch, in the order of the
-- store's folders.  None while a backup goes on, which holds the lock in shared
-- mode from before its snapshot: a copy that its snapshot knows is given here
-- only after it has ended.  A backup that begins now has a snapshot without
-- the rows of these copies.
--
-- Nor any while this database came from a dump, and nobody has said that the
-- store is its own (xet.store_doubts()): then what it does not need may be
-- needed by the one that the dump is of.

CREATE FUNCTION xet.gc_copies(batch integer)
    RETURNS TABLE (hash bytea, tag integer, stored_size bigint)
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
    SELECT g.hash, g.tag, g.stored_size
      FROM xet.gc_copies g
     WHERE NOT EXISTS (SELECT FROM xet.xorbs x
                        WHERE x.hash = g.hash AND x.tag = g.tag)
     ORDER BY g.hash, g.tag
     LIMIT batch;
END;
$$;


-- Their files are gone, durably.  How many this is news of, and their bytes.

CREATE FUNCTION xet.gc_removed(hashes bytea[], tags integer[])
    RETURNS TABLE (copies bigint, bytes bigint)
    LANGUAGE sql
AS $$
    WITH gone AS (
        DELETE FROM xet.gc_copies g
         USING unnest($1, $2) AS u(hash, tag)
         WHERE g.hash = u.hash AND g.tag = u.tag
        RETURNING g.stored_size
    )
    SELECT count(*), coalesce(sum(g.stored_size), 0)::bigint FROM gone g;
$$;


-- The same for servers, which may send a statement again: what it did is told
-- again, and counted.

CREATE FUNCTION xet.gc_files_once(batch integer, act bytea)
    RETURNS TABLE (seen bigint, busy bigint, files bigint, bytes bigint)
    LANGUAGE plpgsql
AS $$
DECLARE
    said jsonb := xet.act_said(act);
BEGIN
    IF said IS NULL THEN
        SELECT to_jsonb(g) INTO said FROM xet.gc_files(batch) g;

        PERFORM xet.act_note(act, said) WHERE said->>'seen' <> '0';
    END IF;

    RETURN QUERY
    SELECT s.seen, s.busy, s.files, s.bytes
      FROM jsonb_to_record(said)
               AS s(seen bigint, busy bigint, files bigint, bytes bigint);
END;
$$;


CREATE FUNCTION xet.gc_xorbs_once(grace bigint, batch integer, act bytea)
    RETURNS TABLE (seen bigint, busy bigint, xorbs bigint, bytes bigint,
                   told bigint)
    LANGUAGE plpgsql
AS $$
DECLARE
    said jsonb := xet.act_said(act);
BEGIN
    IF said IS NULL THEN
        SELECT to_jsonb(g) INTO said FROM xet.gc_xorbs(grace, batch) g;

        PERFORM xet.act_note(act, said) WHERE said->>'seen' <> '0';
    END IF;

    RETURN QUERY
    SELECT s.seen, s.busy, s.xorbs, s.bytes, s.told
      FROM jsonb_to_record(said)
               AS s(seen bigint, busy bigint, xorbs bigint, bytes bigint,
                    told bigint);
END;
$$;


CREATE FUNCTION xet.gc_removed_once(hashes bytea[], tags integer[], act bytea)
    RETURNS TABLE (copies bigint, bytes bigint)
    LANGUAGE plpgsql
AS $$
DECLARE
    said jsonb := xet.act_said(act);
BEGIN
    IF said IS NULL THEN
        SELECT to_jsonb(g) INTO said FROM xet.gc_removed(hashes, tags) g;

        PERFORM xet.act_note(act, said) WHERE said->>'copies' <> '0';
    END IF;

    RETURN QUERY
    SELECT s.copies, s.bytes
      FROM jsonb_to_record(said) AS s(copies bigint, bytes bigint);
END;
$$;


CREATE FUNCTION xet.usage_settle_once(batch integer, act bytea)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    said jsonb := xet.act_said(act);
BEGIN
    IF said IS NULL THEN
        said := to_jsonb(xet.usage_settle(batch));

        PERFORM xet.act_note(act, said) WHERE said <> '0';
    END IF;

    RETURN said::bigint;
END;
$$;


-- What a collection would do now: files that nobody has, xorbs that would be
-- deleted, and why others that no file needs stay.

CREATE FUNCTION xet.gc_preview(grace bigint)
    RETURNS TABLE (files bigint, file_bytes bigint, xorbs bigint,
                   xorb_bytes bigint, young bigint, young_bytes bigint,
                   told bigint, told_bytes bigint, copies bigint,
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
    ), noted AS MATERIALIZED (
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
                    THEN 'told'
                    ELSE 'dead'
               END AS why
          FROM noted n
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
           count(*) FILTER (WHERE f.why = 'told'),
           coalesce(sum(f.stored_size) FILTER (WHERE f.why = 'told'),
                    0)::bigint,
           (SELECT count(*) FROM xet.gc_copies),
           (SELECT coalesce(sum(c.stored_size), 0)::bigint
              FROM xet.gc_copies c)
      FROM free f;
$$;


-- For a store whose every location has "xet_access repo" now, and had another
-- access before: the store holds files that were registered without a repo.
-- This releases them, so that the collector removes those that no repo has.
-- Returns how many files were held.

CREATE FUNCTION xet.files_release()
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    n  bigint;
BEGIN
    UPDATE xet.files f SET held = false WHERE f.held;

    GET DIAGNOSTICS n = ROW_COUNT;

    RETURN n;
END;
$$;


-- Chores: work in the background that one worker of all nodes does at a time.
-- The lease is by the clock of PostgreSQL, and an economy only: two workers
-- that do the same at once do no harm.  All of these may run twice, since a
-- statement whose session is lost is sent again.

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


-- How many milliseconds from now a chore can be taken at the earliest.  A node
-- may take what it holds itself: a worker of it has gone.

CREATE FUNCTION xet.chore_wait(c xet.chores, holder bytea, every bigint)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    at timestamptz := clock_timestamp();
    due timestamptz;
BEGIN
    -- no lease is as long as that

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


-- Takes the lease of a chore for so many milliseconds, where nobody else has
-- it, and a run is under way or due: one that was left, or whose worker has
-- died, goes on at its cursor.  Runs begin "every" so many milliseconds.  wait
-- is 0 where the lease was taken.

CREATE FUNCTION xet.chore_take(name text, holder bytea, every bigint,
    lease bigint)
    RETURNS TABLE (wait bigint, the_turn bigint, the_cursor text,
                   begins boolean)
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
DECLARE
    c xet.chores;
BEGIN
    SELECT * INTO c FROM xet.chores x WHERE x.name = name;

    IF NOT FOUND THEN
        INSERT INTO xet.chores (name) VALUES (name) ON CONFLICT DO NOTHING;
    END IF;

    wait := xet.chore_wait(c, holder, every);

    IF wait = 0 THEN
        SELECT * INTO c FROM xet.chores x WHERE x.name = name FOR UPDATE;

        wait := xet.chore_wait(c, holder, every);
    END IF;

    IF wait = 0 THEN
        begins := c.cursor IS NULL;

        UPDATE xet.chores x
           SET holder = holder, turn = c.turn + 1, seq = 0,
               until = clock_timestamp() + lease * interval '1 ms',
               cursor = coalesce(c.cursor, ''),
               started_at = CASE WHEN begins THEN clock_timestamp()
                                 ELSE c.started_at END,
               figures = CASE WHEN begins THEN '{}' ELSE c.figures END
         WHERE x.name = name
        RETURNING x.turn, x.cursor INTO the_turn, the_cursor;
    END IF;

    RETURN NEXT;
END;
$$;


-- Keeps the lease, and notes how far the run is; figures are added once for
-- each seq of the turn.  A lease of 0 is given back: another node may go on,
-- and note says why this one does not.  False: somebody else has it.

CREATE FUNCTION xet.chore_keep(name text, holder bytea, turn bigint,
    seq integer, lease bigint, cursor text, figures text, note text)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.chores c
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


-- The run is complete.

CREATE FUNCTION xet.chore_done(name text, holder bytea, turn bigint,
    figures text)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.chores c
       SET holder = NULL, until = NULL, cursor = NULL, note = NULL,
           finished_at = clock_timestamp(),
           figures = xet.figures_sum(c.figures, figures::jsonb),
           totals = xet.figures_sum(c.totals, xet.figures_sum(c.figures,
                                                          figures::jsonb))
     WHERE c.name = name AND c.turn = turn AND c.holder = holder
       AND c.cursor IS NOT NULL;

    -- a turn ends once: one without a cursor was ended by this statement

    RETURN FOUND OR EXISTS (SELECT FROM xet.chores c
                             WHERE c.name = name AND c.turn = turn
                               AND c.cursor IS NULL);
END;
$$;


-- For operators: the next run begins now, unless one is under way.

CREATE FUNCTION xet.chore_now(name text)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
BEGIN
    UPDATE xet.chores c SET started_at = NULL
     WHERE c.name = name AND c.cursor IS NULL;

    RETURN FOUND;
END;
$$;


-- What chores do and have done, a few rows.  figures are of the run under way,
-- or of the last one; totals are of all runs, that one counted.

CREATE FUNCTION xet.chores_show()
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
      FROM xet.chores c
     ORDER BY c.name;
$$;


-- The next copies that are to be read, in the order of their rows; what is
-- known to be damaged is left to xet.heal_next().  Of a row without a digest
-- there is the SHA-256 of its stored_ends, which the copy has to have, too.

CREATE FUNCTION xet.scrub_next(after bigint)
    RETURNS TABLE (id bigint, hash bytea, tag integer, stored_size bigint,
                   digest bytea, ends_sha256 bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT x.id, x.hash, x.tag, x.stored_size, x.digest,
           CASE WHEN x.digest IS NULL THEN sha256(x.stored_ends) END
      FROM xet.xorbs x
     WHERE x.id > after AND x.damaged_at IS NULL
     ORDER BY x.id
     LIMIT 8;
$$;


-- The same for copies that are known to be damaged, and are to be healed now.

CREATE FUNCTION xet.heal_next(after bigint)
    RETURNS TABLE (id bigint, hash bytea, tag integer, stored_size bigint,
                   digest bytea, ends_sha256 bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT x.id, x.hash, x.tag, x.stored_size, x.digest,
           CASE WHEN x.digest IS NULL THEN sha256(x.stored_ends) END
      FROM xet.xorbs x
      LEFT JOIN xet.heals h ON h.xorb_id = x.id AND h.tag = x.tag
     WHERE x.id > after AND x.damaged_at IS NOT NULL
       AND (h.next_at IS NULL OR h.next_at <= now()
            OR h.next_at > now() + interval '1 hour')
     ORDER BY x.id
     LIMIT 8;
$$;


-- A copy could not be healed: it is tried again after a minute, and after
-- twice the time from try to try, up to an hour.  False: it is not the copy of
-- the row any more.

CREATE FUNCTION xet.heal_later(id bigint, tag integer)
    RETURNS boolean
    LANGUAGE plpgsql
    SET lock_timeout = '1s'
AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO xet.heals AS h (xorb_id, tag, tries, next_at)
    SELECT x.id, x.tag, 1, now() + interval '1 minute'
      FROM xet.xorbs x
     WHERE x.id = id AND x.tag = tag
    ON CONFLICT ON CONSTRAINT heals_pkey DO UPDATE
       SET tag = excluded.tag,
           tries = CASE WHEN h.tag = excluded.tag THEN least(h.tries + 1, 10)
                        ELSE 1 END,
           next_at = now() + least(interval '1 hour', interval '1 minute'
               * 2 ^ CASE WHEN h.tag = excluded.tag THEN h.tries ELSE 0 END)
     WHERE h.tag <> excluded.tag OR h.next_at <= now()
           OR h.next_at > now() + interval '1 hour';

    -- what waits already was sent again: it counts once

    RETURN EXISTS (SELECT FROM xet.heals h
                    WHERE h.xorb_id = id AND h.tag = heal_later.tag);
END;
$$;


-- Acts of administrators.  What the API does is in the audit log of nginx; what
-- "xet repo" does comes here, and so into the log of PostgreSQL, as a line of
-- level LOG, which only a superuser can turn off.  It stands around the call of
-- the function that acts: the result of that is returned as it is, and what has
-- failed is not told.

DROP FUNCTION IF EXISTS xet.audit_note;

CREATE FUNCTION xet.audit_note(action text, repo text, file bytea,
    done anyelement)
    RETURNS anyelement
    LANGUAGE plpgsql
AS $$
BEGIN
    RAISE LOG 'xet audit: %', json_strip_nulls(json_build_object(
        'time', to_char(clock_timestamp() AT TIME ZONE 'UTC',
                        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
        'action', action,
        'role', session_user,
        'address', host(inet_client_addr()),
        'repo', repo,
        'hash', (SELECT string_agg(lpad(to_hex(get_byte(file, i # 7)), 2,
                                        '0'), '' ORDER BY i)
                   FROM generate_series(0, length(file) - 1) AS s(i)),
        'done', done::text NOT IN ('f', 'false', '0')));

    RETURN done;
END;
$$;


-- --------------------------------------------------------------------------
-- Figures for metrics.

-- A part of a walk over all files and xorbs, some thousand rows each: their
-- numbers and sums, and the last id of each, NULL where the walk is at its
-- end.  Nothing that the server shows is worth reading all rows at once.
-- Damaged xorbs and repos are counted at once, as many as one cares about.

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
                      FROM xet.chores h) AS k) AS c;
$$;


-- Files of the store that have no row.  When whoever has looked for them last
-- has found how many, NULL is not known; swept: he has looked at all, and
-- removed what may be.  started_at is when that was last, so that
-- xet.chore_now('orphans') makes a server do it in its next run.

CREATE FUNCTION xet.orphans_found(n bigint, swept boolean DEFAULT false)
    RETURNS boolean
    LANGUAGE sql
AS $$
    INSERT INTO xet.chores AS c (name, started_at, finished_at, figures)
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
           xet.store_doubts()
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
           AND EXISTS (SELECT FROM xet.chores c
                        WHERE c.name = 'orphans'
                          AND xet.past(c.started_at)
                              > now() - interval '1 day')
    THEN
        why := '';

    ELSIF NOT pg_try_advisory_xact_lock(hashtext('xet.copies'), 0) THEN
        why := 'a backup or a rebuild is under way';
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
        OR xet.store_doubts() IS NOT NULL
    THEN
        RETURN;
    END IF;

    RETURN QUERY SELECT u.hash, u.tag FROM xet.copies_unknown($1, $2) u;
END;
$$;


-- A part of a walk over the places of files in repos, in the order of repos,
-- some thousand rows: the first and the last repo of the part, of which other
-- parts may have more, and the largest of those in between, in this order.

CREATE FUNCTION xet.repo_figures(after_repo bigint, after_file bigint,
    part integer)
    RETURNS TABLE (repo bigint, name text, files bigint, bytes bigint,
                   last_file bigint, more boolean)
    LANGUAGE sql
    STABLE
AS $$
    WITH places AS MATERIALIZED (
        SELECT rf.repo_id, rf.file_id
          FROM xet.repo_files rf
         WHERE (rf.repo_id, rf.file_id) > (after_repo, after_file)
         ORDER BY rf.repo_id, rf.file_id
         LIMIT part
    ), sums AS (
        SELECT p.repo_id, count(*) AS n, sum(f.size)::bigint AS bytes,
               max(p.file_id) AS last
          FROM places p
          JOIN xet.files f ON f.id = p.file_id
         GROUP BY p.repo_id
    ), ranked AS (
        SELECT s.*, rank() OVER (ORDER BY s.bytes DESC, s.repo_id) AS place,
               min(s.repo_id) OVER () AS first_repo,
               max(s.repo_id) OVER () AS last_repo
          FROM sums s
    )
    SELECT k.repo_id, r.name, k.n, k.bytes, k.last,
           (SELECT count(*) FROM places) >= part
      FROM ranked k
      JOIN xet.repos r ON r.id = k.repo_id
     WHERE k.place <= 10 OR k.repo_id IN (k.first_repo, k.last_repo)
     ORDER BY k.repo_id;
$$;


-- Somebody has found copies missing, cut or damaged, and gets those that are:
-- that a row still names.  A copy whose xorb was collected, or healed, since it
-- was looked up is no loss.

CREATE FUNCTION xet.copies_lost(xorbs bytea[], tags integer[])
    RETURNS TABLE (xorb bytea, copy integer)
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.xorb_damaged($1, $2);

    RETURN QUERY
    SELECT x.hash, x.tag
      FROM unnest($1, $2) AS d(hash, tag)
      JOIN xet.xorbs x ON x.hash = d.hash AND x.tag = d.tag;
END;
$$;


-- Quotas and usage.
--
-- 0001_schema.sql says what is counted, and for whom.  A limit is held at the
-- end of the transaction that adds to what it limits, under a lock of the repo
-- and of the subject that goes with the commit: so all that were before are
-- seen, and two at the edge of a limit can not both slip under it.  Without a
-- limit nobody takes the lock.  Nothing is waited for behind it but the commit,
-- and it is taken for the repo first and then for the subject: so nobody waits
-- in a circle.
--
-- XT004: the limit is exceeded.  The detail has kind, what is limited, the
-- limit, and what was used without this transaction.


-- The limits of a repo or of a subject (issuer, zero byte, subject): its row,
-- or the one for all.

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


-- Whether anybody has a limit; else there is no need to ask before an upload.

CREATE FUNCTION xet.quota_any()
    RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT EXISTS (SELECT FROM xet.quotas);
$$;


-- The sums of an owner, zeros where nothing was counted.

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


-- Raises XT004 where an owner has a limit that is exceeded by what is added:
-- counted is what of it is in the sums already.

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

    -- a statement of its own, which sees all of before the lock

    SELECT u.* INTO used FROM xet.usage_of($3) u;

    used.stored := used.stored - mine * $4;
    used.logical := used.logical - mine * $5;
    used.metadata := used.metadata - mine * $7;

    IF $4 > 0 AND used.stored + $4 > most.stored THEN
        what := 'stored';
        most_n := most.stored;
        used_n := used.stored;

    ELSIF $5 > 0 AND used.logical + $5 > most.logical THEN
        what := 'logical';
        most_n := most.logical;
        used_n := used.logical;

    ELSIF $7 > 0 AND used.metadata + $7 > most.metadata THEN
        what := 'metadata';
        most_n := most.metadata;
        used_n := used.metadata;

    ELSE
        RETURN;
    END IF;

    RAISE EXCEPTION 'a % is over its quota', $1
          USING ERRCODE = 'XT004',
                DETAIL = format('%s %s %s %s', $1, what, most_n,
                                greatest(used_n, 0));
END;
$$;


-- The last act of a transaction that has added so many bytes for a repo and a
-- subject.  Before its rows are written it asks with counted = false: what is
-- refused then costs nothing.

CREATE FUNCTION xet.quota_hold(any_repo boolean, repo text, subject bytea,
    stored bigint, logical bigint, metadata bigint DEFAULT 0,
    counted boolean DEFAULT true)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF any_repo IS NULL OR repo IS NULL THEN
        RAISE EXCEPTION 'bytes come with no repo' USING ERRCODE = '22004';
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


-- The same for a shard, all of whose places in the repo are as old as the
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


-- Asked before the bytes of an upload are read, with as many as it announces:
-- raises XT004 where they would not be taken now.  what is stored, and hash a
-- xorb that costs nothing if the repo has sent it; or logical, and hash a file,
-- NULL where it is not known, that costs nothing if the repo has it.  That
-- others have a xorb counts in the commit only, for who has sent the bytes: a
-- hash alone must not tell.

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

    IF NOT any_repo THEN
        PERFORM xet.quota_check('repo', convert_to(repo, 'UTF8'),
                                int8send(coalesce(row_id, -1)), stored,
                                logical, false);
    END IF;

    IF subject IS NOT NULL THEN
        PERFORM xet.quota_check('subject', subject, sha256(subject), stored,
                                logical, false);
    END IF;

    RETURN true;
END;
$$;


-- What a repo and a subject use, and their limits.

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


-- For administrators.
--
-- Sets the limits of a repo or of a subject, NULL for none; without any the row
-- goes.  A NULL owner is for all that have no row.  A repo need not be there
-- yet.

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


-- All repos and subjects that use something or have a limit.  Of a subject only
-- a hash is known, in hexadecimal, and its name where it has a limit of its
-- own: with a slash for the zero byte.

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
        SELECT 'subject', coalesce(q.name, encode(u.owner, 'hex')),
               coalesce(q.owner, u.owner), u.owner
          FROM (SELECT DISTINCT u.owner FROM xet.usage u
                 WHERE length(u.owner) = 32) u
          LEFT JOIN (SELECT q.owner, sha256(q.owner) AS key,
                            replace(encode(q.owner, 'escape'), '\000', '/')
                                AS name
                       FROM xet.quotas q
                      WHERE q.kind = 'subject' AND q.owner <> '') q
            ON q.key = u.owner
    )
    SELECT o.kind, o.name, u.stored, u.logical, u.files, q.stored, q.logical,
           u.metadata, q.metadata
      FROM owners o
     CROSS JOIN LATERAL xet.usage_of(o.key) u
      LEFT JOIN LATERAL xet.quota_of(o.kind, o.owner) q ON true
     WHERE o.kind = 'repo' OR u.stored <> 0 OR u.logical <> 0 OR u.files <> 0
        OR u.metadata <> 0;
$$;


-- All of the store: bytes of xorbs, bytes of files; of the stored bytes those
-- that nobody is charged for, and those that a collection would free now.

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


-- Counts anew, and mends the sums that differ; a row for each of these, with
-- what was wrong.  One statement has one view of the store, in which sums and
-- rows fit, so uploads go on meanwhile.
--
-- First xorbs get their charge that have none, as when somebody has put rows
-- in by hand, and one of another size is set right.

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
        SELECT w.*, xet.usage_add(w.owner, w.stored, w.logical, w.files,
                                  w.metadata)
          FROM wrong w
    )
    SELECT CASE length(m.owner) WHEN 8 THEN 'repo' ELSE 'subject' END,
           coalesce(r.name, encode(m.owner, 'hex')), m.stored, m.logical,
           m.files, m.metadata
      FROM mended m
      LEFT JOIN xet.repos r ON int8send(r.id) = m.owner;
END;
$$;


-- A Hub: repos with names, their commits and files (tables xet.hub_*).
--
-- Most functions answer a request: its status, and for an error the code and
-- the message that clients know; else the JSON of the body.  The rights of the
-- caller are four parameters, and xet.hub_may() decides by them.  Public repos
-- are for every caller.
--
-- Paths are looked up one by one, by LATERAL with a LIMIT, under settings that
-- leave no other plan: one that was made while the tables were small would walk
-- through all of a repo for each path.

CREATE FUNCTION xet.hub_date(at timestamptz)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
$$;


-- A hash from the order of its bytes to that of its digits, or back: those of
-- each of four words are the other way round.

CREATE FUNCTION xet.hub_hash(hash bytea)
    RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT string_agg(substr(hash, w * 8 + b, 1), '' ORDER BY w, b DESC)
      FROM generate_series(0, 3) AS w, generate_series(1, 8) AS b;
$$;


-- What uploads of a repo belong to: its row in xet.repos, by hub_repos.store or
-- by the id of the repo.  All that is given out for the repo, tokens and URLs,
-- is for this name; so nothing of that is good any more when the name changes.

CREATE FUNCTION xet.hub_store(number bigint)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '_hub/' || number;
$$;


-- Of a repo of the Hub its name in the store, and the id that it has there.
-- These are asked for several times in a commit: each has a plan that a session
-- keeps, and is called before the statement that needs it, since the planner
-- would call it, too.

CREATE FUNCTION xet.hub_store_of(repo bigint)
    RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET enable_seqscan = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN (SELECT xet.hub_store(h.store)
              FROM xet.hub_repos h WHERE h.id = $1);
END;
$$;


CREATE FUNCTION xet.hub_files_of(repo bigint)
    RETURNS bigint
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    SET enable_seqscan = off
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    stored  text;
BEGIN
    SELECT xet.hub_store(h.store) INTO stored
      FROM xet.hub_repos h WHERE h.id = $1;

    RETURN (SELECT x.id FROM xet.repos x WHERE x.name = stored);
END;
$$;


-- Whether a caller has the rights of a repo's owner: to read the repo while it
-- is private, and to write to it.  spaces are the name spaces of the caller, in
-- canonical form, which is lower case ASCII; with any_space the caller has all
-- of them.  store is the repo that the caller's token is for; with any_store
-- the token is for no single repo.  Both count: a token that a Hub gave out for
-- a public repo does not open the repo when it is private.
--
-- All four are always given.  A NULL is no right: it refuses.  of_store is NULL
-- for a repo that is still to be created.

CREATE FUNCTION xet.hub_may(any_space boolean, spaces text[],
    any_store boolean, store text, owner text, of_store text)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce($1 IS NOT NULL AND $2 IS NOT NULL AND $3 IS NOT NULL
                    AND $4 IS NOT NULL AND $5 IS NOT NULL
                    AND ($1 OR lower($5 COLLATE "C") = ANY ($2))
                    AND ($3 OR $4 = $6), false);
$$;


-- About how many bytes of the database a row takes that has such a text, its
-- indexes included: of a path, which is in six of these; of a commit or a
-- reference.

CREATE FUNCTION xet.hub_weight(path text)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 400 + 6 * octet_length(path);
$$;


-- What is counted as metadata of repos: by whose transactions it was written.

CREATE FUNCTION xet.hub_metadata()
    RETURNS TABLE (repo_id bigint, subject bytea, bytes bigint)
    LANGUAGE sql STABLE
AS $$
    SELECT c.repo_id, c.subject, c.metadata FROM xet.hub_commits c
    UNION ALL
    SELECT f.repo_id, f.subject, xet.hub_weight(f.name)
      FROM xet.hub_refs f
    UNION ALL
    SELECT p.repo_id, p.subject, xet.hub_weight(p.path)
      FROM xet.hub_paths p
      JOIN xet.hub_repos h ON h.id = p.repo_id
     WHERE h.kind = 3;
$$;


-- Counts bytes of metadata for a repo and a subject, whose hash is given, the
-- subject by its sha256().

CREATE FUNCTION xet.hub_charge(repo bigint, subject bytea, bytes bigint)
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET plan_cache_mode = auto
AS $$
BEGIN
    PERFORM xet.usage_add(o.owner, 0, 0, 0, $3)
       FROM unnest(ARRAY[int8send(xet.hub_files_of($1)), $2]) AS o(owner)
      WHERE o.owner IS NOT NULL;
END;
$$;


-- The name of a repo in the store, by that name or by the one that it has, or
-- had, on the Hub; NULL for none.

CREATE FUNCTION xet.repo_named(in_store text, kind integer, owner text,
    name text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT coalesce(
               (SELECT r.name FROM xet.repos r WHERE r.name = $1),
               (SELECT xet.hub_store(h.store)
                  FROM xet.hub_repos h
                 WHERE h.kind = $2 AND lower(h.owner) = lower($3)
                   AND lower(h.name) = lower($4)),
               (SELECT xet.hub_store_of(m.repo_id)
                  FROM xet.hub_moved m
                 WHERE m.kind = $2 AND m.owner = lower($3)
                   AND m.name = lower($4)));
$$;


-- The repo of a name, as the caller sees it: 200, 307 for one that has moved,
-- whose name is in more then, 404 for one that does not exist or is hidden from
-- the caller, 403 for one that the caller may only read.  All look-ups are made
-- for each name, in one order: else time tells which private names there are.
--
-- With 404 more is "elsewhere" if another Hub may be asked for the name: if the
-- owner has no repo here.  Otherwise whoever has the same owner's name on that
-- Hub could put a repo in the place of a private one.

CREATE FUNCTION xet.hub_find(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, writes boolean, OUT status integer,
    OUT code text, OUT message text, OUT more text, OUT id bigint,
    OUT private boolean, OUT uploads text)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r      xet.hub_repos;
    named  bigint;
    was    bigint;
    mine   boolean;
BEGIN
    SELECT h.id INTO named
      FROM xet.hub_repos h
     WHERE h.kind = $1 AND lower(h.owner) = lower($2)
       AND lower(h.name) = lower($3);

    SELECT m.repo_id INTO was
      FROM xet.hub_moved m
     WHERE m.kind = $1 AND m.owner = lower($2) AND m.name = lower($3);

    SELECT h.* INTO r
      FROM xet.hub_repos h
     WHERE h.id = coalesce(named, was, -1);

    status := CASE WHEN named IS NULL THEN 307 ELSE 200 END;
    mine := xet.hub_may(any_space, spaces, any_store, store, r.owner,
                        xet.hub_store(r.store));

    IF r.id IS NULL OR r.private AND NOT mine THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';

        IF NOT EXISTS (SELECT FROM generate_series(0, 3) AS k
                        CROSS JOIN LATERAL (
                                  SELECT FROM xet.hub_repos h
                                   WHERE h.kind = k
                                     AND lower(h.owner) = lower($2)
                                   LIMIT 1) o)
        THEN
            more := 'elsewhere';
        END IF;

    ELSIF status = 307 THEN
        more := r.owner || '/' || r.name;

    ELSIF writes AND NOT mine THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'You may read this repository, and not write to it';

    ELSE
        id := r.id;
        private := r.private;
        uploads := xet.hub_store(r.store);
        more := r.owner || '/' || r.name;
    END IF;
END;
$$;


-- Commits of a repo whose ids begin with these digits, seven at least, in any
-- case: two of them where there are more.

CREATE FUNCTION xet.hub_ids(repo bigint, digits text)
    RETURNS TABLE (oid bytea)
    LANGUAGE sql STABLE
    SET enable_seqscan = off
AS $$
    SELECT c.oid
      FROM (SELECT CASE WHEN $2 ~ '^[0-9a-fA-F]{7,40}$' THEN $2 END AS text) d
     CROSS JOIN LATERAL (
               SELECT c.oid FROM xet.hub_commits c
                WHERE c.repo_id = $1
                  AND c.oid >= decode(rpad(d.text, 40, '0'), 'hex')
                  AND c.oid <= decode(rpad(d.text, 40, 'f'), 'hex')
                LIMIT 2) c;
$$;


-- The commit that digits name; NULL where that is none, or not only one.

CREATE FUNCTION xet.hub_oid(repo bigint, digits text)
    RETURNS bytea
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN count(*) = 1 THEN (array_agg(i.oid))[1] END
      FROM xet.hub_ids($1, $2) i;
$$;


-- Whether a revision begins with digits that only a commit can have: 40, or
-- those of a commit that there is.  No name of a branch or a tag counts then.

CREATE FUNCTION xet.hub_is_id(repo bigint, rev text)
    RETURNS boolean
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN rev !~ '^[0-9a-fA-F]{7,40}(/|$)' THEN false
                WHEN length(split_part(rev, '/', 1)) = 40 THEN true
                ELSE EXISTS (SELECT
                               FROM xet.hub_ids($1, split_part(rev, '/', 1)))
                END;
$$;


-- Lines.  A commit is the commit seq of a line.  What it has was written by
-- commits of that line, and of those that the line goes on from (bases and upto
-- of xet.hub_lines).  So what is at a commit is asked for by two arrays: lines,
-- the nearest first, and for each of them the last commit that counts, seqs.
-- Numbers of commits go up along the way, whatever the line.
--
-- A path is what the first of these lines says that has a row of the path at
-- all, since a commit that counts: by the last such row.  The path is there if
-- the row holds still, till > seq.  A row that does not hold, a tombstone where
-- the line itself had nothing else to end, hides what farther lines have.
--
-- All reads go by xet.hub_at(), of one path, and xet.hub_walk(), of a folder or
-- of all below one; but those of the last commit of a line that goes on from
-- none, as nearly all are: these read the rows that hold now, by indexes of
-- nothing else.

-- The lines of a commit.  Line 0 goes on from none.

CREATE FUNCTION xet.hub_line(repo bigint, line integer, seq integer,
    OUT lines integer[], OUT seqs integer[])
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
BEGIN
    IF line = 0 THEN
        lines := '{0}';
        seqs := ARRAY[seq];

    ELSE
        SELECT $2 || x.bases, $3 || x.upto INTO lines, seqs
          FROM xet.hub_lines x
         WHERE x.repo_id = $1 AND x.line = $2;
    END IF;
END;
$$;


-- What a path is at a commit; no row for a path that is not there.  Part of the
-- statement that asks (it is written so that PostgreSQL makes it that).

CREATE FUNCTION xet.hub_at(repo bigint, lines integer[], seqs integer[],
    path text)
    RETURNS TABLE (line integer, path text, hash bytea, size bigint,
                   sha256 bytea, made bytea, made_at timestamptz,
                   mtime timestamptz, type text)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT k.line, k.path, k.hash, k.size, k.sha256, k.made, k.made_at,
           k.mtime, k.type
      FROM (SELECT p.*, a.seq
              FROM unnest($2, $3) WITH ORDINALITY AS a(line, seq, n)
             CROSS JOIN LATERAL (
                       SELECT h.line, h.path, h.till, h.hash, h.size, h.sha256,
                              h.made, h.made_at, h.mtime, h.type
                         FROM xet.hub_paths h
                        WHERE h.repo_id = $1 AND h.line = a.line
                          AND h.path = $4 AND h.since <= a.seq
                        ORDER BY h.since DESC
                        LIMIT 1
                   ) p
             ORDER BY a.n
             LIMIT 1) k
     WHERE k.till > k.seq;
$$;


-- What is in a folder at a commit, or for NULL all that is between above and
-- below, behind above, in the order of paths: no more than most, and files
-- only, if this is set.
--
-- This goes by parts of so many rows of each line: up to the first path that a
-- line may have more rows of behind its part; that one is looked up.  So a path
-- of ten thousand commits is one part, and a look.  Where nothing is there any
-- more parts become larger.

CREATE FUNCTION xet.hub_walk(repo bigint, lines integer[], seqs integer[],
    folder text, above text, below text, files boolean, most bigint)
    RETURNS TABLE (path text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    usual    CONSTANT integer := 16 + least(most, 256);
    largest  CONSTANT integer := greatest(usual, 8192 / cardinality(lines));
    alone    CONSTANT boolean := cardinality(lines) = 1;
    part     integer := usual;
    n        bigint := 0;
    found    bigint;
    more     bigint;
    ending   text;
BEGIN
    -- no path is as long as this one

    below := coalesce(below, repeat(U&'\+10FFFF', 1024));

    LOOP
        SELECT min(e.path COLLATE "C") INTO ending
          FROM unnest(lines, seqs) AS a(line, seq)
         CROSS JOIN LATERAL (
                   (SELECT r.path
                      FROM xet.hub_paths r
                     WHERE $4 IS NULL AND r.repo_id = $1 AND r.line = a.line
                       AND r.path > above AND r.path < below
                       AND r.since <= a.seq
                     ORDER BY r.path, r.since
                    OFFSET part - 1 LIMIT 1)
                   UNION ALL
                   (SELECT r.path
                      FROM xet.hub_paths r
                     WHERE r.folder = $4 AND r.repo_id = $1
                       AND r.line = a.line AND r.path > above
                       AND r.path < below AND r.since <= a.seq
                     ORDER BY r.path, r.since
                    OFFSET part - 1 LIMIT 1)
               ) e;

        -- with one line, no row hides another one

        RETURN QUERY
        SELECT d.path, d.hash, d.size, d.sha256, d.made, d.made_at, d.mtime
          FROM (SELECT DISTINCT ON (p.path) p.*, p.till > a.seq AS holds
                  FROM unnest(lines, seqs) WITH ORDINALITY AS a(line, seq, n)
                 CROSS JOIN LATERAL (
                           SELECT r.*
                             FROM xet.hub_paths r
                            WHERE $4 IS NULL AND r.repo_id = $1
                              AND r.line = a.line AND r.path > above
                              AND r.path < coalesce(ending, below)
                              AND r.since <= a.seq
                              AND (NOT alone OR r.till > a.seq)
                           UNION ALL
                           SELECT r.*
                             FROM xet.hub_paths r
                            WHERE r.folder = $4 AND r.repo_id = $1
                              AND r.line = a.line AND r.path > above
                              AND r.path < coalesce(ending, below)
                              AND r.since <= a.seq
                              AND (NOT alone OR r.till > a.seq)
                       ) p
                 ORDER BY p.path, a.n, p.since DESC) d
         WHERE d.holds AND (NOT files OR d.hash IS NOT NULL)
         ORDER BY d.path
         LIMIT most - n;

        GET DIAGNOSTICS found = ROW_COUNT;

        n := n + found;
        EXIT WHEN ending IS NULL OR n = most;

        RETURN QUERY
        SELECT k.path, k.hash, k.size, k.sha256, k.made, k.made_at, k.mtime
          FROM xet.hub_at(repo, lines, seqs, ending) k
         WHERE NOT files OR k.hash IS NOT NULL;

        GET DIAGNOSTICS more = ROW_COUNT;

        n := n + more;
        EXIT WHEN n = most;

        above := ending;
        part := CASE WHEN found + more = 0 THEN least(largest, part * 2)
                     ELSE usual END;
    END LOOP;
END;
$$;


-- The commit that a revision is, by the table "Revisions" of docs/hub.md.  Of a
-- path that goes on behind a name the first parts may belong to the name; the
-- longest one that there is counts.

CREATE FUNCTION xet.hub_rev(repo bigint, rev text, INOUT path text,
    OUT lines integer[], OUT seqs integer[], OUT oid bytea,
    OUT made_at timestamptz)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    parts  text[] := string_to_array(path, '/');
    most   integer := least(coalesce(cardinality(parts), 0), 8);
    asked  text;
    line   integer;
    seq    integer;
BEGIN
    IF rev ~ '^[0-9a-fA-F]{7,40}(/|$)' AND xet.hub_is_id(repo, rev) THEN
        oid := CASE WHEN rev ~ '^[0-9a-fA-F]{40}$' THEN decode(rev, 'hex')
                    ELSE xet.hub_oid(repo, rev) END;

        SELECT c.line, c.seq, c.oid, c.made_at
          INTO line, seq, hub_rev.oid, hub_rev.made_at
          FROM xet.hub_commits c
         WHERE c.repo_id = $1 AND c.oid = hub_rev.oid;

        SELECT * INTO lines, seqs FROM xet.hub_line(repo, line, seq);
        RETURN;
    END IF;

    -- a "/" in it has come as %2F, which says where the revision ends; and
    -- nothing belongs to HEAD

    IF rev = 'HEAD' OR strpos(rev, '/') > 0 THEN
        most := 0;
    END IF;

    FOR n IN REVERSE most .. 0 LOOP
        asked := array_to_string(rev || parts[1 : n], '/');

        SELECT c.line, c.seq, c.oid, c.made_at
          INTO line, seq, hub_rev.oid, hub_rev.made_at
          FROM (VALUES (CASE WHEN asked = 'HEAD' THEN 'heads/main'
                             WHEN asked LIKE 'HEAD/%' THEN NULL
                             WHEN asked LIKE 'refs/heads/%'
                                  OR asked LIKE 'refs/tags/%'
                             THEN substr(asked, 6)
                             WHEN asked LIKE 'refs/%' OR asked = 'refs'
                             THEN NULL
                             ELSE 'heads/' || asked END, 1),
                       (CASE WHEN split_part(asked, '/', 1)
                                  NOT IN ('HEAD', 'refs')
                             THEN 'tags/' || asked END, 2)) AS w(name, n)
          JOIN xet.hub_refs r ON r.repo_id = $1 AND r.name = w.name
          JOIN xet.hub_commits c ON c.repo_id = $1 AND c.oid = r.oid
         ORDER BY w.n
         LIMIT 1;

        IF FOUND THEN
            path := array_to_string(parts[n + 1 :], '/');
            SELECT * INTO lines, seqs FROM xet.hub_line(repo, line, seq);
            RETURN;
        END IF;
    END LOOP;
END;
$$;


-- The branch, as a row of xet.hub_refs has it, that a revision says to write
-- to; NULL where that can't be one, by the same table.

CREATE FUNCTION xet.hub_branch(repo bigint, rev text)
    RETURNS text
    LANGUAGE sql STABLE
AS $$
    SELECT 'heads/'
           || CASE WHEN rev = 'HEAD' THEN 'main'
                   WHEN rev LIKE 'refs/heads/%' THEN substr(rev, 12)
                   WHEN split_part(rev, '/', 1) IN ('HEAD', 'refs') THEN NULL
                   WHEN xet.hub_is_id(repo, rev) THEN NULL
                   ELSE rev END;
$$;


-- What there is already that a branch or a tag can't be beside: one of its name
-- of the other kind, one that its name begins with as with a folder, or that
-- begins so with its name; NULL for nothing.  Else "a/b/c" would be the file
-- "b/c" or "c", as names come and go.

CREATE FUNCTION xet.hub_ref_beside(repo bigint, ref text)
    RETURNS text
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    called  text := substr(ref, strpos(ref, '/') + 1);
BEGIN
    RETURN (
        SELECT f.name
          FROM (SELECT k || u.name AS name
                  FROM unnest(ARRAY['heads/', 'tags/']) AS k,
                       (SELECT called UNION ALL
                        SELECT xet.hub_above(called)) AS u(name)) w
          JOIN xet.hub_refs f ON f.repo_id = $1 AND f.name = w.name
         WHERE f.name <> ref
        UNION ALL
        SELECT f.name
          FROM unnest(ARRAY['heads/', 'tags/']) AS k
         CROSS JOIN LATERAL (
                   SELECT r.name FROM xet.hub_refs r
                    WHERE r.repo_id = $1 AND r.name > k || called || '/'
                      AND r.name < k || called || '0'
                    ORDER BY r.name
                    LIMIT 1) f
         LIMIT 1);
END;
$$;


-- What the files belong to that a repo is to be created with, until it is: a
-- row in xet.repos that no token names.

CREATE FUNCTION xet.hub_nursery(upload bytea)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '_hub/new/' || encode(upload, 'hex');
$$;


-- Begins to create a repo with files: makes the place that they are uploaded
-- to, which is more; there is none for a repo that is there already.

CREATE FUNCTION xet.hub_begin(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, upload bytea, OUT status integer,
    OUT code text, OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT xet.hub_may(any_space, spaces, any_store, store, owner, NULL) THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'You may not create a repository in this name space';
        RETURN;
    END IF;

    status := 200;

    IF EXISTS (SELECT FROM xet.hub_repos h
                WHERE h.kind = $1 AND lower(h.owner) = lower($2)
                  AND lower(h.name) = lower($3))
    THEN
        RETURN;
    END IF;

    more := xet.hub_nursery(upload);

    INSERT INTO xet.repos (name) VALUES (more) ON CONFLICT DO NOTHING;
END;
$$;


-- A repo that is made, with its first commit: of the files that are staged, or
-- empty; 409 for one that is there.  upload is drawn by the worker: the name of
-- the commit, and whoever sends the statement again is told what it told
-- before.

CREATE FUNCTION xet.hub_create(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, private boolean, who text, upload bytea,
    batches integer DEFAULT 0, subject bytea DEFAULT NULL,
    most integer DEFAULT 500000, OUT status integer, OUT code text,
    OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    there    record;
    first    record;
    repo     bigint;
    uploads  text;
    weight   bigint;
BEGIN
    IF NOT xet.hub_may(any_space, spaces, any_store, store, owner, NULL) THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'You may not create a repository in this name space';
        RETURN;
    END IF;

    INSERT INTO xet.hub_repos AS r (kind, owner, name, private)
    VALUES ($1, $2, $3, coalesce($8, false))
    ON CONFLICT DO NOTHING
    RETURNING r.id, xet.hub_store(r.store) INTO repo, uploads;

    IF repo IS NULL THEN
        SELECT * INTO there
          FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store,
                            store, false);

        status := CASE WHEN EXISTS (SELECT FROM xet.hub_commits c
                                     WHERE c.repo_id = there.id
                                       AND c.upload = $10)
                       THEN 200 ELSE 409 END;
        code := 'repo_exists';
        message := 'You already created this repository';
        more := there.more;
        RETURN;
    END IF;

    -- a name that is used again leads nowhere else

    DELETE FROM xet.hub_moved m
     WHERE m.kind = $1 AND m.owner = lower($2) AND m.name = lower($3);

    INSERT INTO xet.hub_lines (repo_id, line, last, branch)
    VALUES (repo, 0, 1, 'heads/main');
    INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title, upload,
                                 subject, metadata)
    VALUES (repo, 0, 1, substr(sha256(upload), 1, 20), who, 'initial commit',
            CASE WHEN batches = 0 THEN upload END, sha256(subject),
            xet.hub_weight('initial commit'));
    INSERT INTO xet.hub_refs (repo_id, name, oid, subject)
    VALUES (repo, 'heads/main', substr(sha256(upload), 1, 20),
            sha256(subject));

    status := 200;
    more := owner || '/' || name;

    weight := xet.hub_weight('initial commit') + xet.hub_weight('heads/main');

    IF batches = 0 THEN
        INSERT INTO xet.repos (name) VALUES (uploads);

        PERFORM xet.hub_charge(repo, sha256(subject), weight);
        PERFORM xet.quota_hold(false, uploads, subject, 0, 0, weight);
        RETURN;
    END IF;

    -- the first lock: who drops what is staged comes before or after

    PERFORM xet.hub_whole(upload, batches);

    UPDATE xet.repos x SET name = uploads
     WHERE x.name = xet.hub_nursery(upload);

    IF NOT FOUND THEN
        RAISE EXCEPTION 'files of a new repo are not there any more'
              USING ERRCODE = 'XT003';
    END IF;

    SELECT * INTO first
      FROM xet.hub_commit(kind, owner, name, any_space, spaces, any_store,
                          store, 'main', upload, NULL, who, 'initial commit',
                          '', batches, NULL, subject, most);

    IF first.status <> 200 THEN
        RAISE EXCEPTION 'the first commit is refused' USING ERRCODE = 'XT007';
    END IF;

    PERFORM xet.hub_charge(repo, sha256(subject),
                           xet.hub_weight('heads/main'));

    -- the empty one before it is none

    DELETE FROM xet.hub_commits c WHERE c.repo_id = repo AND c.seq = 1;
    UPDATE xet.hub_commits c SET seq = 1, parent = NULL
     WHERE c.repo_id = repo;
    UPDATE xet.hub_paths p SET since = 1
     WHERE p.repo_id = repo AND p.line = 0;
    UPDATE xet.hub_lines l SET last = 1 WHERE l.repo_id = repo;

EXCEPTION WHEN SQLSTATE 'XT007' THEN
    status := first.status;
    code := first.code;
    message := first.message;
    more := NULL;
END;
$$;


-- A repo with all that it has; the bytes that nobody else has are for the
-- collector.

CREATE FUNCTION xet.hub_delete(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, act bytea, OUT status integer, OUT code text,
    OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    r        record;
    m        record;
    uploads  text;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        status := 200;
        RETURN;
    END IF;

    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    -- who commits holds a lock on the repo until then

    SELECT xet.hub_store(h.store) INTO uploads
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower($2)
       AND lower(h.name) = lower($3)
       FOR UPDATE;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    -- in the order in which all who delete a repo count it

    FOR m IN SELECT w.subject, sum(w.bytes)::bigint AS bytes
               FROM (SELECT c.subject, c.metadata AS bytes
                       FROM xet.hub_commits c WHERE c.repo_id = r.id
                     UNION ALL
                     SELECT f.subject, xet.hub_weight(f.name)
                       FROM xet.hub_refs f WHERE f.repo_id = r.id
                     UNION ALL
                     SELECT p.subject, xet.hub_weight(p.path)
                       FROM xet.hub_paths p
                      WHERE $1 = 3 AND p.repo_id = r.id) w
              GROUP BY w.subject
              ORDER BY w.subject
    LOOP
        PERFORM xet.hub_charge(r.id, m.subject, -m.bytes);
    END LOOP;

    DELETE FROM xet.hub_paths p WHERE p.repo_id = r.id;
    DELETE FROM xet.hub_commits c WHERE c.repo_id = r.id;
    DELETE FROM xet.hub_repos h WHERE h.id = r.id;

    PERFORM xet.repo_delete(uploads);
    PERFORM xet.act_note(act, '200');
END;
$$;


-- Another name; the one before leads to it.  A private repo that comes to
-- another name space is seen by other people, which takes the right admin, as
-- xet.hub_settings() does.

CREATE FUNCTION xet.hub_move(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, admin boolean, to_owner text, to_name text,
    act bytea, OUT status integer, OUT code text, OUT message text,
    OUT body text, OUT more text)
    LANGUAGE plpgsql
AS $$
DECLARE
    r       record;
    others  boolean;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        status := 200;
        more := to_owner || '/' || to_name;
        RETURN;
    END IF;

    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    -- it was done before, by whomever

    IF status = 307
       AND lower(more) = lower(to_owner || '/' || to_name)
       AND xet.hub_may(any_space, spaces, any_store, store, to_owner, NULL)
    THEN
        status := 200;
    END IF;

    IF status <> 200 OR r.status = 307 THEN
        RETURN;
    END IF;

    IF NOT xet.hub_may(any_space, spaces, any_store, store, to_owner, NULL) THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'You may not create a repository in this name space';
        RETURN;
    END IF;

    -- of two at once the second one finds the name that it asks for gone; what
    -- takes back what was given out waits for commits, and nothing else does

    IF r.private AND lower(owner) <> lower(to_owner) THEN
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR UPDATE;
    END IF;

    SELECT h.private INTO others
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower($2)
       AND lower(h.name) = lower($3)
       FOR NO KEY UPDATE;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    -- a private repo that other people see then; what its readers of before
    -- were given is taken back

    others := others AND lower(owner) <> lower(to_owner);

    IF others AND admin IS NOT TRUE THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'The token does not allow to change who may see a'
                   ' repository: the scope is not admin';
        RETURN;
    END IF;

    IF EXISTS (SELECT FROM xet.hub_repos h
                WHERE h.kind = $1 AND lower(h.owner) = lower($9)
                  AND lower(h.name) = lower($10) AND h.id <> r.id)
    THEN
        status := 409;
        code := 'repo_exists';
        message := 'There is a repository of this name';
        RETURN;
    END IF;

    DELETE FROM xet.hub_moved m
     WHERE m.kind = $1 AND m.owner = lower($9) AND m.name = lower($10);

    IF lower(owner) <> lower(to_owner) OR lower(name) <> lower(to_name) THEN
        INSERT INTO xet.hub_moved (kind, owner, name, repo_id)
        VALUES ($1, lower($2), lower($3), r.id);
    END IF;

    IF others THEN
        PERFORM xet.hub_close(r.id);
    END IF;

    UPDATE xet.hub_repos h
       SET owner = $9, name = $10, changed_at = now()
     WHERE h.id = r.id;

    more := to_owner || '/' || to_name;

    PERFORM xet.act_note(act, '200');

EXCEPTION WHEN unique_violation THEN
    status := 409;
    code := 'repo_exists';
    message := 'There is a repository of this name';
END;
$$;


-- Takes back all that was given out for a repo, whose row is locked: its
-- uploads get a name that there never was.  This waits for uploads that are
-- being committed, as xet.repo_delete() does; those behind it find no repo.

CREATE FUNCTION xet.hub_close(repo bigint)
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    old    text := xet.hub_store_of(repo);
    fresh  text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('xet.repos'), hashint8(x.id))
       FROM xet.repos x
      WHERE x.name = old;

    UPDATE xet.hub_repos h SET store = DEFAULT
     WHERE h.id = $1
    RETURNING xet.hub_store(h.store) INTO fresh;

    UPDATE xet.repos x SET name = fresh WHERE x.name = old;

    UPDATE xet.quotas q SET owner = convert_to(fresh, 'UTF8')
     WHERE q.kind = 'repo' AND q.owner = convert_to(old, 'UTF8');
END;
$$;


-- admin: the token has the scope that a change of who may see the repo takes.

CREATE FUNCTION xet.hub_settings(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, admin boolean, private boolean, act bytea,
    OUT status integer, OUT code text, OUT message text, OUT body text,
    OUT more text)
    LANGUAGE plpgsql
AS $$
DECLARE
    r     record;
    was   boolean;
    said  jsonb;
BEGIN
    said := xet.act_said(act);

    IF said IS NOT NULL THEN
        status := 200;
        body := said #>> '{}';
        RETURN;
    END IF;

    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    SELECT h.private INTO was
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower($2)
       AND lower(h.name) = lower($3)
       FOR UPDATE;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    IF $9 <> was AND admin IS NOT TRUE THEN
        status := 403;
        code := 'insufficient_scope';
        message := 'The token does not allow to change who may see a'
                   ' repository: the scope is not admin';
        RETURN;
    END IF;

    IF $9 AND NOT was THEN
        PERFORM xet.hub_close(r.id);
    END IF;

    UPDATE xet.hub_repos h
       SET private = coalesce($9, h.private), changed_at = now()
     WHERE h.id = r.id;

    body := '{"private":' || coalesce($9, was) || '}';

    PERFORM xet.act_note(act, to_jsonb(body));
END;
$$;


-- A repo as JSON, at a commit; files with their sizes, or none.

CREATE FUNCTION xet.hub_describe(r xet.hub_repos, oid bytea, files text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT '{"_id":"' || lpad(to_hex((r).id), 24, '0')
           || '","id":' || to_json((r).owner || '/' || (r).name)
           || CASE WHEN (r).kind = 0
                   THEN ',"modelId":' || to_json((r).owner || '/' || (r).name)
                   ELSE '' END
           || ',"author":' || to_json((r).owner)
           || ',"sha":"' || encode(oid, 'hex')
           || '","lastModified":"' || xet.hub_date((r).changed_at)
           || '","createdAt":"' || xet.hub_date((r).created_at)
           || '","private":' || (r).private
           || ',"gated":false,"disabled":false,"downloads":0,"likes":0'
           || ',"tags":[]' || files || '}';
$$;


-- What a repo is, with its files, where these are not very many: a part of the
-- answer at a time.  rest is where the next part goes on, of the same commit,
-- and NULL behind the last one.

CREATE FUNCTION xet.hub_info(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, blobs boolean, INOUT rest text,
    OUT status integer, OUT code text, OUT message text, OUT body text,
    OUT more text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
AS $$
DECLARE
    r      record;
    c      record;
    after  text := '';
    most   integer := 256;
    files  text;
    last   text;
    used   bigint;
    n      bigint;
    now    boolean;
BEGIN
    IF rest IS NOT NULL THEN
        rev := left(rest, 40);
        after := substr(rest, 41);
    END IF;

    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    SELECT l.files, l.bytes INTO n, used
      FROM xet.hub_lines l WHERE l.repo_id = r.id AND l.line = 0;

    IF kind = 3 THEN
        SELECT '{"id":' || to_json(h.owner || '/' || h.name)
               || ',"author":' || to_json(h.owner)
               || ',"private":' || h.private
               || ',"createdAt":"' || xet.hub_date(h.created_at)
               || '","updatedAt":"' || xet.hub_date(h.changed_at)
               || '","size":' || used || ',"totalFiles":' || n || '}'
          INTO body
          FROM xet.hub_repos h WHERE h.id = r.id;

        RETURN;
    END IF;

    SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

    IF c.oid IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'Invalid rev id: ' || rev;
        RETURN;
    END IF;

    -- of very many files a list is of no use to who asks what a repo is

    SELECT CASE WHEN k.seq = l.last THEN l.files ELSE k.files END,
           CASE WHEN k.seq = l.last THEN l.bytes ELSE k.bytes END
      INTO n, used
      FROM xet.hub_commits k
      JOIN xet.hub_lines l ON l.repo_id = k.repo_id AND l.line = k.line
     WHERE k.repo_id = r.id AND k.oid = c.oid;

    SELECT left(xet.hub_describe(h, c.oid, ',"usedStorage":' || used), -1)
      INTO body
      FROM xet.hub_repos h WHERE h.id = r.id;

    IF rest IS NULL AND n > 10000 THEN
        body := body || '}';
        RETURN;
    END IF;

    now := xet.hub_is_last(r.id, c.lines, c.seqs);

    SELECT string_agg('{"rfilename":' || to_json(p.path)
                      || CASE WHEN NOT blobs THEN ''
                              WHEN p.size = 0 THEN ',"size":0'
                                   ',"blobId":"e69de29bb2d1d6434b8b29ae775ad8'
                                   'c2e48c5391"'
                              ELSE ',"size":' || p.size || ',"blobId":"'
                                   || encode(substr(p.sha256, 1, 20), 'hex')
                                   || '","lfs":{"size":' || p.size
                                   || ',"sha256":"' || encode(p.sha256, 'hex')
                                   || '","pointerSize":134}' END
                      || '}', ',' ORDER BY p.path),
           count(*), max(p.path COLLATE "C")
      INTO files, n, last
      FROM ((SELECT h.path, h.size, h.sha256
               FROM xet.hub_paths h
              WHERE now AND h.repo_id = r.id AND h.line = c.lines[1]
                AND h.path > after AND h.till = 2147483647
                AND h.hash IS NOT NULL
              ORDER BY h.path LIMIT most)
            UNION ALL
            (SELECT h.path, h.size, h.sha256
               FROM xet.hub_walk(r.id, c.lines, c.seqs, NULL, after,
                                 repeat(U&'\+10FFFF', 1024), true, most) h
              WHERE NOT now)) p;

    body := CASE WHEN rest IS NULL THEN body || ',"siblings":['
                 WHEN n > 0 THEN ',' ELSE '' END
            || coalesce(files, '')
            || CASE WHEN n < most THEN ']}' ELSE '' END;
    rest := CASE WHEN n = most THEN encode(c.oid, 'hex') || last END;
END;
$$;


-- Repos of a kind, the newest first, a page of them; of an owner where one is
-- given.  after is where the page before has ended.  A page looks at 5,000
-- repos at most: one of a search may have few of them, or none, and a next
-- page.  The indexes hub_repos_changed and hub_repos_owner have this order, and
-- the plan is made for the arguments: a generic plan would leave out that of
-- the owner.

CREATE FUNCTION xet.hub_list(kind integer, owner text, search text,
    any_space boolean, spaces text[],
    any_store boolean, store text, most integer, after text, OUT status integer,
    OUT code text, OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    looked  integer := 5000;
    at      timestamptz;
    last    bigint;
    n       bigint;
BEGIN
    IF after !~ '^\d{1,12}(\.\d{1,6})?/\d{1,18}$' THEN
        status := 400;
        code := 'invalid_cursor';
        message := 'Malformed cursor';
        RETURN;
    END IF;

    status := 200;
    at := to_timestamp(split_part(after, '/', 1)::numeric);
    last := split_part(after, '/', 2)::bigint;

    SELECT '[' || coalesce(string_agg(CASE WHEN $1 = 3
               THEN '{"id":' || to_json(l.owner || '/' || l.name)
                    || ',"author":' || to_json(l.owner)
                    || ',"private":' || l.private
                    || ',"createdAt":"' || xet.hub_date(l.created_at)
                    || '","updatedAt":"' || xet.hub_date(l.changed_at)
                    || '","size":' || x.bytes
                    || ',"totalFiles":' || x.files || '}'
               ELSE xet.hub_describe(l.r, f.oid, '') END,
               ',' ORDER BY l.changed_at DESC, l.id DESC), '') || ']',
           count(*),
           (array_agg(extract(epoch FROM l.changed_at) || '/' || l.id
                      ORDER BY l.changed_at, l.id))[1]
      INTO body, n, more
      FROM (SELECT h.*
              FROM (SELECT a AS r, a.*
                      FROM xet.hub_repos a
                     WHERE a.kind = $1
                       AND ($2 IS NULL OR lower(a.owner) = lower($2))
                       AND (after IS NULL OR (a.changed_at, a.id) < (at, last))
                     ORDER BY a.changed_at DESC, a.id DESC
                     LIMIT looked) h
             WHERE ($3 IS NULL
                    OR strpos(lower(h.owner || '/' || h.name), lower($3)) > 0)
               AND (NOT h.private
                    OR xet.hub_may($4, $5, $6, $7, h.owner,
                                   xet.hub_store(h.store)))
             ORDER BY h.changed_at DESC, h.id DESC
             LIMIT most) l
     CROSS JOIN LATERAL (SELECT f.oid
                           FROM xet.hub_refs f
                          WHERE f.repo_id = l.id AND f.name = 'heads/main'
                          LIMIT 1) f
     CROSS JOIN LATERAL (SELECT x.files, x.bytes
                           FROM xet.hub_lines x
                          WHERE x.repo_id = l.id AND x.line = 0
                          LIMIT 1) x;

    IF n < most THEN

        -- the next page goes on where this one has stopped looking

        more := (SELECT extract(epoch FROM a.changed_at) || '/' || a.id
                   FROM xet.hub_repos a
                  WHERE a.kind = $1
                    AND ($2 IS NULL OR lower(a.owner) = lower($2))
                    AND (after IS NULL OR (a.changed_at, a.id) < (at, last))
                  ORDER BY a.changed_at DESC, a.id DESC
                  OFFSET looked - 1 LIMIT 1);
    END IF;
END;
$$;


-- A page of a tree: what is in a folder, or all below it, behind a path.  The
-- first row is the answer, the others are the entries, in their order, with the
-- title of the commit that they come from if expand is set; JSON is made of
-- them by who asks, in a third of the time.  Of a bucket, where all below a
-- folder has no folders, a path that is a file is this file, and one that is
-- nothing is empty.
--
-- Of a page of "most" entries that is, the first "part" are given.  The first
-- row has what the rest of the page is asked for by: in code the commit, in
-- message
-- the path in it, and in more the last path of the page, where the page goes on
-- behind this part and is full.
--
-- What holds at the last commit of a line is found without what held before,
-- by indexes of it alone (hub_paths_now, hub_paths_now_folder).

CREATE FUNCTION xet.hub_tree_rows(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, path text, deep boolean,
    expand boolean, after text, most integer, part integer)
    RETURNS TABLE (status integer, code text, message text, more text,
                   entry text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz,
                   title text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
AS $$
DECLARE
    r       record;
    c       record;
    bucket  boolean := kind = 3;
    now     boolean;
    above   text;
    below   text;
    n       integer;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status = 200 THEN
        SELECT * INTO c FROM xet.hub_rev(r.id, rev, path);

        IF c.oid IS NULL THEN
            status := 404;
            code := 'RevisionNotFound';
            message := 'Invalid rev id: ' || rev;

        ELSIF NOT bucket AND c.path <> ''
              AND NOT xet.hub_is_folder(r.id, c.lines, c.seqs, c.path)
        THEN
            status := 404;
            code := 'EntryNotFound';
            message := c.path || ' does not exist on "' || rev || '"';
            more := encode(c.oid, 'hex');
        END IF;
    END IF;

    IF status <> 200 THEN
        RETURN NEXT;
        RETURN;
    END IF;

    now := xet.hub_is_last(r.id, c.lines, c.seqs);
    above := greatest(after COLLATE "C", CASE WHEN c.path = '' THEN ''
                                              ELSE c.path || '/' END);

    -- the last character comes in names, too: a row of it that is longer than
    -- any path comes after all of them

    below := CASE WHEN c.path = '' THEN repeat(U&'\+10FFFF', 1024)
                  ELSE c.path || '0' END;

    code := encode(c.oid, 'hex');
    message := c.path;
    more := CASE WHEN most > part
                 THEN xet.hub_tree_end(r.id, c.lines, c.seqs, now, c.path,
                                       deep, bucket, above, below, most) END;
    most := least(most, part);

    RETURN NEXT;

    IF bucket AND c.path <> '' AND after IS NULL THEN
        RETURN QUERY
        SELECT NULL::integer, NULL::text, NULL::text, NULL::text, p.path,
               p.hash, p.size, p.sha256, p.made, p.made_at, p.mtime, NULL::text
          FROM (SELECT h.*
                  FROM xet.hub_paths h
                 WHERE h.repo_id = r.id AND h.line = c.lines[1]
                   AND h.path = c.path
                 ORDER BY h.since DESC
                 LIMIT 1) p
         WHERE p.hash IS NOT NULL;

        GET DIAGNOSTICS n = ROW_COUNT;
        most := most - n;
    END IF;

    IF NOT now THEN
        RETURN QUERY
        SELECT NULL::integer, NULL::text, NULL::text, NULL::text, h.*,
               CASE WHEN expand
                    THEN (SELECT t.title
                            FROM xet.hub_title_of(r.id, h.made) t) END
          FROM xet.hub_walk(r.id, c.lines, c.seqs,
                            CASE WHEN NOT deep THEN c.path END, above, below,
                            false, most) h;

    ELSIF deep THEN
        RETURN QUERY
        SELECT NULL::integer, NULL::text, NULL::text, NULL::text, p.path,
               p.hash, p.size, p.sha256, p.made, p.made_at, p.mtime,
               CASE WHEN expand
                    THEN (SELECT t.title
                            FROM xet.hub_title_of(r.id, p.made) t) END
          FROM xet.hub_paths p
         WHERE p.repo_id = r.id AND p.line = c.lines[1]
           AND p.path > above AND p.path < below AND p.till = 2147483647
           AND (NOT bucket OR p.hash IS NOT NULL)
         ORDER BY p.path LIMIT most;

    ELSE
        RETURN QUERY
        SELECT NULL::integer, NULL::text, NULL::text, NULL::text, p.path,
               p.hash, p.size, p.sha256, p.made, p.made_at, p.mtime,
               CASE WHEN expand
                    THEN (SELECT t.title
                            FROM xet.hub_title_of(r.id, p.made) t) END
          FROM xet.hub_paths p
         WHERE p.repo_id = r.id AND p.line = c.lines[1] AND p.folder = c.path
           AND p.path > above AND p.till = 2147483647
         ORDER BY p.path LIMIT most;
    END IF;
END;
$$;


-- The path that a page ends with; NULL where there are not so many.

CREATE FUNCTION xet.hub_tree_end(repo bigint, lines integer[], seqs integer[],
    now boolean, path text, deep boolean, bucket boolean, above text,
    below text, most integer)
    RETURNS text
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
AS $$
BEGIN
    IF now AND deep THEN
        RETURN (SELECT p.path FROM xet.hub_paths p
                 WHERE p.repo_id = $1 AND p.line = lines[1]
                   AND p.path > above AND p.path < below
                   AND p.till = 2147483647
                   AND (NOT bucket OR p.hash IS NOT NULL)
                 ORDER BY p.path OFFSET most - 1 LIMIT 1);

    ELSIF now THEN
        RETURN (SELECT p.path FROM xet.hub_paths p
                 WHERE p.repo_id = $1 AND p.line = lines[1] AND p.folder = $5
                   AND p.path > above AND p.till = 2147483647
                 ORDER BY p.path OFFSET most - 1 LIMIT 1);
    END IF;

    RETURN (SELECT h.path
              FROM xet.hub_walk(repo, lines, seqs,
                                CASE WHEN NOT deep THEN $5 END, above, below,
                                false, most) h
             OFFSET most - 1 LIMIT 1);
END;
$$;


-- Whether a commit is the last one of its line, and all that it has is in this
-- line: the rows that hold now.

CREATE FUNCTION xet.hub_is_last(repo bigint, lines integer[], seqs integer[])
    RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
BEGIN
    RETURN cardinality(lines) = 1
           AND (SELECT x.last = seqs[1] FROM xet.hub_lines x
                 WHERE x.repo_id = $1 AND x.line = lines[1]);
END;
$$;


-- Whether a path is a folder at a commit.

CREATE FUNCTION xet.hub_is_folder(repo bigint, lines integer[],
    seqs integer[], path text)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
BEGIN
    RETURN coalesce((SELECT h.hash IS NULL
                       FROM xet.hub_at(repo, lines, seqs, $4) h), false);
END;
$$;


-- The title of the commit that an entry comes from.  Part of the statement that
-- asks.

CREATE FUNCTION xet.hub_title_of(repo bigint, made bytea)
    RETURNS TABLE (title text)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT c.title
      FROM xet.hub_commits c
     WHERE c.repo_id = $1 AND c.oid >= $2 AND c.oid <= $2
     ORDER BY c.oid
     LIMIT 1;
$$;


-- Entries of paths, as rows of hub_tree_rows(); those that are not there are
-- left out.  In code of the first row is the commit, which further paths of the
-- same request are looked up in.

CREATE FUNCTION xet.hub_paths_rows(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, paths bytea[], expand boolean)
    RETURNS TABLE (status integer, code text, message text, more text,
                   entry text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz,
                   title text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    r  record;
    c  record;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status = 200 THEN
        SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

        IF c.oid IS NULL THEN
            status := 404;
            code := 'RevisionNotFound';
            message := 'Invalid rev id: ' || rev;
        ELSE
            code := encode(c.oid, 'hex');
        END IF;
    END IF;

    RETURN NEXT;

    IF status <> 200 THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT NULL::integer, NULL::text, NULL::text, NULL::text, h.path, h.hash,
           h.size, h.sha256, h.made, h.made_at, h.mtime,
           CASE WHEN expand
                THEN (SELECT t.title
                        FROM xet.hub_title_of(r.id, h.made) t) END
      FROM unnest(paths) WITH ORDINALITY AS u(path, n)
     CROSS JOIN LATERAL xet.hub_at(r.id, c.lines, c.seqs,
                                   convert_from(u.path, 'UTF8')) h
     WHERE $1 <> 3 OR h.hash IS NOT NULL
     ORDER BY u.n;
END;
$$;


-- How the files of an upload are to be sent: all but empty ones before the
-- commit, as LFS files are; and what of each there is already.  The entries of
-- the answer, and in code the commit, which further paths of the same request
-- are looked up in.

CREATE FUNCTION xet.hub_preupload(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, paths bytea[], sizes bigint[],
    OUT status integer, OUT code text, OUT message text, OUT body text,
    OUT more text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    r  record;
    c  record;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

    IF c.oid IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'Invalid rev id: ' || rev;
        RETURN;
    END IF;

    code := encode(c.oid, 'hex');

    SELECT coalesce(string_agg('{"path":' || to_json(u.path)
               || ',"uploadMode":"'
               || CASE WHEN u.size = 0 THEN 'regular' ELSE 'lfs' END
               || '","shouldIgnore":false'
               || CASE WHEN h.hash IS NULL THEN ''
                       WHEN u.size = 0 AND h.size = 0 THEN
                            ',"oid":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"'
                       WHEN u.size = 0 OR h.size = 0 THEN ''
                       ELSE ',"oid":"' || encode(h.sha256, 'hex') || '"' END
               || '}', ',' ORDER BY u.n), '')
      INTO body
      FROM (SELECT convert_from(w.path, 'UTF8') AS path, w.size, w.n
              FROM unnest(paths, sizes) WITH ORDINALITY
                     AS w(path, size, n)) u
      LEFT JOIN LATERAL xet.hub_at(r.id, c.lines, c.seqs, u.path) h ON true;
END;
$$;


-- Branches and tags, a part of the answer at a time; rest is the last name of a
-- part, and NULL behind the last one.

CREATE FUNCTION xet.hub_refs_get(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, INOUT rest text, OUT status integer,
    OUT code text, OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
AS $$
DECLARE
    r     record;
    f     record;
    tags  boolean := rest LIKE 'tags/%';
    n     integer := 0;
    last  text;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    body := CASE WHEN rest IS NULL THEN '{"branches":[' ELSE '' END;
    tags := coalesce(tags, false);

    FOR f IN SELECT x.name, x.oid, x.name LIKE 'tags/%' AS tag
               FROM xet.hub_refs x
              WHERE x.repo_id = r.id AND x.name > coalesce(rest, '')
              ORDER BY x.name LIMIT 256
    LOOP
        body := body
                || CASE WHEN f.tag AND NOT tags THEN '],"tags":['
                        WHEN n > 0 OR rest IS NOT NULL THEN ',' ELSE '' END
                || '{"name":'
                || to_json(substr(f.name, strpos(f.name, '/') + 1))
                || ',"ref":' || to_json('refs/' || f.name)
                || ',"targetCommit":"' || encode(f.oid, 'hex') || '"}';
        tags := f.tag;
        last := f.name;
        n := n + 1;
    END LOOP;

    rest := CASE WHEN n = 256 THEN last END;

    IF rest IS NULL THEN
        body := body || CASE WHEN tags THEN '' ELSE '],"tags":[' END
                || '],"converts":[],"pullRequests":[]}';
    END IF;
END;
$$;


-- The history of a revision, the newest first; more is where the next page
-- begins, and in message is how many there are.  A part of the page at a time,
-- of some 64 KiB: rest is how many follow, and the first of them, and NULL
-- behind the last one.

CREATE FUNCTION xet.hub_commits_get(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, after text, most integer,
    INOUT rest text, OUT status integer, OUT code text, OUT message text,
    OUT body text, OUT more text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    r    record;
    c    record;
    k    record;
    got  integer := 0;
    at   bytea;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    IF rest IS NULL THEN
        SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

        IF c.oid IS NULL THEN
            status := 404;
            code := 'RevisionNotFound';
            message := 'Invalid rev id: ' || rev;
            RETURN;
        END IF;

        IF after !~ '^[0-9a-f]{40}$' THEN
            status := 400;
            code := 'invalid_cursor';
            message := 'Malformed cursor';
            RETURN;
        END IF;

        message := c.seqs[1]::text;
        body := '[';
        at := coalesce(decode(after, 'hex'), c.oid);

    ELSE
        body := '';
        most := split_part(rest, '/', 1)::integer;
        at := decode(split_part(rest, '/', 2), 'hex');
    END IF;

    WHILE got < most AND octet_length(body) < 65536 LOOP
        SELECT h.* INTO k
          FROM xet.hub_commits h WHERE h.repo_id = r.id AND h.oid = at;

        EXIT WHEN NOT FOUND;

        body := body
                || CASE WHEN got > 0 OR rest IS NOT NULL THEN ',' ELSE '' END
                || '{"id":"' || encode(k.oid, 'hex')
                || '","title":' || to_json(k.title)
                || ',"message":' || to_json(left(k.message, 4096))
                || ',"date":"' || xet.hub_date(k.made_at)
                || '","authors":[{"user":' || to_json(k.who)
                || ',"avatar":""}],"formatted":{"title":' || to_json(k.title)
                || ',"message":' || to_json(left(k.message, 4096)) || '}}';
        at := k.parent;
        got := got + 1;
    END LOOP;

    more := NULL;
    at := (SELECT h.oid FROM xet.hub_commits h
            WHERE h.repo_id = r.id AND h.oid = at);

    IF at IS NULL OR got = most THEN
        more := encode(at, 'hex');
        rest := NULL;
        body := body || ']';
        RETURN;
    END IF;

    IF rest IS NULL THEN
        WITH RECURSIVE w AS (
            SELECT at AS oid, 0 AS n
            UNION ALL
            SELECT p.parent, w.n + 1
              FROM w
             CROSS JOIN LATERAL (SELECT h.parent FROM xet.hub_commits h
                                  WHERE h.repo_id = r.id AND h.oid = w.oid
                                  LIMIT 1) p
             WHERE w.n < most - got
        )
        SELECT encode(w.oid, 'hex') INTO more
          FROM w WHERE w.n = most - got;
    END IF;

    rest := (most - got) || '/' || encode(at, 'hex');
END;
$$;


-- A branch or a tag ("heads/" or "tags/" and its name) that is made at a
-- revision, moved there if over is set, or removed where there is none.

CREATE FUNCTION xet.hub_ref_put(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, ref text, rev text, over boolean, act bytea,
    subject bytea DEFAULT NULL, OUT status integer, OUT code text,
    OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql
AS $$
DECLARE
    r     record;
    c     record;
    bad   text;
    mine  bytea;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        status := 200;
        RETURN;
    END IF;

    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    -- who makes another one comes before or after: names don't meet

    IF rev IS NULL THEN
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;
    ELSE
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR NO KEY UPDATE;
    END IF;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    IF rev IS NULL THEN

        IF ref = 'heads/main' THEN
            status := 403;
            code := 'main_branch';
            message := 'The main branch can''t be deleted';
            RETURN;
        END IF;

        DELETE FROM xet.hub_refs f
         WHERE f.repo_id = r.id AND f.name = $8
        RETURNING f.subject INTO mine;

        IF NOT FOUND THEN
            status := 404;
            code := 'RevisionNotFound';
            message := 'There is no ' || ref;
            RETURN;
        END IF;

        PERFORM xet.hub_charge(r.id, mine, -xet.hub_weight(ref));
        PERFORM xet.act_note(act, '200');
        RETURN;
    END IF;

    SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

    IF c.oid IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'Invalid rev id: ' || rev;
        RETURN;
    END IF;

    bad := xet.hub_ref_beside(r.id, ref);

    IF bad IS NOT NULL THEN
        status := 400;
        code := 'ref_conflict';
        message := 'There is refs/' || bad || ', so there can be no refs/'
                   || ref;
        RETURN;
    END IF;

    INSERT INTO xet.hub_refs AS f (repo_id, name, oid, subject)
    VALUES (r.id, ref, c.oid, sha256($12))
    ON CONFLICT ON CONSTRAINT hub_refs_pkey DO NOTHING;

    IF FOUND THEN
        PERFORM xet.act_note(act, '200');
        PERFORM xet.hub_charge(r.id, sha256($12), xet.hub_weight(ref));
        PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), $12, 0, 0,
                               xet.hub_weight(ref));
        RETURN;
    END IF;

    UPDATE xet.hub_refs f SET oid = c.oid
     WHERE over AND f.repo_id = r.id AND f.name = ref;

    IF NOT FOUND THEN
        status := 409;
        code := 'ref_exists';
        message := 'Reference already exists';
        RETURN;
    END IF;

    PERFORM xet.act_note(act, '200');
END;
$$;


-- Where a path leads to.

CREATE FUNCTION xet.hub_resolve(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, path text, OUT status integer,
    OUT code text, OUT message text, OUT more text, OUT oid text,
    OUT hash bytea, OUT size bigint, OUT sha256 bytea, OUT type text,
    OUT uploads text, OUT private boolean)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    r  record;
    c  record;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    SELECT * INTO c FROM xet.hub_rev(r.id, rev, path);

    IF c.oid IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'Invalid rev id: ' || rev;
        RETURN;
    END IF;

    oid := encode(c.oid, 'hex');
    uploads := r.uploads;
    private := r.private;

    SELECT xet.hub_hash(p.hash), p.size, p.sha256, p.type
      INTO hub_resolve.hash, hub_resolve.size, hub_resolve.sha256,
           hub_resolve.type
      FROM xet.hub_at(r.id, c.lines, c.seqs, c.path) p;

    IF hub_resolve.hash IS NULL THEN
        status := 404;
        code := 'EntryNotFound';
        message := 'Entry not found';
    END IF;
END;
$$;


-- Whether the caller may read a repo, or write to it, at a revision where one
-- is given; more is what its uploads belong to, body the commit of the revision
-- for who writes.

CREATE FUNCTION xet.hub_enter(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, writes boolean, OUT status integer,
    OUT code text, OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r  record;
    c  record;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        writes);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    more := r.uploads;

    IF rev IS NOT NULL THEN
        SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

        IF c.oid IS NULL THEN
            status := 404;
            code := 'RevisionNotFound';
            message := 'Invalid rev id: ' || rev;

        ELSIF writes THEN
            body := encode(c.oid, 'hex');
        END IF;
    END IF;
END;
$$;


-- What the pages of a Hub are made of.  Repos, the newest first, of a kind or,
-- for 4, of all; the rest is as for xet.hub_list().  after is where the page
-- before has ended, in microseconds since 1970 and the id.
--
-- A page looks at 5,000 repos of a kind: where there are more, and few to be
-- shown, the last row is no repo but where it has stopped.

CREATE FUNCTION xet.hub_page_list(of_kind integer, owner text, search text,
    any_space boolean, spaces text[],
    any_store boolean, store text, after text, most integer)
    RETURNS TABLE (kind integer, repo text, private boolean, changed bigint,
                   id bigint, files bigint, bytes bigint)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    kinds   integer[] := CASE WHEN of_kind = 4 THEN '{0,1,2,3}'
                              ELSE ARRAY[of_kind] END;
    looked  integer := 5000;
    at      timestamptz;
    last    bigint;
BEGIN
    at := to_timestamp(0) + interval '1 microsecond'
          * least(split_part(after, '/', 1)::bigint, 253402300799999999);
    last := split_part(after, '/', 2)::bigint;

    RETURN QUERY
    WITH found AS MATERIALIZED (
        SELECT w.*
          FROM unnest(kinds) AS k
         CROSS JOIN LATERAL (
                   SELECT q.*
                     FROM (SELECT r.*
                             FROM xet.hub_repos r
                            WHERE r.kind = k
                              AND ($2 IS NULL OR lower(r.owner) = lower($2))
                              AND (after IS NULL
                                   OR (r.changed_at, r.id) < (at, last))
                            ORDER BY r.changed_at DESC, r.id DESC
                            LIMIT looked) q
                    WHERE ($3 IS NULL
                           OR strpos(lower(q.owner || '/' || q.name),
                                     lower($3)) > 0)
                      AND (NOT q.private
                           OR xet.hub_may($4, $5, $6, $7, q.owner,
                                          xet.hub_store(q.store)))
                    ORDER BY q.changed_at DESC, q.id DESC
                    LIMIT most
               ) w
    ), stopped AS MATERIALIZED (
        SELECT p.changed_at, p.id
          FROM unnest(kinds) AS k
         CROSS JOIN LATERAL (
                   SELECT r.changed_at, r.id
                     FROM xet.hub_repos r
                    WHERE r.kind = k
                      AND ($2 IS NULL OR lower(r.owner) = lower($2))
                      AND (after IS NULL
                           OR (r.changed_at, r.id) < (at, last))
                    ORDER BY r.changed_at DESC, r.id DESC
                   OFFSET looked - 1
                    LIMIT 1
               ) p
         WHERE (SELECT count(*) FROM found f WHERE f.kind = k) < most
         ORDER BY p.changed_at DESC, p.id DESC
         LIMIT 1
    ), h AS MATERIALIZED (
        SELECT f.*
          FROM found f
          LEFT JOIN stopped s ON true
         WHERE s.id IS NULL OR (f.changed_at, f.id) >= (s.changed_at, s.id)
         ORDER BY f.changed_at DESC, f.id DESC
         LIMIT most
    )
    SELECT o.*
      FROM (SELECT h.kind::integer, h.owner || '/' || h.name AS repo,
                   h.private,
                   (extract(epoch FROM h.changed_at) * 1000000)::bigint
                       AS changed, h.id,
                   CASE WHEN m.seq = x.last THEN x.files ELSE m.files END,
                   CASE WHEN m.seq = x.last THEN x.bytes ELSE m.bytes END
              FROM h
              LEFT JOIN LATERAL (SELECT f.oid
                                   FROM xet.hub_refs f
                                  WHERE f.repo_id = h.id
                                    AND f.name = 'heads/main'
                                  LIMIT 1) f ON true
              LEFT JOIN LATERAL (SELECT c.line, c.seq, c.files, c.bytes
                                   FROM xet.hub_commits c
                                  WHERE c.repo_id = h.id AND c.oid = f.oid
                                  LIMIT 1) m ON true
              LEFT JOIN LATERAL (SELECT l.last, l.files, l.bytes
                                   FROM xet.hub_lines l
                                  WHERE l.repo_id = h.id AND l.line = m.line
                                  LIMIT 1) x ON true
            UNION ALL
            SELECT NULL, NULL, NULL,
                   (extract(epoch FROM s.changed_at) * 1000000)::bigint, s.id,
                   NULL, NULL
              FROM stopped s
             WHERE (SELECT count(*) FROM h) < most) o
     ORDER BY o.repo IS NULL, o.changed DESC, o.id DESC;
END;
$$;


-- A repo at a revision, and the folder or file that a path leads to; in readme
-- the path of the text that belongs to it, if there is one: README.md of the
-- folder, or the file.  rev becomes what of the path belongs to it, too.

CREATE FUNCTION xet.hub_page_repo(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, INOUT rev text, INOUT path text,
    OUT status integer, OUT code text, OUT message text, OUT more text,
    OUT private boolean, OUT oid text, OUT made_at bigint, OUT title text,
    OUT who text, OUT files bigint, OUT bytes bigint, OUT is_folder boolean,
    OUT readme text, OUT hash bytea, OUT size bigint, OUT uploads text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    r      record;
    c      record;
    whole  text := concat_ws('/', rev, nullif(path, ''));
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    private := r.private;
    uploads := r.uploads;

    SELECT * INTO c FROM xet.hub_rev(r.id, rev, path);

    IF c.oid IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'There is no such revision';
        RETURN;
    END IF;

    path := c.path;
    rev := CASE WHEN path = '' THEN whole
                ELSE left(whole, length(whole) - length(path) - 1) END;
    oid := encode(c.oid, 'hex');
    made_at := extract(epoch FROM c.made_at)::bigint;

    SELECT left(k.title, 200), k.who,
           CASE WHEN k.seq = x.last THEN x.files ELSE k.files END,
           CASE WHEN k.seq = x.last THEN x.bytes ELSE k.bytes END
      INTO hub_page_repo.title, hub_page_repo.who, hub_page_repo.files,
           hub_page_repo.bytes
      FROM xet.hub_commits k
      JOIN xet.hub_lines x ON x.repo_id = k.repo_id AND x.line = k.line
     WHERE k.repo_id = r.id AND k.oid = c.oid;

    is_folder := path = '';

    IF NOT is_folder THEN
        SELECT p.hash IS NULL INTO is_folder
          FROM xet.hub_at(r.id, c.lines, c.seqs, c.path) p;

        IF is_folder IS NULL THEN
            status := 404;
            code := 'EntryNotFound';
            message := 'There is no such file or folder';
            RETURN;
        END IF;
    END IF;

    SELECT p.path, xet.hub_hash(p.hash), p.size
      INTO readme, hub_page_repo.hash, hub_page_repo.size
      FROM xet.hub_at(r.id, c.lines, c.seqs,
                      CASE WHEN is_folder
                           THEN concat_ws('/', nullif(c.path, ''), 'README.md')
                           ELSE c.path END) p
     WHERE p.hash IS NOT NULL;
END;
$$;


-- The entries of a folder, each with the title of its last commit; of a file,
-- its own entry.

CREATE FUNCTION xet.hub_page_tree(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, path text, after text,
    most integer)
    RETURNS TABLE (entry text, folder boolean, size bigint, at bigint,
                   title text)
    LANGUAGE sql STABLE
AS $$
    WITH t AS MATERIALIZED (
        SELECT f.*
          FROM xet.hub_tree_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, false,
                                 true, $10, $11, $11) f
    )
    SELECT k.entry, k.hash IS NULL, k.size,
           extract(epoch FROM coalesce(k.mtime, k.made_at))::bigint,
           left(k.title, 200)
      FROM (SELECT t.* FROM t
            UNION ALL
            SELECT p.*
              FROM xet.hub_paths_rows($1, $2, $3, $4, $5, $6, $7, $8,
                                      ARRAY[convert_to($9, 'UTF8')], true) p
             WHERE EXISTS (SELECT FROM t WHERE t.code = 'EntryNotFound')
               AND $10 IS NULL AND p.hash IS NOT NULL) k
     WHERE k.entry IS NOT NULL;
$$;


-- Branches and tags, with "heads/" and "tags/"; the main branch is the first.

CREATE FUNCTION xet.hub_page_refs(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, most integer)
    RETURNS TABLE (ref text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_sort = off
    SET enable_bitmapscan = off
AS $$
DECLARE
    r  record;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    IF r.status <> 200 THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT f.name
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name = 'heads/main'
     LIMIT most;

    RETURN QUERY
    SELECT f.name
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name > '' AND f.name <> 'heads/main'
     ORDER BY f.name
     LIMIT greatest(most - 1, 0);
END;
$$;


-- How many bytes of operations may be staged for one caller: those of two of
-- the largest commits, 100,000 paths of 1 KiB each.

CREATE FUNCTION xet.hub_staged_most()
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 268435456;
$$;


-- Some operations of a commit, on their way; 1, or 0 where too much is staged
-- for the caller.  Callers without a name are one.

CREATE FUNCTION xet.hub_stage(upload bytea, seq integer, ops integer[],
    paths bytea[], sizes bigint[], hashes bytea[], sha256 bytea[],
    mtimes bigint[], types bytea[], sources bytea[],
    subject bytea DEFAULT NULL)
    RETURNS integer
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    whose   bytea := coalesce(sha256($11), '');
    weight  bigint;
BEGIN
    SELECT 100 * cardinality($3)
           + coalesce(sum(length(u.p) + coalesce(length(u.t), 0)
                          + coalesce(length(u.s), 0)), 0)
      INTO weight
      FROM unnest($4, $9, $10) AS u(p, t, s);

    -- sent twice: it is there

    IF weight + (SELECT coalesce(sum(s.bytes), 0) FROM xet.hub_staged s
                  WHERE s.owner = whose) > xet.hub_staged_most()
       AND NOT EXISTS (SELECT FROM xet.hub_staged s
                        WHERE s.upload = $1 AND s.seq = $2)
    THEN
        RETURN 0;
    END IF;

    INSERT INTO xet.hub_staged (upload, seq, ops, paths, sizes, hashes,
                                sha256, mtimes, types, sources, owner, bytes)
    SELECT $1, $2, $3,
           (SELECT array_agg(convert_from(p, 'UTF8') ORDER BY n)
              FROM unnest($4) WITH ORDINALITY AS u(p, n)),
           $5, $6, $7, $8,
           (SELECT array_agg(convert_from(t, 'UTF8') ORDER BY n)
              FROM unnest($9) WITH ORDINALITY AS u(t, n)),
           (SELECT array_agg(convert_from(s, 'UTF8') ORDER BY n)
              FROM unnest($10) WITH ORDINALITY AS u(s, n)),
           whose, weight
    ON CONFLICT DO NOTHING;

    RETURN 1;
END;
$$;


-- Drops what is staged for a commit that is not made, and the files of a repo
-- that was not created.  Who makes it holds a lock on what is staged
-- (xet.hub_whole), so this comes before, or finds nothing.  So many bytes of
-- the file that was being read for it were read in vain.

CREATE FUNCTION xet.hub_unstage(upload bytea, bytes bigint DEFAULT 0)
    RETURNS integer
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    whose  bytea;
BEGIN
    WITH gone AS (
        DELETE FROM xet.hub_proofs p WHERE p.upload = $1 RETURNING p.owner
    )
    SELECT g.owner INTO whose FROM gone g LIMIT 1;

    IF whose IS NOT NULL AND bytes > 0 THEN
        PERFORM xet.hub_vain_add(whose, bytes);
    END IF;

    PERFORM FROM xet.hub_staged s
      WHERE s.upload = $1
      ORDER BY s.seq
        FOR UPDATE;

    DELETE FROM xet.hub_staged s WHERE s.upload = $1;

    PERFORM xet.repo_delete(xet.hub_nursery(upload));

    RETURN 1;
END;
$$;


-- All operations of a commit in their order.

CREATE FUNCTION xet.hub_staged_ops(upload bytea)
    RETURNS TABLE (n bigint, op integer, path text, size bigint, hash bytea,
                   sha256 bytea, mtime bigint, type text, source text)
    LANGUAGE sql STABLE
AS $$
    SELECT row_number() OVER (ORDER BY s.seq, u.i), u.op, u.path, u.size,
           u.hash, u.sha256, u.mtime, u.type, u.source
      FROM xet.hub_staged s
     CROSS JOIN LATERAL unnest(s.ops, s.paths, s.sizes, s.hashes, s.sha256,
                               s.mtimes, s.types, s.sources)
                          WITH ORDINALITY
                          AS u(op, path, size, hash, sha256, mtime, type,
                               source, i)
     WHERE s.upload = $1;
$$;


-- The file that an upload of the repo has called so: one of which that is
-- proven before one of which it is only said.  Part of the statement that asks.

CREATE FUNCTION xet.hub_claimed(repo bigint, sha256 bytea)
    RETURNS TABLE (id bigint, hash bytea, size bigint, proven bytea)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT f.id, f.hash, f.size, CASE WHEN f.sha256_proven THEN f.sha256 END
      FROM (SELECT w.file_id, w.added_at
              FROM xet.repo_files w
             WHERE w.repo_id = $1 AND w.sha256 >= $2 AND w.sha256 <= $2
             ORDER BY w.sha256
            OFFSET 0) rf
     CROSS JOIN LATERAL (SELECT k.* FROM xet.files k
                          WHERE k.id = rf.file_id
                         OFFSET 0) f
     WHERE f.hash IS NOT NULL
     ORDER BY (f.sha256_proven AND f.sha256 = $2) DESC, f.sha256_proven,
              rf.added_at DESC
     LIMIT 1;
$$;


-- Those of some SHA-256 that uploads of the repo have brought.

CREATE FUNCTION xet.hub_known(store text, digests bytea[])
    RETURNS TABLE (sha256 bytea, hash bytea, proven boolean)
    LANGUAGE sql STABLE
    SET enable_seqscan = off
AS $$
    SELECT u.sha256, f.hash, f.proven IS NOT NULL
      FROM unnest($2) AS u(sha256)
     CROSS JOIN LATERAL (SELECT c.*
                           FROM xet.hub_claimed((SELECT r.id FROM xet.repos r
                                                  WHERE r.name = $1),
                                                u.sha256) c
                          WHERE c.proven IS NULL OR c.proven = u.sha256
                          LIMIT 1) f;
$$;


-- Which of some SHA-256 a repo has files of that are proven, from 0 on.  Those
-- that nothing leads to are as if they came now: a sweep that has one of them
-- comes first, and what it has taken is not found.

CREATE FUNCTION xet.hub_here(store text, digests bytea[])
    RETURNS TABLE (n integer)
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    repo  bigint;
    ids   bigint[];
BEGIN
    SELECT r.id INTO repo FROM xet.repos r WHERE r.name = $1;

    SELECT array_agg(DISTINCT f.id) INTO ids
      FROM unnest($2) AS u(sha256)
     CROSS JOIN LATERAL (SELECT c.id, c.proven
                           FROM xet.hub_claimed(repo, u.sha256) c
                          LIMIT 1) f
     WHERE f.proven = u.sha256;

    IF ids IS NULL THEN
        RETURN;
    END IF;

    UPDATE xet.hub_loose l SET since = now()
      FROM (SELECT k.repo_id, k.file_id
              FROM unnest(ids) AS u(id)
             CROSS JOIN LATERAL (SELECT k.repo_id, k.file_id
                                   FROM xet.hub_loose k
                                  WHERE k.repo_id = repo AND k.file_id = u.id
                                    FOR UPDATE) k
             ORDER BY u.id) d
     WHERE l.repo_id = d.repo_id AND l.file_id = d.file_id;

    RETURN QUERY
    SELECT u.i::integer - 1
      FROM unnest($2) WITH ORDINALITY AS u(sha256, i)
     CROSS JOIN LATERAL (SELECT c.proven
                           FROM xet.hub_claimed(repo, u.sha256) c
                          LIMIT 1) f
     WHERE f.proven = u.sha256;
END;
$$;


-- What a shard says of its files, for the repo that it came to.  Files that are
-- looked up by their hashes, whatever the plan was made for.

CREATE FUNCTION xet.hub_claim(repo bigint, hashes bytea[], sha256 bytea[])
    RETURNS void
    LANGUAGE sql
    SET enable_seqscan = off
AS $$
    INSERT INTO xet.hub_loose AS l (repo_id, file_id)
    SELECT DISTINCT $1, f.id
      FROM unnest($2) AS u(hash)
     CROSS JOIN LATERAL (SELECT f.id FROM xet.files f
                          WHERE f.hash = u.hash
                          LIMIT 1) f
     ORDER BY f.id
    ON CONFLICT ON CONSTRAINT hub_loose_pkey
       DO UPDATE SET since = excluded.since;

    UPDATE xet.repo_files rf SET sha256 = d.sha256
      FROM (SELECT f.id, u.sha256
              FROM unnest($2, $3) AS u(hash, sha256)
             CROSS JOIN LATERAL (SELECT f.id FROM xet.files f
                                  WHERE f.hash = u.hash
                                  LIMIT 1) f
             WHERE u.sha256 IS NOT NULL
             ORDER BY f.id) d
     WHERE rf.repo_id = $1 AND rf.file_id = d.id
       AND rf.sha256 IS DISTINCT FROM d.sha256;
$$;


-- Notes bytes that were read in vain for somebody; the notes of a day are
-- forgotten on the next one.

CREATE FUNCTION xet.hub_vain_add(owner bytea, bytes bigint)
    RETURNS void
    LANGUAGE sql
AS $$
    INSERT INTO xet.hub_vain AS v (owner, day, bytes)
    VALUES ($1, xet.today(), $2)
    ON CONFLICT ON CONSTRAINT hub_vain_pkey
       DO UPDATE SET day = excluded.day,
                     bytes = CASE WHEN v.day = excluded.day THEN v.bytes
                                  ELSE 0 END + excluded.bytes;
$$;


-- Whether nothing more is read for somebody today: as many bytes as all that he
-- has uploaded, and a gigabyte, were read in vain.

CREATE FUNCTION xet.hub_vain_much(owner bytea)
    RETURNS boolean
    LANGUAGE sql STABLE
AS $$
    SELECT EXISTS (
        SELECT FROM xet.hub_vain v
         WHERE v.owner = $1 AND v.day = xet.today()
           AND v.bytes > (SELECT 1073741824 + u.stored + u.logical
                            FROM xet.usage_of($1) u));
$$;


-- What is wrong with the files of a commit, as far as it is known: one that was
-- not uploaded to the repo, or has another size or another SHA-256 than the
-- commit says; or NULL.

CREATE FUNCTION xet.hub_claims_bad(repo bigint, upload bytea)
    RETURNS text
    LANGUAGE sql STABLE
    SET enable_seqscan = off
AS $$
    SELECT CASE WHEN f.hash IS NULL AND o.size IS DISTINCT FROM 0
                THEN o.path || ' was not uploaded to this repository'
                WHEN f.proven <> o.sha256 OR o.size = 0
                THEN o.path || ' has not the SHA-256 that the commit says'
                ELSE o.path || ' has not the size that the commit says'
                END
      FROM xet.hub_staged_ops($2) o
      LEFT JOIN LATERAL (SELECT * FROM xet.hub_claimed($1, o.sha256)
                          LIMIT 1) f ON true
     WHERE o.op = 2
       AND CASE WHEN o.size = 0 THEN o.sha256 <> sha256('')
                ELSE f.hash IS NULL OR o.size <> f.size
                     OR f.proven <> o.sha256 END
     ORDER BY o.n
     LIMIT 1;
$$;


-- The files of a commit whose SHA-256 nobody has computed yet, up to 4096, that
-- the caller reads now, and nobody else meanwhile; or one row with a status and
-- what is wrong.  202: others read all that is left, so ask again.
--
-- A file is read once, whatever is claimed of it: what it has is known then to
-- all.  Who has had too much read in vain has to wait for the next day.

CREATE FUNCTION xet.hub_claims(store text, upload bytea, subject bytea)
    RETURNS TABLE (status integer, message text, hash bytea, sha256 bytea)
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    repo    bigint;
    whose   bytea;
    ids     bigint[];
    mine    bigint[];
BEGIN
    SELECT r.id INTO repo FROM xet.repos r WHERE r.name = $1;

    whose := coalesce(sha256($3), int8send(repo));

    SELECT array_agg(DISTINCT f.id) INTO ids
      FROM (SELECT DISTINCT f.id
              FROM xet.hub_staged_ops($2) o
             CROSS JOIN LATERAL (SELECT * FROM xet.hub_claimed(repo, o.sha256)
                                  LIMIT 1) f
             WHERE o.op = 2 AND o.size IS DISTINCT FROM 0
               AND f.proven IS NULL
             LIMIT 4096) f;

    -- behind that: what others have found out meanwhile is wrong, or is right

    message := xet.hub_claims_bad(repo, $2);

    IF message IS NOT NULL THEN
        status := 400;
        RETURN NEXT;
        RETURN;
    END IF;

    IF ids IS NULL THEN
        RETURN;
    END IF;

    IF xet.hub_vain_much(whose) THEN
        status := 429;
        message := 'Too many bytes were read today for commits that name files'
                   ' by a false SHA-256, or that were given up';
        RETURN NEXT;
        RETURN;
    END IF;

    -- who is late reads on: what he finds out is true all the same

    WITH taken AS (
        INSERT INTO xet.hub_proofs AS p (file_id, upload, owner, size, until)
        SELECT f.id, $2, whose, f.size,
               now() + interval '1 minute'
               + interval '1 second' * (sum(f.size) OVER () / 20000000)
          FROM unnest(ids) AS u(id)
         CROSS JOIN LATERAL (SELECT f.id, f.size FROM xet.files f
                              WHERE f.id = u.id
                             OFFSET 0) f
         ORDER BY f.id
        ON CONFLICT ON CONSTRAINT hub_proofs_pkey
           DO UPDATE SET upload = excluded.upload, owner = excluded.owner,
                         until = excluded.until
            WHERE p.until < now() OR p.upload = excluded.upload
        RETURNING p.file_id
    )
    SELECT array_agg(t.file_id) INTO mine FROM taken t;

    IF mine IS NULL THEN
        status := 202;
        RETURN NEXT;
        RETURN;
    END IF;

    RETURN QUERY
    SELECT DISTINCT 200, NULL::text, f.hash, o.sha256
      FROM xet.hub_staged_ops($2) o
     CROSS JOIN LATERAL (SELECT * FROM xet.hub_claimed(repo, o.sha256)
                          LIMIT 1) f
     WHERE o.op = 2 AND o.size IS DISTINCT FROM 0 AND f.id = ANY (mine);

    IF NOT FOUND THEN
        status := 202;
        RETURN NEXT;
    END IF;
END;
$$;


-- A file was read, and this is its SHA-256: for all repos.  A claim of this
-- repo that is another one is dropped, and what was read for it was in vain.

CREATE FUNCTION xet.hub_proven(store text, file bytea, digest bytea)
    RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    id    bigint;
    good  boolean;
    p     xet.hub_proofs;
BEGIN
    PERFORM xet.file_prove(file, digest);

    SELECT f.id INTO id
      FROM xet.files f WHERE f.hash = $2;

    UPDATE xet.repo_files rf SET sha256 = digest
     WHERE rf.repo_id = (SELECT r.id FROM xet.repos r WHERE r.name = $1)
       AND rf.file_id = id
       AND rf.sha256 IS DISTINCT FROM digest;

    good := NOT FOUND AND store IS NOT NULL;

    DELETE FROM xet.hub_proofs h WHERE h.file_id = id RETURNING h.* INTO p;

    IF NOT good AND p.owner IS NOT NULL THEN
        PERFORM xet.hub_vain_add(p.owner, p.size);
    END IF;

    RETURN good;
END;
$$;


-- The folders above a path, none for a path of the root.

CREATE FUNCTION xet.hub_above(path text)
    RETURNS SETOF text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 4
AS $$
    SELECT array_to_string(p[1 : i], '/')
      FROM string_to_array(path, '/') AS p,
           generate_series(1, array_length(p, 1) - 1) AS i;
$$;


CREATE FUNCTION xet.hub_folder(path text)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(substring(path from '^(.*)/'), '');
$$;


-- The folders that paths are in, each of them once, and no more of them than
-- one more than most: who finds that many refuses, so that no request makes
-- PostgreSQL name folders that it will not have.

CREATE FUNCTION xet.hub_folders(paths text[], most bigint)
    RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    WITH RECURSIVE f(path) AS (
        SELECT xet.hub_folder(p) FROM unnest($1) AS p
        UNION
        SELECT xet.hub_folder(f.path) FROM f WHERE f.path <> ''
    )
    SELECT coalesce(array_agg(k.path), '{}')
      FROM (SELECT f.path FROM f WHERE f.path <> '' LIMIT $2 + 1) k;
$$;


-- What is wrong with a request that writes rows of paths, and of the folders
-- that they are in; NULL where it keeps within most.  Files may be in folders
-- of their own, but hardly in eight each: rows have to do with what was sent.

CREATE FUNCTION xet.hub_too_many(paths bigint, folders bigint, most bigint)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN paths + folders > most
                THEN 'The operations change more than ' || most
                     || ' files and folders; send several commits or batches'
                WHEN folders > 1000 + 8 * paths
                THEN 'The files are in too many folders; send several commits'
                     ' or batches' END;
$$;


-- The file that a path is at a commit; NULL of a folder, too.

CREATE FUNCTION xet.hub_hash_at(repo bigint, lines integer[], seqs integer[],
    path text)
    RETURNS bytea
    LANGUAGE sql STABLE
    SET enable_seqscan = off
AS $$
    SELECT h.hash FROM xet.hub_at($1, $2, $3, $4) h;
$$;


-- All files below a folder, or most of them.

CREATE FUNCTION xet.hub_below(repo bigint, lines integer[], seqs integer[],
    folder text, most bigint)
    RETURNS TABLE (path text, hash bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT h.path, h.hash
      FROM xet.hub_walk($1, $2, $3, NULL, $4 || '/', $4 || '0', true, $5) h;
$$;


-- Whether all is staged still that was: what was dropped, or done before by the
-- same statement, whose answer was lost, must not be taken for nothing to do.
-- It stays until the transaction ends.

CREATE FUNCTION xet.hub_whole(upload bytea, batches integer)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF (SELECT count(*)
          FROM (SELECT FROM xet.hub_staged s
                 WHERE s.upload = $1 AND s.seq >= 0
                 ORDER BY s.seq
                   FOR UPDATE) s) <> batches
    THEN
        RAISE EXCEPTION 'operations of a commit are not there any more'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- The file that a path is at a revision, for a copy of it.

CREATE FUNCTION xet.hub_source(repo bigint, rev text, path text)
    RETURNS TABLE (size bigint, sha256 bytea)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    c  record;
BEGIN
    SELECT * INTO c FROM xet.hub_rev($1, $2, '');

    RETURN QUERY
    SELECT p.size, coalesce(p.sha256, sha256(''))
      FROM xet.hub_at($1, c.lines, c.seqs, $3) p
     WHERE p.hash IS NOT NULL;
END;
$$;


-- What is staged of copies, by a path of the repo, becomes what is staged of
-- the files; returns a path that is none.

CREATE FUNCTION xet.hub_copies(repo bigint, rev text, upload bytea)
    RETURNS text
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
BEGIN
    UPDATE xet.hub_staged h SET (ops, sizes, sha256) = (
        SELECT array_agg(CASE WHEN f.size IS NULL THEN u.op ELSE 2 END
                         ORDER BY u.i),
               array_agg(coalesce(f.size, u.size) ORDER BY u.i),
               array_agg(coalesce(f.sha256, u.sha256) ORDER BY u.i)
          FROM unnest(h.ops, h.sizes, h.sha256, h.types, h.sources)
                  WITH ORDINALITY AS u(op, size, sha256, type, source, i)
          LEFT JOIN LATERAL (SELECT s.*
                               FROM xet.hub_source($1, coalesce(u.type, $2),
                                                   u.source) s
                              WHERE u.op = 7
                              LIMIT 1) f ON true)
     WHERE h.upload = $3 AND h.seq >= 0 AND 7 = ANY (h.ops);

    IF NOT FOUND THEN
        RETURN NULL;
    END IF;

    RETURN (SELECT coalesce(o.source, '') FROM xet.hub_staged_ops($3) o
             WHERE o.op = 7 ORDER BY o.n LIMIT 1);
END;
$$;


-- Whether somebody has changed what a commit changes, since the one that its
-- author has seen: a file at one of its paths, or files in a folder that it
-- deletes.

CREATE FUNCTION xet.hub_meets(repo bigint, lines integer[], seqs integer[],
    seen text, upload bytea)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
AS $$
DECLARE
    old  record;
BEGIN
    SELECT c.oid, l.lines, l.seqs INTO old
      FROM xet.hub_commits c
     CROSS JOIN LATERAL xet.hub_line($1, c.line, c.seq) l
     WHERE c.repo_id = $1
       AND c.oid = xet.hub_oid($1, seen);

    RETURN old.oid IS NULL OR EXISTS (
        SELECT FROM xet.hub_staged_ops($5) o
         WHERE xet.hub_hash_at($1, old.lines, old.seqs, o.path)
               IS DISTINCT FROM xet.hub_hash_at($1, $2, $3, o.path)
            OR o.op = 6
               AND EXISTS (SELECT h.path, h.hash
                             FROM xet.hub_below($1, $2, $3, o.path, NULL) h
                           EXCEPT
                           SELECT h.path, h.hash
                             FROM xet.hub_below($1, old.lines, old.seqs,
                                                o.path, NULL) h));
END;
$$;


-- The files that a commit deletes, no more than one more than most; bad is what
-- it would delete that is not there.

CREATE FUNCTION xet.hub_gone(repo bigint, lines integer[], seqs integer[],
    upload bytea, most bigint, OUT gone text[], OUT bad text)
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_material = off
AS $$
BEGIN
    SELECT coalesce(array_agg(DISTINCT d.path), '{}') INTO gone
      FROM (SELECT h.path
              FROM (SELECT DISTINCT s.op, s.path
                      FROM xet.hub_staged_ops($4) s
                     WHERE s.op IN (5, 6)) o
             CROSS JOIN LATERAL (
                       SELECT p.path
                         FROM xet.hub_at($1, $2, $3, o.path) p
                        WHERE o.op = 5 AND p.hash IS NOT NULL
                       UNION ALL
                       SELECT p.path
                         FROM xet.hub_below($1, $2, $3, o.path, $5 + 1) p
                        WHERE o.op = 6
                   ) h
             LIMIT $5 + 1) d;

    IF cardinality(gone) > $5 THEN
        RETURN;
    END IF;

    -- as sets: to go through all of gone for each of them would take the square
    -- of their number

    SELECT k.path INTO bad
      FROM (
               (SELECT o.path FROM xet.hub_staged_ops($4) o WHERE o.op = 5
                EXCEPT
                SELECT unnest(gone))
               UNION ALL
               (SELECT o.path FROM xet.hub_staged_ops($4) o WHERE o.op = 6
                EXCEPT
                SELECT a FROM unnest(gone) AS g, xet.hub_above(g) AS a)
           ) k
     LIMIT 1;
END;
$$;


-- The files that a commit writes, the last one where a path comes twice, and
-- none that stands there already; ids are theirs, NULL of one without bytes.  A
-- file that was deleted since it was looked at is XT003.

CREATE FUNCTION xet.hub_puts(repo bigint, lines integer[], seqs integer[],
    upload bytea, gone text[], OUT paths text[], OUT hashes bytea[],
    OUT sizes bigint[], OUT digests bytea[], OUT ids bigint[])
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_material = off
AS $$
DECLARE
    store  bigint;
    lost   text;
BEGIN
    store := xet.hub_files_of($1);

    SELECT coalesce(array_agg(o.path), '{}'),
           coalesce(array_agg(o.hash), '{}'),
           coalesce(array_agg(o.size), '{}'),
           coalesce(array_agg(o.sha256), '{}'),
           coalesce(array_agg(o.id), '{}'),
           (array_agg(o.path) FILTER (WHERE o.hash IS NULL))[1]
      INTO paths, hashes, sizes, digests, ids, lost
      FROM (SELECT u.path, u.sha256, f.id,
                   CASE WHEN u.size = 0 THEN decode(repeat('00', 32), 'hex')
                        ELSE xet.hub_hash(f.hash) END AS hash,
                   CASE WHEN u.size = 0 THEN 0 ELSE f.size END AS size
              FROM (SELECT DISTINCT ON (s.path) s.*
                      FROM xet.hub_staged_ops($4) s
                     WHERE s.op IN (2, 5)
                     ORDER BY s.path, s.n DESC) u
              LEFT JOIN LATERAL (
                       SELECT k.* FROM xet.hub_claimed(store, u.sha256) k
                        WHERE u.size IS DISTINCT FROM 0
                          AND k.proven = u.sha256
                        LIMIT 1
                   ) f ON true
             WHERE u.op = 2) o
      LEFT JOIN LATERAL xet.hub_at($1, $2, $3, o.path) h ON true
     WHERE h.hash IS DISTINCT FROM o.hash OR o.hash IS NULL
        OR o.path = ANY (gone);

    IF lost IS NOT NULL THEN
        RAISE EXCEPTION 'a file of the commit was deleted meanwhile'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- A path that would be a file and a folder, once files are written to puts,
-- which are in the folders of above, and those of gone are deleted; or NULL.

CREATE FUNCTION xet.hub_clash(repo bigint, lines integer[], seqs integer[],
    puts text[], above text[], gone text[])
    RETURNS text
    LANGUAGE plpgsql STABLE
    SET enable_seqscan = off
    SET enable_material = off
AS $$
BEGIN
    RETURN (
        (SELECT unnest(puts)
         INTERSECT
         SELECT unnest(above))

        UNION ALL

        -- what is left in a folder that becomes a file

        SELECT (SELECT a FROM xet.hub_above(k.path) AS a
                 WHERE a = ANY (puts) LIMIT 1)
          FROM (SELECT b.path
                  FROM unnest(puts) AS u(path)
                 CROSS JOIN LATERAL xet.hub_at($1, $2, $3, u.path) p
                 CROSS JOIN LATERAL xet.hub_below($1, $2, $3, u.path,
                                                  cardinality(gone) + 1) b
                 WHERE p.hash IS NULL
                EXCEPT
                SELECT unnest(gone)) k

        UNION ALL

        -- a file that becomes a folder

        (SELECT u.path
           FROM unnest(above) AS u(path)
          CROSS JOIN LATERAL xet.hub_at($1, $2, $3, u.path) p
          WHERE p.hash IS NOT NULL
         EXCEPT
         SELECT unnest(gone))

         LIMIT 1);
END;
$$;


-- Holds the files of a commit, which have to be files of the repo, until its
-- end.

CREATE FUNCTION xet.hub_hold(repo bigint, ids bigint[])
    RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    store  bigint;
BEGIN
    store := xet.hub_files_of($1);

    IF (SELECT count(*)
          FROM (SELECT FROM unnest(ids) AS u(id)
                 CROSS JOIN LATERAL (SELECT rf.file_id FROM xet.repo_files rf
                                      WHERE rf.repo_id = store
                                        AND rf.file_id = u.id
                                     OFFSET 0 FOR KEY SHARE) rf
                 WHERE u.id IS NOT NULL) k)
       < (SELECT count(u.id) FROM unnest(ids) AS u(id))
    THEN
        RAISE EXCEPTION 'a file of the commit was deleted meanwhile'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- Writes the rows of a commit, the next one of its line.  It ends rows at the
-- paths of told and in the folders of above; new rows are files, at paths, and
-- folders: those of "files", where these files are, and those of above that are
-- not empty then.  A row of another line can't be ended: a tombstone hides it,
-- if no new row does.  Returns the weight of all rows that were written.

CREATE FUNCTION xet.hub_write(repo bigint, lines integer[], seqs integer[],
    ref text, made bytea, told text[], above text[], files text[],
    paths text[], hashes bytea[], sizes bigint[], digests bytea[])
    RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_material = off
AS $$
DECLARE
    ever    CONSTANT integer := 2147483647;
    here    CONSTANT integer := lines[1];
    seq     CONSTANT integer := seqs[1] + 1;
    after   CONSTANT integer[] := seq || seqs[2 :];
    shared  CONSTANT boolean := cardinality(lines) > 1;
    lost    record;
    far     record;
    weight  bigint;
BEGIN
    IF shared THEN
        SELECT count(k.hash) AS files, coalesce(sum(k.size), 0) AS bytes,
               coalesce(array_agg(k.path), '{}') AS paths
          INTO far
          FROM (SELECT unnest(told) UNION SELECT unnest(above)) AS u(path)
         CROSS JOIN LATERAL xet.hub_at(repo, lines, seqs, u.path) k
         WHERE k.line <> here;
    END IF;

    -- by where they are, which the lock on the line keeps: a join with the
    -- paths may walk through the whole line

    WITH ended AS (
        UPDATE xet.hub_paths h SET till = seq
         WHERE h.ctid = ANY (ARRAY(
                   SELECT k.ctid
                     FROM unnest(told || above) AS u(path)
                    CROSS JOIN LATERAL (
                              SELECT p.ctid, p.till FROM xet.hub_paths p
                               WHERE p.repo_id = $1 AND p.line = here
                                 AND p.path = u.path
                               ORDER BY p.since DESC
                               LIMIT 1
                          ) k
                    WHERE k.till = ever))
        RETURNING h.hash, h.size
    )
    SELECT count(*) FILTER (WHERE o.hash IS NOT NULL) AS files,
           coalesce(sum(o.size), 0) AS bytes
      INTO lost
      FROM ended o;

    INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                               sha256, made)
    SELECT $1, here, u.path, seq, xet.hub_folder(u.path), u.hash, u.size,
           u.sha256, $5
      FROM unnest(paths, hashes, sizes, digests)
              AS u(path, hash, size, sha256);

    weight := (SELECT sum(xet.hub_weight(p)) FROM unnest(paths) AS p);
    weight := coalesce(weight, 0);

    -- tombstones of files come first: folders are those that have any still, or
    -- are where a file was

    IF shared THEN
        weight := weight + xet.hub_tombstones(
            repo, here, seq, made,
            ARRAY(SELECT unnest(far.paths) INTERSECT SELECT unnest(told)
                  EXCEPT SELECT unnest(files)));
    END IF;

    WITH begun AS (
        INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made)
        SELECT $1, here, u.path, seq, xet.hub_folder(u.path), $5
          FROM (SELECT unnest(files)
                UNION ALL
                (SELECT k.path
                   FROM (SELECT unnest(above) EXCEPT SELECT unnest(files))
                           AS k(path)
                  WHERE EXISTS (SELECT FROM xet.hub_paths h
                                 WHERE h.repo_id = $1 AND h.line = here
                                   AND h.path > k.path || '/'
                                   AND h.path < k.path || '0'
                                   AND h.till = ever
                                   AND coalesce(h.hash, '') <> ''
                                OFFSET 0)
                     OR shared
                        AND EXISTS (SELECT
                                      FROM xet.hub_below(repo, lines, after,
                                                         k.path, 1)))
               ) AS u(path)
        RETURNING hub_paths.path
    )
    SELECT weight + coalesce(sum(xet.hub_weight(b.path)), 0) INTO weight
      FROM begun b;

    IF shared THEN
        weight := weight + xet.hub_tombstones(
            repo, here, seq, made,
            ARRAY(SELECT unnest(far.paths) EXCEPT SELECT unnest(told)));

        lost.files := lost.files + far.files;
        lost.bytes := lost.bytes + far.bytes;
    END IF;

    UPDATE xet.hub_lines x
       SET last = seq, branch = ref,
           files = x.files - lost.files + cardinality(paths),
           bytes = x.bytes - lost.bytes
                   + (SELECT coalesce(sum(s), 0) FROM unnest(sizes) AS s)
     WHERE x.repo_id = $1 AND x.line = here;

    RETURN weight;
END;
$$;


-- Hides what other lines have at paths, where the commit writes nothing.

CREATE FUNCTION xet.hub_tombstones(repo bigint, line integer, seq integer,
    made bytea, paths text[])
    RETURNS bigint
    LANGUAGE sql
    SET enable_seqscan = off
AS $$
    WITH hidden AS (
        INSERT INTO xet.hub_paths (repo_id, line, path, since, till, folder,
                                   made)
        SELECT $1, $2, u.path, $3, $3, xet.hub_folder(u.path), $4
          FROM unnest($5) AS u(path)
        ON CONFLICT DO NOTHING
        RETURNING hub_paths.path
    )
    SELECT coalesce(sum(xet.hub_weight(h.path)), 0)::bigint FROM hidden h;
$$;


-- Commits what is staged to a branch, as a whole or not at all.  Rows are
-- counted, and refused, before the first of them is written.
--
-- Who has seen another commit than the one that the branch has, and says so,
-- may go on where nobody has changed since what he changes; else it is 412.
-- What changes nothing makes no commit.  An upload that has made its commit is
-- answered with that.  message is how many rows were changed, and how many
-- bytes of metadata that has added.
--
-- seen is the commit that the branch had when the request came, or when it was
-- last looked at whether its client waits.  Who has said no parent, and meets
-- what came since, is told so by 409 and the commit of now: the server looks
-- whether the client waits still, and sends it again.  So what comes here long
-- after it was sent, from a session that was given up, is not put over what its
-- client has done since.

CREATE FUNCTION xet.hub_commit(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, rev text, upload bytea, parent text,
    who text, title text, text text, batches integer, seen text DEFAULT NULL,
    subject bytea DEFAULT NULL, most integer DEFAULT 500000,
    OUT status integer, OUT code text, OUT message text, OUT body text,
    OUT more text)
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_material = off
AS $$
DECLARE
    r      record;
    ref    text;
    head   bytea;
    made   bytea;
    base   xet.hub_commits;
    l      record;
    gone   text[];
    bad    text;
    lost   text;
    w      record;
    told   text[];
    above  text[];
    files  text[];
    weight bigint;
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    -- who deletes the repo comes before or after

    PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    ref := xet.hub_branch(r.id, rev);

    SELECT f.oid INTO head
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name = ref
       FOR UPDATE;

    IF head IS NULL THEN
        status := 404;
        code := 'RevisionNotFound';
        message := 'There is no branch ' || rev;
        RETURN;
    END IF;

    SELECT c.* INTO base
      FROM xet.hub_commits c
     WHERE c.repo_id = r.id AND c.upload = $9;

    IF base.oid IS NOT NULL THEN
        body := encode(base.oid, 'hex');
        RETURN;
    END IF;

    PERFORM xet.hub_whole(upload, batches);

    SELECT c.* INTO base
      FROM xet.hub_commits c
     WHERE c.repo_id = r.id AND c.oid = head;

    SELECT * INTO l FROM xet.hub_line(r.id, base.line, base.seq);

    bad := xet.hub_copies(r.id, encode(head, 'hex'), upload);

    IF bad IS NOT NULL THEN
        status := 404;
        code := 'EntryNotFound';
        message := 'There is no file to copy: ' || bad;
        RETURN;
    END IF;

    SELECT g.gone, g.bad INTO gone, lost
      FROM xet.hub_gone(r.id, l.lines, l.seqs, upload, most) g;

    bad := xet.hub_too_many(cardinality(gone), 0, most);

    IF bad IS NOT NULL THEN
        status := 413;
        code := 'too_many_rows';
        message := bad;
        RETURN;
    END IF;

    IF parent IS NOT NULL
       AND xet.hub_oid(r.id, parent) IS DISTINCT FROM head
       AND xet.hub_meets(r.id, l.lines, l.seqs, parent, upload)
    THEN
        status := 412;
        code := 'parent_changed';
        message := 'A commit has happened since. Please refresh and try'
                   ' again.';
        RETURN;
    END IF;

    IF parent IS NULL AND seen <> encode(head, 'hex')
       AND xet.hub_meets(r.id, l.lines, l.seqs, seen, upload)
    THEN
        status := 409;
        code := 'branch_moved';
        message := 'Others have changed the same files meanwhile';
        body := encode(head, 'hex');
        RETURN;
    END IF;

    IF lost IS NOT NULL THEN
        status := 404;
        code := 'EntryNotFound';
        message := 'A file with this name doesn''t exist: ' || lost;
        RETURN;
    END IF;

    SELECT * INTO w
      FROM xet.hub_puts(r.id, l.lines, l.seqs, upload, gone);

    SELECT coalesce(array_agg(p), '{}') INTO told
      FROM (SELECT unnest(gone) UNION SELECT unnest(w.paths)) AS u(p);

    body := encode(head, 'hex');

    IF cardinality(told) = 0 THEN
        DELETE FROM xet.hub_staged s WHERE s.upload = $9;
        RETURN;
    END IF;

    above := xet.hub_folders(told, most);
    bad := xet.hub_too_many(cardinality(told), cardinality(above), most);

    IF bad IS NOT NULL THEN
        status := 413;
        code := 'too_many_rows';
        message := bad;
        body := NULL;
        RETURN;
    END IF;

    files := CASE WHEN cardinality(gone) = 0 THEN above
                  ELSE xet.hub_folders(w.paths, most) END;
    bad := xet.hub_clash(r.id, l.lines, l.seqs, w.paths, files, gone);

    IF bad IS NOT NULL THEN
        status := 400;
        code := 'invalid_path';
        message := bad || ' is a file and a folder';
        body := NULL;
        RETURN;
    END IF;

    -- what has no room left is refused before it is written; who comes at the
    -- same time is seen at the end

    weight := xet.hub_weight(title || text);

    IF EXISTS (SELECT FROM xet.quotas) THEN
        PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), subject, 0, 0,
                               weight
                               + (SELECT sum(xet.hub_weight(p))
                                    FROM (SELECT unnest(w.paths)
                                          UNION ALL
                                          SELECT unnest(above)) AS u(p)
                                 )::bigint,
                               false);
    END IF;

    PERFORM xet.hub_hold(r.id, w.ids);

    l.lines := xet.hub_fork(r.id, l.lines, base, ref);

    IF l.lines IS NULL THEN
        status := 400;
        code := 'branch_too_deep';
        message := 'The branch ' || rev || ' goes on from a branch, which goes'
                   ' on from a branch, and so on, 32 times; make a branch of an'
                   ' earlier commit';
        body := NULL;
        RETURN;
    END IF;

    IF cardinality(l.lines) > cardinality(l.seqs) THEN
        l.seqs := base.seq || l.seqs;
    END IF;

    made := substr(sha256($9 || head), 1, 20);

    weight := weight + xet.hub_write(r.id, l.lines, l.seqs, ref, made, told,
                                     above, files, w.paths, w.hashes, w.sizes,
                                     w.digests);

    INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title,
                                 message, upload, subject, metadata, files,
                                 bytes)
    SELECT r.id, x.line, base.seq + 1, made, head, who, title, text, $9,
           sha256(subject), weight, x.files, x.bytes
      FROM xet.hub_lines x
     WHERE x.repo_id = r.id AND x.line = l.lines[1];

    UPDATE xet.hub_refs f SET oid = made
     WHERE f.repo_id = r.id AND f.name = ref;

    UPDATE xet.hub_repos h SET changed_at = now() WHERE h.id = r.id;

    DELETE FROM xet.hub_staged s WHERE s.upload = $9;

    PERFORM xet.hub_charge(r.id, sha256(subject), weight);
    PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), subject, 0, 0,
                           weight);

    body := encode(made, 'hex');
    message := cardinality(told) + cardinality(above) || ' ' || weight;
END;
$$;


-- The lines of a commit that follows on base, whose lines are given, by the
-- branch ref: those of base, whose line is locked then, or these behind a new
-- one, which has no row yet; NULL where it would be one of too many.
--
-- A line is for the branch that has made its last commit.  So a branch that
-- begins at the last commit of another one leaves it as soon as it has a commit
-- of its own, and the other one goes on as before, however many do this, and
-- whoever comes first.  Where there would be too many lines it takes over this
-- one instead.

CREATE FUNCTION xet.hub_fork(repo bigint, lines integer[],
    base xet.hub_commits, ref text)
    RETURNS integer[]
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
DECLARE
    many  CONSTANT integer := 32;
    x     xet.hub_lines;
    fork  integer;
BEGIN
    SELECT k.* INTO x
      FROM xet.hub_lines k
     WHERE k.repo_id = $1 AND k.line = base.line
       FOR UPDATE;

    IF base.seq = x.last
       AND (x.branch IS NULL OR x.branch = ref OR cardinality(lines) > many
            OR NOT EXISTS (SELECT FROM xet.hub_refs f
                            WHERE f.repo_id = $1 AND f.name = x.branch
                              AND f.oid = base.oid))
    THEN
        RETURN lines;
    END IF;

    IF cardinality(lines) > many THEN
        RETURN NULL;
    END IF;

    PERFORM FROM xet.hub_lines k
      WHERE k.repo_id = $1 AND k.line = 0 FOR UPDATE;

    SELECT max(k.line) + 1 INTO fork FROM xet.hub_lines k WHERE k.repo_id = $1;

    INSERT INTO xet.hub_lines (repo_id, line, last, files, bytes, bases, upto)
    VALUES ($1, fork, base.seq, base.files, base.bytes, base.line || x.bases,
            base.seq || x.upto);

    RETURN fork || lines;
END;
$$;


-- A file that may be named by its hash: one of the uploads to a repo, or of
-- another repo ("kind/owner/name") that the caller may read, which becomes a
-- file of this one, too, by a subject; added: how many bytes that is more than
-- it had.  Its place stays until the commit.

CREATE FUNCTION xet.hub_named(target bigint, any_space boolean, spaces text[],
    any_store boolean, store text, subject bytea, hash bytea, source text)
    RETURNS TABLE (id bigint, size bigint, added bigint)
    LANGUAGE plpgsql
    SET enable_seqscan = off
AS $$
#variable_conflict use_column
DECLARE
    r     record;
    f     record;
    from_repo  bigint := target;
BEGIN
    IF source IS NOT NULL THEN
        SELECT h.* INTO r
          FROM (VALUES ('model', 0), ('dataset', 1), ('space', 2),
                       ('bucket', 3)) AS k(name, n)
         CROSS JOIN LATERAL xet.hub_find(k.n, split_part(source, '/', 2),
                                         split_part(source, '/', 3),
                                         $2, $3, $4, $5, false) h
         WHERE k.name = split_part(source, '/', 1);

        from_repo := xet.hub_files_of(r.id);
    END IF;

    SELECT f.id, f.size INTO f
      FROM xet.files f
      JOIN xet.repo_files rf ON rf.file_id = f.id AND rf.repo_id = from_repo
     WHERE f.hash = $7
       FOR KEY SHARE OF f, rf;

    IF f.id IS NULL THEN
        RETURN;
    END IF;

    added := 0;

    IF from_repo <> target THEN
        INSERT INTO xet.repo_files AS rf (repo_id, file_id, subject)
        VALUES (target, f.id, sha256($6))
        ON CONFLICT (file_id, repo_id) DO UPDATE SET repo_id = rf.repo_id
        RETURNING CASE WHEN rf.xmax = 0 THEN f.size ELSE 0 END INTO added;

        -- what the batch does not take after all is let go of

        INSERT INTO xet.hub_loose AS l (repo_id, file_id)
        VALUES (target, f.id)
        ON CONFLICT ON CONSTRAINT hub_loose_pkey
           DO UPDATE SET since = excluded.since;
    END IF;

    id := f.id;
    size := f.size;
    RETURN NEXT;
END;
$$;


-- What xet.hub_batch() does for one operation, under its settings.
--
-- The size of a file that is to be put into a bucket, or why it can't be.

CREATE FUNCTION xet.hub_bucket_file(repo bigint, target bigint,
    any_space boolean, spaces text[], any_store boolean, store text,
    subject bytea, path text, hash bytea, source text, OUT size bigint,
    OUT added bigint, OUT bad text)
    LANGUAGE plpgsql
AS $$
BEGIN
    IF hash = decode(repeat('00', 32), 'hex') THEN
        size := 0;

    ELSE
        SELECT k.size, k.added
          INTO hub_bucket_file.size, hub_bucket_file.added
          FROM xet.hub_named(target, any_space, spaces, any_store, store,
                             subject, hash, source) k;

        IF NOT FOUND THEN
            bad := 'no such file was uploaded';
        END IF;
    END IF;

    IF (SELECT p.hash IS NULL
          FROM xet.hub_paths p
         WHERE p.repo_id = $1 AND p.line = 0 AND p.path = $8
         ORDER BY p.since DESC
         LIMIT 1)
       OR EXISTS (SELECT FROM xet.hub_above($8) AS u
                   CROSS JOIN LATERAL (
                             SELECT p.hash FROM xet.hub_paths p
                              WHERE p.repo_id = $1 AND p.line = 0
                                AND p.path = u
                              ORDER BY p.since DESC
                              LIMIT 1
                         ) p
                   WHERE p.hash IS NOT NULL)
    THEN
        bad := 'a file can''t be a folder';
    END IF;
END;
$$;


-- Takes a path out of a bucket, and says what it was and who has put it there.
-- Its file is looked at a day later: another path may lead to it.

CREATE FUNCTION xet.hub_bucket_take(repo bigint, target bigint, path text,
    OUT files integer, OUT bytes bigint, OUT subject bytea)
    LANGUAGE plpgsql
AS $$
DECLARE
    old  bytea;
BEGIN
    DELETE FROM xet.hub_paths p
     WHERE p.repo_id = $1 AND p.line = 0 AND p.path = $3
       AND p.hash IS NOT NULL
    RETURNING xet.hub_hash(p.hash), p.size, p.subject INTO old, bytes, subject;

    files := CASE WHEN old IS NULL THEN 0 ELSE 1 END;
    bytes := coalesce(bytes, 0);

    INSERT INTO xet.hub_loose AS l (repo_id, file_id)
    SELECT target, x.id
      FROM xet.files x
     WHERE x.hash = old
    ON CONFLICT ON CONSTRAINT hub_loose_pkey
       DO UPDATE SET since = excluded.since;
END;
$$;


CREATE FUNCTION xet.hub_bucket_put(repo bigint, path text, hash bytea,
    size bigint, mtime bigint, type text, subject bytea)
    RETURNS bigint
    LANGUAGE sql
AS $$
    INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                               made, mtime, type, subject)
    VALUES ($1, 0, $2, 0, xet.hub_folder($2), xet.hub_hash($3), $4, '',
            to_timestamp($5 / 1000.0), $6, $7);

    WITH begun AS (
        INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, made,
                                   subject)
        SELECT $1, 0, u, 0, xet.hub_folder(u), '', $7
          FROM xet.hub_above($2) AS u
        ON CONFLICT DO NOTHING
        RETURNING hub_paths.path
    )
    SELECT xet.hub_weight($2) + coalesce(sum(xet.hub_weight(b.path)), 0)::bigint
      FROM begun b;
$$;


-- Folders above paths that were deleted are gone, too, where they have nothing
-- any more, from below; returns what that changes of the metadata of a subject,
-- that of others is counted here.  Once for all of them: what this transaction
-- has deleted is in the index still, and is gone through for each folder.

CREATE FUNCTION xet.hub_bucket_prune(repo bigint, paths text[], mine bytea)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    a      text;
    whose  bytea;
    bytes  bigint := 0;
BEGIN
    FOR a IN SELECT u.path
               FROM (SELECT DISTINCT f
                       FROM unnest($2) AS p, xet.hub_above(p) AS f) AS u(path)
              ORDER BY length(u.path) DESC
    LOOP
        CONTINUE WHEN EXISTS (SELECT FROM xet.hub_paths p
                               WHERE p.folder = a AND p.repo_id = $1
                                 AND p.line = 0);

        DELETE FROM xet.hub_paths p
         WHERE p.repo_id = $1 AND p.line = 0 AND p.path = a
           AND p.hash IS NULL
        RETURNING p.subject INTO whose;

        CONTINUE WHEN NOT FOUND;

        IF whose IS NOT DISTINCT FROM mine THEN
            bytes := bytes - xet.hub_weight(a);

        ELSE
            PERFORM xet.hub_charge($1, whose, -xet.hub_weight(a));
        END IF;
    END LOOP;

    RETURN bytes;
END;
$$;


-- Does what is staged to a bucket, one operation after the other: each is done,
-- or told of.  The answer is kept in the place of what was staged, for a
-- statement that is sent again, until who sends it drops that.

CREATE FUNCTION xet.hub_batch(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, upload bytea, batches integer,
    subject bytea DEFAULT NULL, most integer DEFAULT 500000,
    OUT status integer, OUT code text, OUT message text, OUT body text,
    OUT more text)
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_material = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    r        record;
    o        record;
    f        record;
    old      record;
    target   bigint;
    d_files  bigint := 0;
    d_bytes  bigint := 0;
    n        bigint := 0;
    added    bigint := 0;
    gone     text[] := '{}';
    failed   text[] := '{}';
    mine     bytea := sha256(subject);
    bytes    bigint := 0;
    paths    text[];
    above    text[];
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        true);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;

    IF NOT FOUND THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    PERFORM FROM xet.hub_lines x
      WHERE x.repo_id = r.id AND x.line = 0 FOR UPDATE;

    -- what it has told before is told again

    SELECT s.sizes[1], s.paths[1] INTO status, body
      FROM xet.hub_staged s
     WHERE s.upload = $8 AND s.seq = -1;

    IF FOUND THEN
        RETURN;
    END IF;

    status := 200;

    PERFORM xet.hub_whole(upload, batches);

    SELECT coalesce(array_agg(DISTINCT s.path), '{}') INTO paths
      FROM xet.hub_staged_ops($8) s;

    above := xet.hub_folders(paths, most);
    message := xet.hub_too_many(cardinality(paths), cardinality(above), most);

    IF message IS NOT NULL THEN
        status := 413;
        code := 'too_many_rows';
        RETURN;
    END IF;

    target := xet.hub_files_of(r.id);

    FOR o IN SELECT s.*, s.op IN (3, 4) AS puts
               FROM xet.hub_staged_ops($8) s ORDER BY s.n
    LOOP
        n := n + 1;

        IF o.puts THEN
            SELECT * INTO f
              FROM xet.hub_bucket_file(r.id, target, any_space, spaces,
                                       any_store, store, subject, o.path,
                                       o.hash, o.source);
            added := added + coalesce(f.added, 0);

            -- a folder that it meets may have nothing any more

            IF f.bad IS NOT NULL AND cardinality(gone) > 0 THEN
                bytes := bytes + xet.hub_bucket_prune(r.id, gone, mine);
                gone := '{}';

                SELECT * INTO f
                  FROM xet.hub_bucket_file(r.id, target, any_space, spaces,
                                           any_store, store, subject, o.path,
                                           o.hash, o.source);
            END IF;

            IF f.bad IS NOT NULL THEN
                failed := failed || ('{"path":' || to_json(o.path)
                                     || ',"error":' || to_json(f.bad) || '}');
                CONTINUE;
            END IF;
        END IF;

        SELECT * INTO old FROM xet.hub_bucket_take(r.id, target, o.path);

        d_files := d_files - old.files;
        d_bytes := d_bytes - old.bytes;

        IF old.subject IS NOT DISTINCT FROM mine THEN
            bytes := bytes - old.files * xet.hub_weight(o.path);

        ELSIF old.files = 1 THEN
            PERFORM xet.hub_charge(r.id, old.subject,
                                   -xet.hub_weight(o.path));
        END IF;

        IF o.puts THEN
            d_files := d_files + 1;
            d_bytes := d_bytes + f.size;
            bytes := bytes + xet.hub_bucket_put(r.id, o.path, o.hash, f.size,
                                                o.mtime, o.type, mine);
        ELSE
            gone := gone || o.path;
        END IF;
    END LOOP;

    bytes := bytes + xet.hub_bucket_prune(r.id, gone, mine);

    status := CASE WHEN n > 0 AND cardinality(failed) = n THEN 422
                   ELSE 200 END;
    body := '{"success":' || (cardinality(failed) = 0)
            || ',"processed":' || n
            || ',"succeeded":' || n - cardinality(failed)
            || ',"failed":[' || array_to_string(failed, ',') || ']}';

    UPDATE xet.hub_lines x
       SET files = x.files + d_files, bytes = x.bytes + d_bytes
     WHERE x.repo_id = r.id AND x.line = 0;
    UPDATE xet.hub_repos h SET changed_at = now() WHERE h.id = r.id;
    DELETE FROM xet.hub_staged s WHERE s.upload = $8;

    INSERT INTO xet.hub_staged (upload, seq, ops, paths, sizes, hashes, sha256,
                                mtimes, types, sources)
    VALUES ($8, -1, '{}', ARRAY[body], ARRAY[status], '{}', '{}', '{}', '{}',
            '{}');

    message := cardinality(paths) + cardinality(above) || ' '
               || greatest(bytes, 0);

    PERFORM xet.hub_charge(r.id, mine, bytes);
    PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), subject, 0, added,
                           bytes);
END;
$$;


-- Files of a repo become files of another one, as if they had been uploaded to
-- it, so that a commit there may name them: those that a commit of this one
-- leads to, and that have the SHA-256 which is asked for because somebody has
-- computed it.  Who asks may read this repo and write to the other one.

CREATE FUNCTION xet.hub_duplicate(kind integer, owner text, name text,
    any_space boolean, spaces text[],
    any_store boolean, store text, to_kind integer, to_owner text, to_name text,
    subject bytea, hashes bytea[], digests bytea[], OUT status integer,
    OUT code text, OUT message text, OUT body text, OUT more text)
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET enable_material = off
AS $$
DECLARE
    r        record;
    t        record;
    n        bigint;
    source   bigint;
    target   bigint;
    places   bigint[];
    ids      bigint[];
BEGIN
    SELECT * INTO r
      FROM xet.hub_find(kind, owner, name, any_space, spaces, any_store, store,
                        false);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    SELECT * INTO t
      FROM xet.hub_find(to_kind, to_owner, to_name, any_space, spaces,
                        any_store, store, true);

    -- nobody can be sent to where a body leads

    IF t.status = 307 THEN
        SELECT * INTO t
          FROM xet.hub_find(to_kind, split_part(t.more, '/', 1),
                            split_part(t.more, '/', 2), any_space, spaces,
                            any_store, store, true);
    END IF;

    IF t.status <> 200 THEN
        status := t.status;
        code := t.code;
        message := t.message;
        RETURN;
    END IF;

    -- who deletes one of them comes before or after

    SELECT count(*) INTO n
      FROM (SELECT FROM xet.hub_repos h
             WHERE h.id IN (r.id, t.id)
             ORDER BY h.id
               FOR KEY SHARE) k;

    source := xet.hub_files_of(r.id);
    target := xet.hub_files_of(t.id);

    IF n < 1 + (r.id <> t.id)::integer
       OR source IS NULL OR target IS NULL
    THEN
        status := 404;
        code := 'RepoNotFound';
        message := 'Repository not found';
        RETURN;
    END IF;

    -- a batch of a bucket takes files of others in its own order, and holds
    -- this lock meanwhile

    IF to_kind = 3 THEN
        PERFORM FROM xet.hub_lines x
          WHERE x.repo_id = t.id AND x.line = 0 FOR UPDATE;
    END IF;

    SELECT array_agg(f.n), array_agg(f.id) INTO places, ids
      FROM (SELECT u.n, f.id
              FROM unnest(hashes, digests)
                      WITH ORDINALITY AS u(hash, sha256, n)
             CROSS JOIN LATERAL (SELECT xet.hub_hash(u.hash) AS hash
                                 OFFSET 0) k
             CROSS JOIN LATERAL (
                       SELECT f.id
                         FROM xet.files f
                        CROSS JOIN LATERAL (
                                  SELECT FROM xet.repo_files rf
                                   WHERE rf.repo_id = source
                                     AND rf.file_id = f.id
                                  OFFSET 0 FOR KEY SHARE) rf
                        WHERE f.hash = u.hash
                          AND f.sha256_proven AND f.sha256 = u.sha256
                          AND (SELECT p.hash FROM xet.hub_paths p
                                WHERE p.repo_id = r.id
                                  AND p.hash >= k.hash AND p.hash <= k.hash
                                ORDER BY p.hash
                                LIMIT 1) IS NOT NULL
                       OFFSET 0 FOR KEY SHARE OF f
                   ) f) f;

    IF source <> target THEN
        INSERT INTO xet.repo_files AS rf (repo_id, file_id, subject, sha256)
        SELECT target, u.id, sha256($11), u.sha256
          FROM (SELECT DISTINCT f.id, digests[f.n] AS sha256
                  FROM unnest(places, ids) AS f(n, id)) u
         ORDER BY u.id
        ON CONFLICT (file_id, repo_id)
           DO UPDATE SET sha256 = excluded.sha256;

        -- what no commit takes after all is let go of

        INSERT INTO xet.hub_loose AS l (repo_id, file_id)
        SELECT DISTINCT target, u.id FROM unnest(ids) AS u(id)
         ORDER BY u.id
        ON CONFLICT ON CONSTRAINT hub_loose_pkey
           DO UPDATE SET since = excluded.since;

        SELECT sum(f.size) INTO n
          FROM (SELECT DISTINCT u.id FROM unnest(ids) AS u(id)) u
         CROSS JOIN LATERAL (SELECT f.size
                               FROM xet.repo_files rf
                               JOIN xet.files f ON f.id = rf.file_id
                              WHERE rf.repo_id = target AND rf.file_id = u.id
                                AND rf.added_at = now()
                              LIMIT 1) f;

        PERFORM xet.quota_hold(false, xet.hub_store_of(t.id), $11, 0,
                               coalesce(n, 0));
    END IF;

    SELECT '{"success":' || (count(*) = 0) || ',"failed":['
           || coalesce(string_agg('{"sha256":"' || encode(u.sha256, 'hex')
                  || '","error":"The repository has no such file"}', ','
                  ORDER BY u.n), '') || ']}'
      INTO body
      FROM unnest(digests) WITH ORDINALITY AS u(sha256, n)
     WHERE u.n <> ALL (coalesce(places, '{}'));
END;
$$;
