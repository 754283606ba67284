-- Functions that commit staged operations to a branch.


-- Returns the error of a request that would write too many rows for paths and
-- for the folders above the paths; NULL if the request is acceptable.  At most
-- "most" rows are allowed, and at most 1000 folders plus eight per path: the
-- number of rows must be in proportion to the request.

CREATE FUNCTION xet.hub_too_many(paths bigint, folders bigint, most bigint)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN paths + folders > most
                THEN 'The operations change more than ' || most::text
                     || ' files and folders; send several commits or batches'
                WHEN folders > 1000 + 8 * paths
                THEN 'The files are in too many folders; send several commits'
                     ' or batches' END;
$$;


-- Checks that all staged rows of an upload still exist, and locks them until
-- the transaction ends.  Returns whether operations delete paths, and whether
-- operations copy paths.  The rows may have been dropped, or an earlier try of
-- the same statement, whose response was lost, may have used them.  Such an
-- upload must not become an empty commit.

CREATE FUNCTION xet.hub_whole(upload bytea, batches integer,
    OUT deletes boolean, OUT copies boolean)
    LANGUAGE plpgsql
AS $$
DECLARE
    n  bigint;
BEGIN
    SELECT count(*), bool_or(5 = ANY (s.ops) OR 6 = ANY (s.ops)),
           bool_or(7 = ANY (s.ops))
      INTO n, deletes, copies
      FROM (SELECT s.ops
              FROM xet.hub_staged s
             WHERE s.upload = $1 AND s.seq >= 0
             ORDER BY s.seq
               FOR UPDATE) s;

    IF n <> batches THEN
        RAISE EXCEPTION 'the operations of the commit were dropped'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- Returns the file at a path at a revision, which a commit copies to another
-- path; no row if there is no file.

CREATE FUNCTION xet.hub_source(repo bigint, rev text, path text)
    RETURNS TABLE (size bigint, sha256 bytea)
    LANGUAGE plpgsql STABLE
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


-- Turns staged operations that copy a path of the repo into operations that put
-- a file.  Returns the first path to copy that is not a file; NULL if all of
-- these paths are files.

CREATE FUNCTION xet.hub_copies(repo bigint, rev text, upload bytea)
    RETURNS text
    LANGUAGE plpgsql
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


-- Returns whether a staged commit conflicts with commits later than "seen",
-- the last commit that its author has seen.  There is a conflict if the later
-- commits changed the file at a path of the staged commit, or files in a
-- folder that the staged commit deletes.

CREATE FUNCTION xet.hub_meets(repo bigint, lines integer[], seqs integer[],
    seen text, upload bytea)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    seen_oid  CONSTANT bytea := xet.hub_oid($1, seen);
    old       record;
BEGIN
    SELECT c.oid, l.lines, l.seqs INTO old
      FROM xet.hub_commit_of($1, seen_oid) c
     CROSS JOIN LATERAL xet.hub_line($1, c.line, c.seq) l;

    RETURN old.oid IS NULL OR EXISTS (
        SELECT FROM xet.hub_staged_ops($5) o
         WHERE xet.hub_hash_at($1, old.lines, old.seqs, o.path)
               IS DISTINCT FROM xet.hub_hash_at($1, $2, $3, o.path)
            OR o.op IN (5, 6)
               AND EXISTS (SELECT h.path, h.hash
                             FROM xet.hub_below($1, $2, $3, o.path, NULL) h
                           EXCEPT
                           SELECT h.path, h.hash
                             FROM xet.hub_below($1, old.lines, old.seqs,
                                                o.path, NULL) h));
END;
$$;


-- Returns the files that a commit deletes, in gone: at most "most" + 1 files.
-- An operation that deletes a file deletes a folder, if its path is one.  bad
-- is a path that the commit deletes and that does not exist, or NULL.

CREATE FUNCTION xet.hub_gone(repo bigint, lines integer[], seqs integer[],
    upload bytea, most bigint, OUT gone text[], OUT bad text)
    LANGUAGE plpgsql STABLE
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
                           OR xet.hub_is_folder($1, $2, $3, o.path)
                   ) h
             LIMIT $5 + 1) d;

    IF cardinality(gone) > $5 THEN
        RETURN;
    END IF;

    -- compares sets: a scan of gone for each operation would take quadratic
    -- time

    SELECT k.path INTO bad
      FROM (
               (SELECT o.path FROM xet.hub_staged_ops($4) o WHERE o.op = 5
                EXCEPT
                SELECT unnest(gone)
                EXCEPT
                SELECT a FROM unnest(gone) AS g, xet.hub_above(g) AS a)
               UNION ALL
               (SELECT o.path FROM xet.hub_staged_ops($4) o WHERE o.op = 6
                EXCEPT
                SELECT a FROM unnest(gone) AS g, xet.hub_above(g) AS a)
           ) k
     LIMIT 1;
