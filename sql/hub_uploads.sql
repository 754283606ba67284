-- What is uploaded to a Hub's repo, from its operations to the proof of its
-- SHA-256, and to the sweep of what no commit took.


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


-- How the files of an upload are to be sent: all but empty ones before the
-- commit, as LFS files are; and what of each there is already.  The entries of
-- the answer, and in code the commit, which further paths of the same request
-- are looked up in.

CREATE FUNCTION xet.hub_preupload(asked xet.hub_asked, rev text, paths bytea[],
    sizes bigint[])
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r     record;
    body  text;
BEGIN
    r := xet.hub_open(asked, true, rev, '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

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
      LEFT JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs, u.path) h ON true;

    RETURN xet.hub_says(200, encode(r.oid, 'hex'), NULL, body, r.more);
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
AS $$
    SELECT CASE WHEN f.hash IS NULL AND o.size IS DISTINCT FROM 0
                THEN o.path || ' was not uploaded to this repository'
                WHEN f.proven <> o.sha256 OR o.size = 0
                THEN o.path || ' does not have the SHA-256 named in the commit'
                ELSE o.path || ' does not have the size named in the commit'
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
        message := 'Too many bytes were read today for commits with a wrong'
                   ' SHA-256 or commits that were abandoned; try again'
                   ' tomorrow';
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


-- Files of a repo become files of another one, as if they had been uploaded to
-- it, so that a commit there may name them: those that a commit of this one
-- leads to, and that have the SHA-256 which is asked for because somebody has
-- computed it.  Who asks may read this repo and write to the other one.

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

    -- nobody can be sent to where a body leads

    IF t.status = 307 THEN
        asked.owner := split_part(t.more, '/', 1);
        asked.name := split_part(t.more, '/', 2);
        t := xet.hub_find(asked, true);
    END IF;

    IF t.status <> 200 THEN
        RETURN xet.hub_says(t.status, t.code, t.message);
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
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
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
        SELECT target, u.id, sha256($5), u.sha256
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


-- A file that may be named by its hash: one of the uploads to a repo, or of
-- another repo ("kind/owner/name") that the caller may read, which becomes a
-- file of this one, too, by a subject; added: how many bytes that is more than
-- it had.  Its place stays until the commit.

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
