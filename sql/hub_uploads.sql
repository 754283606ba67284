-- Functions for uploads to a Hub's repo: they stage the operations of a
-- commit, prove the SHA-256 of files, and sweep files that no commit used.


-- Removes files from repos if their rows in xet.hub_loose are older than age,
-- no path refers to them, and the LFS API has not acknowledged them.  Up to
-- "most" entries are locked first: a commit of such a file locks its entry,
-- too, and the statement after the lock sees that commit.  Returns the number
-- of reviewed rows.  Also deletes old staged rows.

CREATE FUNCTION xet.hub_sweep(age interval, most integer)
    RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    repos  bigint[];
    files  bigint[];
    hides  boolean;
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

    -- the join with xet.hub_repos skips other repos: an issuer of tokens may
    -- have chosen a name like "_hub/1" for a repo that is not on the Hub

    WITH gone AS (
        DELETE FROM xet.repo_files rf
         USING unnest(repos, files) AS d(repo_id, file_id), xet.repos r,
               xet.files f, xet.hub_repos h
         WHERE rf.repo_id = d.repo_id AND rf.file_id = d.file_id
           AND NOT rf.kept
           AND r.id = d.repo_id AND f.id = d.file_id
           AND h.store = CASE WHEN r.name ~ '^_hub/[0-9]{1,18}$'
                              THEN substr(r.name, 6)::bigint END
           AND NOT EXISTS (SELECT FROM xet.hub_paths p
                            WHERE p.repo_id = h.id
                              AND p.hash = xet.hub_hash(f.hash))
        RETURNING coalesce(rf.public_file, rf.listed_file) AS shown
    )
    SELECT bool_or(g.shown IS NOT NULL) INTO hides FROM gone g;

    DELETE FROM xet.hub_loose l
     USING unnest(repos, files) AS d(repo_id, file_id)
     WHERE l.repo_id = d.repo_id AND l.file_id = d.file_id;

    GET DIAGNOSTICS n = ROW_COUNT;

    -- delete the rows of files that are no longer in the repo

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

    -- delete the files of repos that were never created

    FOR place IN SELECT r.name
                   FROM xet.repos r
                  WHERE r.name ~ '^_hub/new/[0-9a-f]{32}$'
                    AND r.created_at < now() - age
                  LIMIT 100
                    FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM xet.repo_delete(place);
    END LOOP;

    IF hides THEN
        PERFORM xet.hidings_add();
    END IF;

    RETURN n;
END;
$$;


-- Raises XT004 if files that the caller will upload exceed a quota whatever
-- their content is.  Files of equal size and sample may be equal, and count
-- once; files of a size that the repo has may be there already, and do not
-- count.  Of a repo with more files than this function reads, only larger files
-- than its sum are surely new.  Stored bytes depend on the content: they exceed
-- a quota if nothing is left of it.  weight is the size of new rows.

CREATE FUNCTION xet.hub_fits(uploads text, subject bytea, sizes bigint[],
    samples bigint[], weight bigint)
    RETURNS void
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    reads   CONSTANT integer := 10000;
    has     bigint[];
    added   bigint;
    row_id  bigint := (SELECT s.id FROM xet.repos s WHERE s.name = $1);
    room    record;
BEGIN
    PERFORM xet.quota_try($1, row_id, $2, 0, 0, $5);

    SELECT min(u.stored_max - u.stored) AS stored,
           min(u.logical_max - u.logical) AS logical,
           max(u.logical) FILTER (WHERE u.kind = 'repo') AS used
      INTO room
      FROM xet.usage_get(false, $1, $2) u;

    added := xet.hub_fresh($3, $4, '{}', 0);

    IF added = 0 OR (coalesce(room.stored, 1) > 0
                     AND added <= coalesce(room.logical, added))
    THEN
        RETURN;
    END IF;

    has := ARRAY(SELECT f.size
                   FROM (SELECT rf.file_id FROM xet.repo_files rf
                          WHERE rf.repo_id = row_id
                          LIMIT reads + 1) w
                  CROSS JOIN LATERAL (SELECT g.size FROM xet.files g
                                       WHERE g.id = w.file_id LIMIT 1) f);

    added := xet.hub_fresh($3, $4, has, CASE WHEN cardinality(has) > reads
                                             THEN room.used ELSE 0 END);

    PERFORM xet.quota_try($1, row_id, $2,
                          CASE WHEN added > 0 AND room.stored <= 0
                               THEN 1 ELSE 0 END, added);