END;
$$;


-- Returns the files that a commit writes.  If a path occurs twice, its last
-- operation counts.  A file that is already at its path is omitted.  ids has
-- the ids of the files, NULL for an empty file.  stored is the id of the repo
-- in xet.repos.  Raises XT003 if a file was deleted since the commit was
-- checked.

CREATE FUNCTION xet.hub_puts(repo bigint, stored bigint, lines integer[],
    seqs integer[], upload bytea, gone text[], OUT paths text[],
    OUT hashes bytea[], OUT sizes bigint[], OUT digests bytea[],
    OUT ids bigint[])
    LANGUAGE plpgsql STABLE
    SET enable_material = off
AS $$
DECLARE
    lost  text;
BEGIN
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
                      FROM xet.hub_staged_ops($5) s
                     WHERE s.op IN (2, 5)
                     ORDER BY s.path, s.n DESC) u
              LEFT JOIN LATERAL (
                       SELECT k.* FROM xet.hub_claimed($2, u.sha256) k
                        WHERE u.size IS DISTINCT FROM 0
                          AND k.proven = u.sha256
                        LIMIT 1
                   ) f ON true
             WHERE u.op = 2) o
      LEFT JOIN LATERAL xet.hub_at($1, $3, $4, o.path) h ON true
     WHERE h.hash IS DISTINCT FROM o.hash OR o.hash IS NULL
        OR o.path = ANY (gone);

    IF lost IS NOT NULL THEN
        RAISE EXCEPTION 'a file of the commit was deleted in the meantime'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- Returns a path that would be both a file and a folder after the commit, or
-- NULL.  The commit writes files to the paths of puts, whose folders are
-- above, and deletes the files of gone.

CREATE FUNCTION xet.hub_clash(repo bigint, lines integer[], seqs integer[],
    puts text[], above text[], gone text[])
    RETURNS text
    LANGUAGE plpgsql STABLE
    SET enable_material = off
