-- Functions for files: the terms that readers need, and the callers that may
-- see a file.


-- Two parameters, any_repo and repo, say which files a caller sees.  With
-- any_repo the caller sees the whole store.  Otherwise the caller sees the
-- files of the repo and the files of public repos; the empty name stands for a
-- token without a repo.  Both parameters are always set: NULL grants nothing
-- and is refused.
--
-- Call xet.seen() as EXISTS (SELECT FROM xet.seen(...) OFFSET 0), which
-- PostgreSQL inlines.  A scalar function would not be inlined, and a look-up
-- would cost five times as much.  There is one look-up for the repo's files
-- and one for public files, however many repos have the file.  For a file that
-- does not exist, callers pass id -1, and both look-ups are made: otherwise the
-- response time would reveal files of other users.  OFFSET 0 keeps the planner
-- from hashing all of repo_files for one file: while the table is small, such
-- a plan looks cheap, and the session would cache it.

CREATE FUNCTION xet.seen(file_id bigint, repo text)
    RETURNS SETOF boolean
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT true
     WHERE EXISTS (SELECT FROM xet.repo_files rf
                    WHERE rf.file_id = $1
                      AND rf.repo_id = (SELECT r.id FROM xet.repos r
                                         WHERE r.name = $2)
                   OFFSET 0)
        OR EXISTS (SELECT FROM xet.repo_files rf
                    WHERE rf.public_file = $1
                   OFFSET 0);
$$;


-- Returns a row if a caller of the Hub may read a file by its path in a public
-- repo of the Hub: a commit of the repo has the file, or the bucket has it.
-- The four oldest repos that have the file are checked; others cannot displace
-- these.  For a file that no public repo has, there is one look-up.

CREATE FUNCTION xet.hub_listed(file_id bigint)
    RETURNS SETOF boolean
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT true
      FROM (SELECT rf.repo_id
              FROM xet.repo_files rf
             WHERE rf.listed_file = ANY (ARRAY[$1])
             ORDER BY rf.listed_file, rf.repo_id
             LIMIT 4) rf
     CROSS JOIN LATERAL (SELECT substr(x.name, 6)::bigint AS store
                           FROM xet.repos x
                          WHERE x.id = rf.repo_id AND x.listed
                         OFFSET 0) x
     CROSS JOIN LATERAL (SELECT h.id FROM xet.hub_repos h
                          WHERE h.store = x.store AND NOT h.private
                         OFFSET 0) h
     WHERE EXISTS (SELECT FROM xet.hub_paths p
                    WHERE p.repo_id = h.id
                      AND p.hash = (SELECT xet.hub_hash(f.hash)
                                      FROM xet.files f WHERE f.id = $1)
                   OFFSET 0)
     LIMIT 1;
$$;


-- Returns a row if a caller may refer to the chunks of a file in shards, and
-- gets them in dedup answers.  Tokens for repos of the Hub are issued by the
-- Hub only.

CREATE FUNCTION xet.usable(file_id bigint, repo text)
    RETURNS SETOF boolean
    LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
    SELECT true
     WHERE EXISTS (SELECT FROM xet.seen($1, $2) OFFSET 0)
        OR $2 LIKE '\_hub/%'
           AND EXISTS (SELECT FROM xet.hub_listed($1) OFFSET 0);
$$;


-- Returns the size of a file and the packed terms that overlap bytes
-- first_byte..last_byte, in order, in up to 8 rows.  To get further terms, the
-- caller calls again with the end of the last row as first_byte.  For a known
-- file there is always a row; packed is NULL if no terms overlap.  A usual file
-- takes one index probe.

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
               THEN EXISTS (SELECT FROM xet.seen(coalesce(f.id, -1),
                                           file_terms.repo)
                            OFFSET 0)
           END;
$$;


-- Opens a file for a reader: returns its size, its SHA-256 if that is proven,
-- and up to 256 packed terms around a byte.  For a usual file, returns all
-- terms, whatever the byte.

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
               THEN EXISTS (SELECT FROM xet.seen(coalesce(f.id, -1),
                                           file_open.repo)
                            OFFSET 0)
           END;
$$;


-- Opens several files for a reader that reads them like one file: returns the
-- sum of their sizes, and their packed terms in the order of the array.
-- Returns no row if the caller may not see one of the files, or if one has
-- more terms than a row can have.

CREATE FUNCTION xet.files_open(files bytea[], any_repo boolean, repo text)
    RETURNS TABLE (size bigint, sha256 bytea, first_offset bigint,
                   packed bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT sum(f.size)::bigint, NULL::bytea, 0::bigint,
           string_agg(f.packed, ''::bytea ORDER BY w.n)
      FROM unnest(files) WITH ORDINALITY AS w(hash, n)
      LEFT JOIN LATERAL (SELECT f.id, f.size, f.packed
                           FROM xet.files f
                          WHERE f.hash = w.hash
                         OFFSET 0) f ON true
     WHERE CASE
               WHEN files_open.repo IS NULL THEN false
               WHEN any_repo THEN f.id IS NOT NULL
               WHEN NOT any_repo
               THEN EXISTS (SELECT FROM xet.seen(coalesce(f.id, -1),
                                                 files_open.repo)
                            OFFSET 0)
           END
    HAVING count(f.packed) = cardinality(files);
$$;


-- Returns the packed terms of several whole files in one statement, in up to 8
-- rows, starting at byte first_byte of file first_file.  n is the index of the
-- file in the array.  A file that the caller may not see returns no row.

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
               THEN EXISTS (SELECT FROM xet.seen(coalesce(f.id, -1),
                                           files_terms.repo)
                            OFFSET 0)
           END
     ORDER BY w.n, 3
     LIMIT 8;
$$;


-- Deletes a file from the store.  Readers no longer find the file, since its
-- hash is then NULL.  Returns 0 if there is no such file, and 1 if the file is
-- deleted.  Returns 2, and changes nothing, if repos have the file: a caller
-- with write access to the store may have no access to these repos.

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

    -- a separate statement, which sees everything committed before the lock

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


-- Lists the files of a repo, or all files if any_repo is set; oldest first.

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


-- Records the SHA-256 of files that were read completely; each replaces a
-- claimed one.  Returns the number of files whose digest was not proven before.
-- All sessions lock the rows in the same order, as in xet.shard_known();
-- otherwise two sessions could deadlock.

CREATE FUNCTION xet.files_prove(files bytea[], digests bytea[])
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    n  bigint;
BEGIN
    IF cardinality(files) > 1 THEN
        PERFORM FROM xet.files f
          WHERE f.hash = ANY (files) AND NOT f.sha256_proven
          ORDER BY f.id
            FOR NO KEY UPDATE;
    END IF;

    UPDATE xet.files f SET sha256 = d.digest, sha256_proven = true
      FROM (SELECT DISTINCT ON (k.id) k.id, u.digest
              FROM unnest($1, $2) AS u(file, digest)
             CROSS JOIN LATERAL (SELECT k.id FROM xet.files k
                                  WHERE k.hash = u.file
                                 OFFSET 0) k
             ORDER BY k.id
            OFFSET 0) d
     WHERE f.id = d.id AND NOT f.sha256_proven;

    GET DIAGNOSTICS n = ROW_COUNT;

    RETURN n;
END;
$$;


-- Releases the files that were registered without a repo, so that the collector
-- removes files that are in no repo.  Returns the number of released files.
-- Use this function if every location of the store has "xet_access repo" now,
-- and some locations had another access before.

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