END;
$$;


-- Returns the sum of the sizes over "above" that are not in "has".

CREATE FUNCTION xet.hub_fresh(sizes bigint[], samples bigint[], has bigint[],
    above bigint)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE
AS $$
    SELECT least(coalesce(sum(w.size), 0), 9223372036854775807)::bigint
      FROM (SELECT DISTINCT u.size, u.sample
              FROM unnest($1, $2) AS u(size, sample)
             WHERE u.size > $4) w
      LEFT JOIN (SELECT DISTINCT h.size FROM unnest($3) AS h(size)) t
             ON t.size = w.size
     WHERE t.size IS NULL;
$$;


-- Returns the file .gitignore of a revision, and the name in xet.repos that it
-- belongs to; no row if the revision has no such file, or an empty one.

CREATE FUNCTION xet.hub_ignores(asked xet.hub_asked, rev text)
    RETURNS TABLE (store text, hash bytea)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r  record;
BEGIN
    r := xet.hub_open(asked, true, rev, '');

    IF r.status <> 200 THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT r.uploads, xet.hub_hash(h.hash)
      FROM xet.hub_at(r.id, r.lines, r.seqs, '.gitignore') h
     WHERE h.size > 0;
END;
$$;


-- Returns how a client must send the files of a commit: empty files in the
-- commit, all other files before it, as LFS files.  ignored is 1 for files that
-- a ".gitignore" excludes from the commit.  body has the entries of the
-- response, each with the current oid of its path.  code is the commit, which
-- the caller passes as rev for the other paths of the request.
-- The first call has the sizes of all files in "all_sizes", and checks quotas.
-- In later calls all_sizes is NULL, since the response has already begun.

CREATE FUNCTION xet.hub_preupload(asked xet.hub_asked, rev text, paths bytea[],
    sizes bigint[], ignored bigint[], all_sizes bigint[], samples bigint[],
    subject bytea DEFAULT NULL)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r       record;
    body    text;
    weight  bigint;
BEGIN
    r := xet.hub_open(asked, true, rev, '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    SELECT coalesce(string_agg('{"path":' || to_json(u.path)
               || ',"uploadMode":"'
               || CASE WHEN u.size = 0 THEN 'regular' ELSE 'lfs' END
               || '","shouldIgnore":' || (u.ignored = 1)
               || CASE WHEN h.hash IS NULL THEN ''
                       WHEN u.size = 0 AND h.size = 0 THEN
                            ',"oid":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"'
                       WHEN u.size = 0 OR h.size = 0 THEN ''
                       ELSE ',"oid":"' || encode(h.sha256, 'hex') || '"' END
               || '}', ',' ORDER BY u.n), ''),
           sum(xet.hub_weight(u.path))
               FILTER (WHERE u.ignored = 0 AND h.size IS DISTINCT FROM u.size)
      INTO body, weight
      FROM (SELECT convert_from(w.path, 'UTF8') AS path, w.size, w.ignored,
                   w.n
              FROM unnest(paths, sizes, ignored) WITH ORDINALITY
                     AS w(path, size, ignored, n)) u
      LEFT JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs, u.path) h ON true;

    IF all_sizes IS NOT NULL AND EXISTS (SELECT FROM xet.quotas) THEN
        PERFORM xet.hub_fits(r.uploads, subject, all_sizes, samples,
                             coalesce(weight, 0));
    END IF;

    RETURN xet.hub_says(200, encode(r.oid, 'hex'), NULL, body, r.more);
END;
$$;


-- Returns the maximum size of the staged operations of one caller, in bytes.
-- It allows two commits of the largest size, 100,000 paths of 1 KiB each.

CREATE FUNCTION xet.hub_staged_most()
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 268435456;
$$;


-- Stages some operations of a commit.  Returns 1, or 0 if too many bytes are
-- staged for the caller.  All callers without a name share one limit.

CREATE FUNCTION xet.hub_stage(upload bytea, seq integer, ops integer[],
    paths bytea[], sizes bigint[], hashes bytea[], sha256 bytea[],
    mtimes bigint[], types bytea[], sources bytea[],
    subject bytea DEFAULT NULL)
    RETURNS integer
    LANGUAGE plpgsql
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

    -- a retry with rows that are already staged is accepted

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