AS $$
BEGIN
    RETURN (
        (SELECT unnest(puts)
         INTERSECT
         SELECT unnest(above))

        UNION ALL

        -- paths that remain in a folder that becomes a file

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


-- Locks the entries of the files of a commit in xet.repo_files until the end of
-- the transaction.  Raises XT003 if the repo lacks one of the files.

CREATE FUNCTION xet.hub_hold(stored bigint, ids bigint[])
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    IF (SELECT count(*)
          FROM (SELECT FROM unnest(ids) AS u(id)
                 CROSS JOIN LATERAL (SELECT rf.file_id FROM xet.repo_files rf
                                      WHERE rf.repo_id = $1
                                        AND rf.file_id = u.id
                                     OFFSET 0 FOR KEY SHARE) rf
                 WHERE u.id IS NOT NULL) k)
       < (SELECT count(u.id) FROM unnest(ids) AS u(id))
    THEN
        RAISE EXCEPTION 'a file of the commit was deleted in the meantime'
              USING ERRCODE = 'XT003';
    END IF;
END;
$$;


-- Writes the rows of a commit, which becomes the next commit of its line,
-- lines[1]; the other lines are those that it continues (xet.hub_lines).  First
-- ends the valid rows of the changed paths, and of all folders above these
-- paths ("above"): sets their "till" to the new commit.  Then inserts rows for
-- the files at paths, for their folders (files), and for those folders of above
-- that are not empty after the commit.  A row of a continued line can't be
-- ended: if no new row hides it, the commit writes a tombstone that hides it.
-- Returns the weight of all rows that were written (xet.hub_weight()).

CREATE FUNCTION xet.hub_write(repo bigint, lines integer[], seqs integer[],
    ref text, made bytea, changed text[], above text[], files text[],
    paths text[], hashes bytea[], sizes bigint[], digests bytea[])
    RETURNS bigint
    LANGUAGE plpgsql
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
          FROM (SELECT unnest(changed) UNION SELECT unnest(above)) AS u(path)
         CROSS JOIN LATERAL xet.hub_at(repo, lines, seqs, u.path) k
         WHERE k.line <> here;
    END IF;

    -- the update finds its rows by ctid, since a join with the paths might scan
    -- the whole line; the lock on the line keeps the ctids valid

    WITH ended AS (
        UPDATE xet.hub_paths h SET till = seq
         WHERE h.ctid = ANY (ARRAY(
                   SELECT k.ctid
                     FROM unnest(changed || above) AS u(path)
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

    WITH begun AS (
        INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash,
                                   size, sha256, made)
        SELECT $1, here, u.path, seq, xet.hub_folder(u.path), u.hash, u.size,
               u.sha256, $5
          FROM unnest(paths, hashes, sizes, digests)
                  AS u(path, hash, size, sha256)
        RETURNING hub_paths.path
    )
    SELECT coalesce(sum(xet.hub_weight(b.path)), 0) INTO weight
      FROM begun b;

    -- write the tombstones of deleted files first, so that the next statement
    -- finds only folders that still have files

    IF shared THEN
        weight := weight + xet.hub_tombstones(
            repo, here, seq, made,
            ARRAY(SELECT unnest(far.paths) INTERSECT SELECT unnest(changed)
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
            ARRAY(SELECT unnest(far.paths) EXCEPT SELECT unnest(changed)));

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


-- Writes a tombstone for each of the paths, which hides the rows of other
-- lines at that path.  Returns the weight of the tombstones.

CREATE FUNCTION xet.hub_tombstones(repo bigint, line integer, seq integer,
    made bytea, paths text[])
    RETURNS bigint
    LANGUAGE sql
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


-- Commits the staged operations to a branch, completely or not at all.  A
-- commit of too many rows is refused before its first row is written.
--
-- A caller may name a parent that is not the current commit of the branch.  If
-- later commits changed the same files, the commit is refused with status 412.
-- A request that changes nothing creates no commit.  If the upload was already
-- committed, returns that commit.  message has the number of changed rows and
-- the number of added bytes of metadata.
--
-- seen is the commit of the branch when the request arrived, or when the server
-- last checked that the client still waits.  Without a parent, a conflict with
-- later commits is reported as 409 with the current commit: the server checks
-- whether the client still waits, and retries.  So a statement that arrives
-- late, from an abandoned session, does not overwrite later changes of its
-- client.

CREATE FUNCTION xet.hub_commit(asked xet.hub_asked, rev text, upload bytea,
    parent text, who text, title text, text text, batches integer,
    seen text DEFAULT NULL, subject bytea DEFAULT NULL,
    most integer DEFAULT 500000)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
    SET enable_material = off
AS $$
DECLARE
    r      record;
    ref    text;
    head   bytea;
    made   bytea;
    base   xet.hub_commits;
    does   record;
    l      record;
    gone   text[] := '{}';
    bad    text;
    lost   text;
    w      record;
    stored    bigint;
    changed   text[];
    above  text[];
    files  text[];
    weight bigint;
BEGIN
    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    -- this lock serializes the commit with a deletion of the repo

    PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    ref := xet.hub_branch(rev);

    SELECT f.oid INTO head
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name = ref
       FOR UPDATE;

    IF head IS NULL THEN
        RETURN xet.hub_says(404, 'RevisionNotFound',
                            'Branch not found: ' || rev);
    END IF;

    SELECT c.* INTO base
      FROM xet.hub_commits c
     WHERE c.repo_id = r.id AND c.upload = $3;

    IF base.oid IS NOT NULL THEN
        RETURN xet.hub_says(200, body => encode(base.oid, 'hex'),
                            more => r.more);
    END IF;

    does := xet.hub_whole(upload, batches);

    SELECT c.* INTO base FROM xet.hub_commit_of(r.id, head) c;

    l := xet.hub_line(r.id, base.line, base.seq);

    IF does.copies THEN
        bad := xet.hub_copies(r.id, encode(head, 'hex'), upload);

        IF bad IS NOT NULL THEN
            RETURN xet.hub_says(404, 'EntryNotFound',
                                'File to copy not found: ' || bad);
        END IF;
    END IF;

    IF does.deletes THEN
        SELECT g.gone, g.bad INTO gone, lost
          FROM xet.hub_gone(r.id, l.lines, l.seqs, upload, most) g;

        bad := xet.hub_too_many(cardinality(gone), 0, most);

        IF bad IS NOT NULL THEN
            RETURN xet.hub_says(413, 'too_many_rows', bad);
        END IF;
    END IF;

    IF parent IS NOT NULL
       AND xet.hub_oid(r.id, parent) IS DISTINCT FROM head
       AND xet.hub_meets(r.id, l.lines, l.seqs, parent, upload)
    THEN
        RETURN xet.hub_says(412, 'parent_changed',
            'A commit has happened since. Please refresh and try again.');
    END IF;

    IF parent IS NULL AND seen IS NOT NULL AND seen <> encode(head, 'hex')
       AND xet.hub_meets(r.id, l.lines, l.seqs, seen, upload)
    THEN
        RETURN xet.hub_says(409, 'branch_moved',
                            'Another commit has changed the same files',
                            encode(head, 'hex'));
    END IF;

    IF lost IS NOT NULL THEN
        RETURN xet.hub_says(404, 'EntryNotFound',
                            'A file with this name doesn''t exist: ' || lost);
    END IF;

    SELECT x.id INTO stored FROM xet.repos x WHERE x.name = r.uploads;

    w := xet.hub_puts(r.id, stored, l.lines, l.seqs, upload, gone);

    changed := CASE WHEN cardinality(gone) = 0 THEN w.paths
                    ELSE ARRAY(SELECT unnest(gone)
                               UNION SELECT unnest(w.paths)) END;

    IF cardinality(changed) = 0 THEN
        DELETE FROM xet.hub_staged s WHERE s.upload = $3;

        RETURN xet.hub_says(200, body => encode(head, 'hex'), more => r.more);
    END IF;

    above := xet.hub_folders(changed, most);
    bad := xet.hub_too_many(cardinality(changed), cardinality(above), most);

    IF bad IS NOT NULL THEN
        RETURN xet.hub_says(413, 'too_many_rows', bad);
    END IF;

    files := CASE WHEN cardinality(gone) = 0 THEN above
                  ELSE xet.hub_folders(w.paths, most) END;
    bad := xet.hub_clash(r.id, l.lines, l.seqs, w.paths, files, gone);

    IF bad IS NOT NULL THEN
        RETURN xet.hub_says(400, 'invalid_path',
                            bad || ' is both a file and a folder');
    END IF;

    -- a commit beyond the quota is refused before it is written; the check at
    -- the end also counts concurrent commits

    weight := xet.hub_weight(title || text);

    IF EXISTS (SELECT FROM xet.quotas) THEN
        PERFORM xet.quota_hold(false, r.uploads, subject, 0, 0,
                               weight
                               + (SELECT sum(xet.hub_weight(p))
                                    FROM (SELECT unnest(w.paths)
                                          UNION ALL
                                          SELECT unnest(above)) AS u(p)
                                 )::bigint,
                               false);
    END IF;

    PERFORM xet.hub_hold(stored, w.ids);

    l.lines := xet.hub_fork(r.id, l.lines, base, ref);

    IF l.lines IS NULL THEN
        RETURN xet.hub_says(400, 'branch_too_deep',
            'The branch ' || rev || ' is at the end of a chain of 32'
            ' branches; create a branch from an earlier commit');
    END IF;

    IF cardinality(l.lines) > cardinality(l.seqs) THEN
        l.seqs := base.seq || l.seqs;
    END IF;

    made := substr(sha256($3 || head), 1, 20);

    weight := weight + xet.hub_write(r.id, l.lines, l.seqs, ref, made, changed,
                                     above, files, w.paths, w.hashes, w.sizes,
                                     w.digests);

    INSERT INTO xet.hub_commits (repo_id, line, seq, oid, parent, who, title,
                                 message, upload, subject, metadata, files,
                                 bytes)
    SELECT r.id, x.line, base.seq + 1, made, head, who, title, text, $3,
           sha256(subject), weight, x.files, x.bytes
      FROM xet.hub_lines x
     WHERE x.repo_id = r.id AND x.line = l.lines[1];

    -- the trigger of xet.hub_refs then finds the size of the repo set

    UPDATE xet.hub_repos h
       SET changed_at = now(),
           bytes = CASE WHEN ref = 'heads/main' THEN c.bytes ELSE h.bytes END
      FROM xet.hub_commit_of(r.id, made) c
     WHERE h.id = r.id;

    UPDATE xet.hub_refs f SET oid = made
     WHERE f.repo_id = r.id AND f.name = ref;

    DELETE FROM xet.hub_staged s WHERE s.upload = $3;

    PERFORM xet.usage_add(ARRAY[int8send(stored), sha256(subject)], 0, 0, 0,
                          weight);
    PERFORM xet.quota_hold(false, r.uploads, subject, 0, 0, weight);

    RETURN xet.hub_says(200, NULL,
                        cardinality(changed) + cardinality(above)
                        || ' ' || weight,
                        encode(made, 'hex'), r.more);
END;
$$;


-- Returns the lines of a new commit to the branch ref, on top of the commit
-- base.  "lines" are the lines of base.  If the new commit continues the line
-- of base, returns "lines", and that line is locked.  Otherwise creates a
-- line without paths, and returns it followed by "lines".  Returns NULL if
-- there would be too many lines.
--
-- A line belongs to the branch that its last commit was made to.  A branch that
-- starts at the last commit of another branch gets its own line with its first
-- commit.  So the other branch keeps its line, however many branches start at
-- that commit, and whichever branch commits first.  If there would be too many
-- lines, the branch takes over the existing line instead.

CREATE FUNCTION xet.hub_fork(repo bigint, lines integer[],
    base xet.hub_commits, ref text)
    RETURNS integer[]
    LANGUAGE plpgsql
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

    IF base.seq = x.last THEN

        IF x.branch IS NULL OR x.branch = ref OR cardinality(lines) > many THEN
            RETURN lines;
        END IF;

        PERFORM FROM xet.hub_refs f
          WHERE f.repo_id = $1 AND f.name = x.branch AND f.oid = base.oid;

        IF NOT FOUND THEN
            RETURN lines;
        END IF;
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
