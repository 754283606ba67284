-- Functions that apply a batch of operations to a bucket; a bucket has no
-- commits.


-- The following functions are parts of xet.hub_batch() for one operation, and
-- run with the settings of xet.hub_batch().
--
-- Returns the size of a file that an operation puts into a bucket.  added is
-- the number of bytes that are new in the repo.  If the file can't be put at
-- its path, bad is the reason.

CREATE FUNCTION xet.hub_bucket_file(repo bigint, target bigint,
    asked xet.hub_asked, subject bytea, path text, hash bytea, source text,
    OUT size bigint, OUT added bigint, OUT bad text)
    LANGUAGE plpgsql
AS $$
BEGIN
    IF hash = decode(repeat('00', 32), 'hex') THEN
        size := 0;

    ELSE
        SELECT k.size, k.added
          INTO hub_bucket_file.size, hub_bucket_file.added
          FROM xet.hub_named(target, asked, subject, hash, source) k;

        IF NOT FOUND THEN
            bad := 'no such file was uploaded';
        END IF;
    END IF;

    IF (SELECT p.hash IS NULL
          FROM xet.hub_paths p
         WHERE p.repo_id = $1 AND p.line = 0 AND p.path = $5
         ORDER BY p.since DESC
         LIMIT 1)
       OR EXISTS (SELECT FROM xet.hub_above($5) AS u
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


-- Removes the file at a path from a bucket.  files is 1 if there was a file,
-- else 0; bytes is its size; subject is the user who put it into the bucket.
-- The file is reviewed a day later, since another path may refer to it.

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


-- Removes folders that have become empty after paths were deleted, deepest
-- first.  Returns the change of the metadata of the subject "mine"; for other
-- subjects, this function counts the change itself.  Callers must pass all
-- paths in one call: rows that this transaction has deleted are still in the
-- index, and each call scans these rows again for each folder.

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


-- Applies the staged operations to a bucket, one by one; each operation is
-- done or reported as failed.  The response replaces the staged rows until the
-- caller drops it, so that a retry of the statement finds the response.

CREATE FUNCTION xet.hub_batch(asked xet.hub_asked, upload bytea,
    batches integer, subject bytea DEFAULT NULL, most integer DEFAULT 500000)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
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
    bad      text;
    status   integer;
    body     text;
BEGIN
    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    PERFORM FROM xet.hub_lines x
      WHERE x.repo_id = r.id AND x.line = 0 FOR UPDATE;

    -- a retry gets the recorded response

    SELECT s.sizes[1], s.paths[1] INTO status, body
      FROM xet.hub_staged s
     WHERE s.upload = $2 AND s.seq = -1;

    IF FOUND THEN
        RETURN xet.hub_says(status, body => body, more => r.more);
    END IF;

    PERFORM xet.hub_whole(upload, batches);

    SELECT coalesce(array_agg(DISTINCT s.path), '{}') INTO paths
      FROM xet.hub_staged_ops($2) s;

    above := xet.hub_folders(paths, most);
    bad := xet.hub_too_many(cardinality(paths), cardinality(above), most);

    IF bad IS NOT NULL THEN
        RETURN xet.hub_says(413, 'too_many_rows', bad);
    END IF;

    target := xet.hub_files_of(r.id);

    FOR o IN SELECT s.*, s.op IN (3, 4) AS puts
               FROM xet.hub_staged_ops($2) s ORDER BY s.n
    LOOP
        n := n + 1;

        IF o.puts THEN
            f := xet.hub_bucket_file(r.id, target, asked, subject, o.path,
                                     o.hash, o.source);
            added := added + coalesce(f.added, 0);

            -- a folder at the path of the file may have become empty

            IF f.bad IS NOT NULL AND cardinality(gone) > 0 THEN
                bytes := bytes + xet.hub_bucket_prune(r.id, gone, mine);
                gone := '{}';

                f := xet.hub_bucket_file(r.id, target, asked, subject, o.path,
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
    UPDATE xet.hub_repos h SET changed_at = now(), bytes = h.bytes + d_bytes
     WHERE h.id = r.id;
    DELETE FROM xet.hub_staged s WHERE s.upload = $2;

    INSERT INTO xet.hub_staged (upload, seq, ops, paths, sizes, hashes, sha256,
                                mtimes, types, sources)
    VALUES ($2, -1, '{}', ARRAY[body], ARRAY[status], '{}', '{}', '{}', '{}',
            '{}');

    PERFORM xet.hub_charge(r.id, mine, bytes);
    PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), subject, 0, added,
                           bytes);

    RETURN xet.hub_says(status, NULL, cardinality(paths) + cardinality(above)
                                      || ' ' || greatest(bytes, 0),
                        body, r.more);
END;
$$;