-- Drops the staged rows of an abandoned commit.  If the commit was to create a
-- repo, also drops the files that were uploaded for this repo
-- (xet.hub_nursery()).  A commit in progress locks its staged rows
-- (xet.hub_whole()): this function either runs before that commit, or finds no
-- rows.  bytes is the number of bytes that were read in vain, from a file whose
-- SHA-256 was being computed for the commit.

CREATE FUNCTION xet.hub_unstage(upload bytea, bytes bigint DEFAULT 0)
    RETURNS integer
    LANGUAGE plpgsql
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


-- Returns all staged operations of a commit, in order.

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


-- Returns a file of a repo for which an upload claimed this SHA-256,
-- preferably a file whose SHA-256 is proven.  PostgreSQL inlines this function
-- into the calling statement.

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


-- Returns the files with the given SHA-256 that were uploaded to the repo.

CREATE FUNCTION xet.hub_known(store text, digests bytea[])
    RETURNS TABLE (sha256 bytea, hash bytea, proven boolean)
    LANGUAGE sql STABLE
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


-- Keeps the files of a repo that have these SHA-256, even if no path refers to
-- them, and returns the SHA-256 of these files.  If claimed is true, the
-- SHA-256 need not be proven.  If a sweep has locked one of these files, this
-- function waits; it does not return files that the sweep removes.

CREATE FUNCTION xet.hub_keep(store text, digests bytea[], claimed boolean)
    RETURNS TABLE (sha256 bytea)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    repo   bigint;
    file   bigint;
    found  bytea[];
    ids    bigint[];
    files  bigint[];
BEGIN
    SELECT r.id INTO repo FROM xet.repos r WHERE r.name = $1;

    SELECT array_agg(u.sha256 ORDER BY u.i), array_agg(f.id ORDER BY u.i),
           array_agg(DISTINCT f.id ORDER BY f.id)
      INTO found, ids, files
      FROM unnest($2) WITH ORDINALITY AS u(sha256, i)
     CROSS JOIN LATERAL (SELECT c.id, c.proven
                           FROM xet.hub_claimed(repo, u.sha256) c
                          LIMIT 1) f
     WHERE f.proven = u.sha256 OR ($3 AND f.proven IS NULL);

    IF ids IS NULL THEN
        RETURN;
    END IF;

    FOREACH file IN ARRAY files LOOP
        UPDATE xet.repo_files rf SET kept = true
         WHERE rf.repo_id = repo AND rf.file_id = file AND NOT rf.kept;
    END LOOP;

    RETURN QUERY
    SELECT u.sha256
      FROM unnest(found, ids) WITH ORDINALITY AS u(sha256, id, i)
     WHERE EXISTS (SELECT FROM xet.repo_files k
                    WHERE k.repo_id = repo AND k.file_id = u.id AND k.kept
                   OFFSET 0)
     ORDER BY u.i;
END;
$$;


-- Returns the indexes, from 0, of those SHA-256 for which the repo has a file
-- with a proven digest.  Files that no path refers to are kept for another
-- day, as if they were uploaded now.  If a sweep has locked one of these
-- files, this function waits; it does not find files that the sweep removes.

CREATE FUNCTION xet.hub_here(store text, digests bytea[])
    RETURNS TABLE (n integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    repo  bigint;
    file  bigint;
    ids   bigint[];
BEGIN
    SELECT r.id INTO repo FROM xet.repos r WHERE r.name = $1;

    SELECT array_agg(DISTINCT f.id ORDER BY f.id) INTO ids
      FROM unnest($2) AS u(sha256)
     CROSS JOIN LATERAL (SELECT c.id, c.proven
                           FROM xet.hub_claimed(repo, u.sha256) c
                          LIMIT 1) f
     WHERE f.proven = u.sha256;

    IF ids IS NULL THEN
        RETURN;
    END IF;

    FOREACH file IN ARRAY ids LOOP
        UPDATE xet.hub_loose l SET since = now()
         WHERE l.repo_id = repo AND l.file_id = file;
    END LOOP;

    RETURN QUERY
    SELECT u.i::integer - 1
      FROM unnest($2) WITH ORDINALITY AS u(sha256, i)
     CROSS JOIN LATERAL (SELECT c.proven
                           FROM xet.hub_claimed(repo, u.sha256) c
                          LIMIT 1) f
     WHERE f.proven = u.sha256;
END;
$$;


-- Counts bytes that were read in vain for an owner: the claimed SHA-256 was
-- false, or the commit was abandoned.  The count starts at 0 each day.

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


-- Returns true if too many bytes were read in vain today for an owner: more
-- than all bytes that the owner has uploaded, plus one GiB.

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


-- Returns true if an operation of a commit is known to be wrong: its file was
-- not uploaded to the repo, or the size or SHA-256 differs from the operation.
-- hash, has and proven are those of xet.hub_claimed().  PostgreSQL inlines this
-- function into the calling statement.

CREATE FUNCTION xet.hub_claim_bad(size bigint, sha256 bytea, hash bytea,
    has bigint, proven bytea)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN $1 = 0 THEN $2 <> sha256('')
                ELSE $3 IS NULL OR $1 <> $4 OR $5 <> $2 END;
$$;


-- Returns the first known error of the files of a commit, or NULL.

CREATE FUNCTION xet.hub_claims_bad(repo bigint, upload bytea)
    RETURNS text
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    bad  text;
BEGIN
    SELECT CASE WHEN f.hash IS NULL AND o.size IS DISTINCT FROM 0
                THEN o.path || ' was not uploaded to this repository, or has'
                     ' changed during the upload'
                WHEN f.proven <> o.sha256 OR o.size = 0
                THEN o.path || ' does not have the SHA-256 named in the commit'
                ELSE o.path || ' does not have the size named in the commit: it'
                     ' may have changed during the upload'
                END
      INTO bad
      FROM xet.hub_staged_ops($2) o
      LEFT JOIN LATERAL (SELECT * FROM xet.hub_claimed($1, o.sha256)
                          LIMIT 1) f ON true
     WHERE o.op = 2
       AND xet.hub_claim_bad(o.size, o.sha256, f.hash, f.size, f.proven)
     ORDER BY o.n
     LIMIT 1;

    RETURN bad;
END;
$$;


-- Returns up to 4096 files of a commit whose SHA-256 is not proven yet.  The
-- caller must read these files now; until then, other requests do not get them.
-- Returns no row if all are proven.  The status of the rows is 200 if these are
-- all of the files: if the digest of each is the claimed one, the commit needs
-- no other look at its claims.  The status is 206 if there are more files, and
-- the caller must call this function again later.  Otherwise there is one row:
-- 400 or 429 and an error, or 202 if other requests are reading all remaining
-- files; after 202, the caller must retry.  The files are in the order of their
-- registration, so that neighbours are in the same xorbs; packed is the size of
-- a file's terms, 0 if they are not in its row.
--
-- A file is read once, whatever SHA-256 is claimed for it: the computed
-- SHA-256 is then known for all repos.  An owner for whom too many bytes were
-- read in vain has to wait for the next day.
--
-- The claims are read once, since the look at each takes as long as all else
-- that a small file needs.  If something changes after it, xet.hub_puts()
-- refuses the commit: it takes only files with a proven SHA-256.

CREATE FUNCTION xet.hub_claims(store text, upload bytea, subject bytea)
    RETURNS TABLE (status integer, message text, hash bytea, sha256 bytea,
                   size bigint, packed integer)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    most    CONSTANT integer := 4096;
    repo    bigint;
    whose   bytea;
    bad     boolean;
    ids     bigint[];
    claims  bytea[];
    mine    bigint[];
BEGIN
    SELECT r.id INTO repo FROM xet.repos r WHERE r.name = $1;

    whose := coalesce(sha256($3), int8send(repo));

    SELECT bool_or(c.bad), array_agg(c.id), array_agg(c.sha256)
      INTO bad, ids, claims
      FROM (SELECT DISTINCT ON (k.bad, k.id) k.bad, k.id, k.sha256
              FROM (SELECT f.id, o.sha256,
                           xet.hub_claim_bad(o.size, o.sha256, f.hash, f.size,
                                             f.proven) IS TRUE AS bad,
                           f.hash IS NOT NULL AND f.proven IS NULL
                               AND o.size IS DISTINCT FROM 0 AS due
                      FROM xet.hub_staged_ops($2) o
                      LEFT JOIN LATERAL (SELECT *
                                           FROM xet.hub_claimed(repo, o.sha256)
                                          LIMIT 1) f ON true
                     WHERE o.op = 2
                    OFFSET 0) k
             WHERE k.bad OR k.due
             ORDER BY k.bad DESC, k.id
             LIMIT most) c;

    IF ids IS NULL THEN
        RETURN;
    END IF;

    IF bad THEN
        message := xet.hub_claims_bad(repo, $2);
        status := CASE WHEN message IS NULL THEN 202 ELSE 400 END;
        RETURN NEXT;
        RETURN;
    END IF;

    IF xet.hub_vain_much(whose) THEN
        status := 429;
        message := 'Too many bytes were read today for commits with a wrong'
                   ' SHA-256 or commits that were abandoned; try again'
                   ' tomorrow';
        RETURN NEXT;
        RETURN;
    END IF;

    -- a request may continue to read after its row has expired: its result is
    -- still valid

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
    SELECT CASE WHEN cardinality(ids) < most
                     AND cardinality(mine) = cardinality(ids)
                THEN 200 ELSE 206 END,
           NULL::text, k.hash, c.sha256, k.size,
           coalesce(octet_length(k.packed), 0)
      FROM unnest(ids, claims) AS c(id, sha256)
     CROSS JOIN LATERAL (SELECT * FROM xet.files k
                          WHERE k.id = c.id
                         OFFSET 0) k
     WHERE c.id = ANY (mine) AND k.hash IS NOT NULL
     ORDER BY c.id;

    IF NOT FOUND THEN
        status := 202;
        RETURN NEXT;
    END IF;
END;
$$;


-- Records the SHA-256 that a server has computed from the bytes of files.
-- They are proven for all repos that have the files.  If the repo "store" has
-- claimed another SHA-256 for a file, the claim was false and is replaced.  The
-- size of the file is then added to the bytes that were read in vain for the
-- owner who is recorded in xet.hub_proofs.  Returns the number of true claims;
-- without a repo, returns NULL.

CREATE FUNCTION xet.hub_proven(store text, files bytea[], digests bytea[])
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    place  bigint;
    ids    bigint[];
    lies   bigint[];
    n      bigint;
BEGIN
    PERFORM xet.files_prove(files, digests);

    SELECT r.id INTO place FROM xet.repos r WHERE r.name = $1;

    SELECT array_agg(f.id),
           array_agg(f.id) FILTER (WHERE rf.sha256 IS DISTINCT FROM u.digest
                                         AND rf.file_id IS NOT NULL)
      INTO ids, lies
      FROM unnest(files, digests) AS u(hash, digest)
     CROSS JOIN LATERAL (SELECT f.id FROM xet.files f
                          WHERE f.hash = u.hash
                          LIMIT 1) f
      LEFT JOIN LATERAL (SELECT w.file_id, w.sha256 FROM xet.repo_files w
                          WHERE w.file_id = f.id AND w.repo_id = place
                         OFFSET 0) rf ON true;

    IF lies IS NOT NULL THEN

        -- all sessions lock the rows in the same order; otherwise two sessions
        -- could deadlock

        PERFORM FROM xet.repo_files rf
          WHERE rf.repo_id = place AND rf.file_id = ANY (lies)
          ORDER BY rf.file_id
            FOR UPDATE;

        UPDATE xet.repo_files rf SET sha256 = d.digest
          FROM (SELECT f.id, u.digest
                  FROM unnest(files, digests) AS u(hash, digest)
                 CROSS JOIN LATERAL (SELECT f.id FROM xet.files f
                                      WHERE f.hash = u.hash
                                      LIMIT 1) f
                OFFSET 0) d
         WHERE rf.repo_id = place AND rf.file_id = d.id AND d.id = ANY (lies);
    END IF;

    IF store IS NULL THEN
        lies := ids;
    END IF;

    WITH read AS (
        DELETE FROM xet.hub_proofs h WHERE h.file_id = ANY (ids) RETURNING h.*
    )
    SELECT count(xet.hub_vain_add(v.owner, v.bytes)) INTO n
      FROM (SELECT p.owner, sum(p.size)::bigint AS bytes
              FROM read p
             WHERE p.file_id = ANY (lies)
             GROUP BY p.owner
             ORDER BY p.owner
            OFFSET 0) v;

    RETURN CASE WHEN store IS NOT NULL
                THEN coalesce(cardinality(ids), 0)
                     - coalesce(cardinality(lies), 0)
           END;
END;
$$;


-- Adds files of one repo to another repo, as if they had been uploaded to the
-- other repo, so that its commits may name the files.  A file is added only if
-- a commit of the first repo refers to it, and if its SHA-256 is proven and
-- equals the requested one.  The caller must have the right to read the first
-- repo and to write to the other repo.

CREATE FUNCTION xet.hub_duplicate(asked xet.hub_asked, to_kind integer,
    to_owner text, to_name text, subject bytea, hashes bytea[],
    digests bytea[])
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
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
    body     text;
BEGIN
    r := xet.hub_find(asked, false);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    asked.kind := to_kind;
    asked.owner := to_owner;
    asked.name := to_name;
    t := xet.hub_find(asked, true);

    -- the body names the repo, so the client can't be redirected

    IF t.status = 307 THEN
        asked.owner := split_part(t.more, '/', 1);
        asked.name := split_part(t.more, '/', 2);
        t := xet.hub_find(asked, true);
    END IF;

    IF t.status <> 200 THEN
        RETURN xet.hub_says(t.status, t.code, t.message);
    END IF;

    -- this lock serializes the statement with a deletion of one of the repos

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
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    -- a concurrent batch of operations of this bucket (xet.hub_batch()) adds
    -- files in another order; this lock, which it also takes, prevents a
    -- deadlock

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
        SELECT target, u.id, sha256($5), u.sha256
          FROM (SELECT DISTINCT f.id, digests[f.n] AS sha256
                  FROM unnest(places, ids) AS f(n, id)) u
         ORDER BY u.id
        ON CONFLICT (file_id, repo_id)
           DO UPDATE SET sha256 = excluded.sha256;

        -- xet.hub_sweep() later removes the files that no commit uses

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

        PERFORM xet.quota_hold(false, xet.hub_store_of(t.id), $5, 0,
                               coalesce(n, 0));
    END IF;

    SELECT '{"success":' || (count(*) = 0) || ',"failed":['
           || coalesce(string_agg('{"sha256":"' || encode(u.sha256, 'hex')
                  || '","error":"The repository has no such file"}', ','
                  ORDER BY u.n), '') || ']}'
      INTO body
      FROM unnest(digests) WITH ORDINALITY AS u(sha256, n)
     WHERE u.n <> ALL (coalesce(places, '{}'));

    RETURN xet.hub_says(200, body => body, more => r.more);
END;
$$;


-- Returns a file that the caller may name by its hash; no row if there is no
-- such file.  If source is NULL, the file must be in the repo.  Otherwise
-- source is another repo, as "kind/owner/name", that the caller may read; then
-- the file is added to this repo for the subject.  added is the number of
-- added bytes.  The file's entry is locked until the commit.

CREATE FUNCTION xet.hub_named(target bigint, asked xet.hub_asked,
    subject bytea, hash bytea, source text)
    RETURNS TABLE (id bigint, size bigint, added bigint)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    r     record;
    f     record;
    from_repo  bigint := target;
BEGIN
    IF source IS NOT NULL THEN
        asked.kind := array_position('{model,dataset,space,bucket}'::text[],
                                     split_part(source, '/', 1)) - 1;
        asked.owner := split_part(source, '/', 2);
        asked.name := split_part(source, '/', 3);
        r := xet.hub_find(asked, false);

        from_repo := xet.hub_files_of(r.id);
    END IF;

    SELECT f.id, f.size INTO f
      FROM xet.files f
      JOIN xet.repo_files rf ON rf.file_id = f.id AND rf.repo_id = from_repo
     WHERE f.hash = $4
       FOR KEY SHARE OF f, rf;

    IF f.id IS NULL THEN
        RETURN;
    END IF;

    added := 0;

    IF from_repo <> target THEN
        INSERT INTO xet.repo_files AS rf (repo_id, file_id, subject)
        VALUES (target, f.id, sha256($3))
        ON CONFLICT (file_id, repo_id) DO UPDATE SET repo_id = rf.repo_id
        RETURNING CASE WHEN rf.xmax = 0 THEN f.size ELSE 0 END INTO added;

        -- xet.hub_sweep() later removes the files that the batch does not use

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
