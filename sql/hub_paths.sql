-- Functions that look up the paths of a Hub's repo at a commit.


-- Lines.  A commit has a number, seq, in its line.  Its content was written by
-- commits of that line, and of the lines that this line continues (bases and
-- upto of xet.hub_lines).  So functions take the position of a commit as two
-- arrays.  lines has these lines, the nearest first.  seqs has, for each line,
-- the number of the last commit that counts.  Commit numbers increase from the
-- farthest line to the nearest.
--
-- To look up a path, take the first of these lines that has a row of the path
-- with since <= seq; the last such row in that line decides.  The path exists
-- if till > seq in that row.  An ended row hides the rows of farther lines.  A
-- tombstone is an ended row that a commit writes if its line had no row to
-- end.
--
-- Most reads use xet.hub_at() for one path, or xet.hub_walk() for a folder or a
-- whole subtree.  But nearly all lines continue no other line.  A read of the
-- last commit of such a line uses only the currently valid rows, for which
-- there are partial indexes.

-- Returns the position of a commit: its lines and their last commits that
-- count.  Line 0 continues no other line.

CREATE FUNCTION xet.hub_line(repo bigint, line integer, seq integer,
    OUT lines integer[], OUT seqs integer[])
    LANGUAGE plpgsql STABLE
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


-- Returns the entry of a path at a commit; no row if the path does not exist.
-- This is a single SELECT, so that PostgreSQL inlines it into the calling
-- statement.

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


-- Returns the entries of a folder at a commit, in the order of paths, after
-- the path "above" and before "below".  If folder is NULL, returns all paths
-- in that range.  Returns up to "most" entries, and only files if "files" is
-- set.
--
-- The function reads each line in parts of "part" rows.  A part ends at the
-- first path at which the rows of any line are used up; that path is looked up
-- separately.  So a path that ten thousand commits changed takes one part and
-- one look-up.  "part" grows as long as parts contain no entries.

CREATE FUNCTION xet.hub_walk(repo bigint, lines integer[], seqs integer[],
    folder text, above text, below text, files boolean, most bigint)
    RETURNS TABLE (path text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz)
    LANGUAGE plpgsql STABLE
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
    -- a string of the last Unicode character, longer than any path

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

        -- with one line, an ended row hides no other row, so only valid rows
        -- are read

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


-- Returns a page of a tree: the entries of a folder, or of its whole subtree,
-- after a path.  The first row is the response.  The other rows are the
-- entries, in order, with the titles of their commits if expand is set.  The
-- caller makes the JSON, in a third of the time that SQL would need.  The
-- subtree of a bucket's folder is listed without folders.  In a bucket, the
-- path of a file lists that file, and an unknown path lists nothing.
--
-- Returns the first "part" entries of a page of "most" entries.  The first row
-- has the arguments of the call for the next part: code is the commit, and
-- message is the path at that commit.  If the page continues after this part
-- and is full, more is the last path of the page.
--
-- The partial indexes hub_paths_now and hub_paths_now_folder find the rows
-- that are valid at the last commit of a line without reading older rows.
--
-- This is a single SELECT, so that PostgreSQL inlines it into the statement and
-- sends each row when it has read it.  r has one row, the repo and the folder.
-- Of the entries in e, all but one SELECT return nothing: their LIMIT is 0.
-- made and made_at are NULL where the JSON does not contain them.

CREATE FUNCTION xet.hub_tree_rows(asked xet.hub_asked, rev text, path text,
    deep boolean, expand boolean, after text, most integer, part integer)
    RETURNS TABLE (status integer, code text, message text, more text,
                   entry text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz,
                   title text)
    LANGUAGE sql STABLE
AS $$
    SELECT e.status, e.code, e.message, e.more, e.path, e.hash, e.size,
           e.sha256, CASE WHEN $5 OR e.hash IS NULL THEN e.made END,
           CASE WHEN $5 OR r.bucket THEN e.made_at END, e.mtime,
           CASE WHEN $5 THEN (SELECT t.title
                                FROM xet.hub_title_of(r.id, e.made) t) END
      FROM (SELECT f.*, f.status = 200 AND f.folder IS TRUE AS listed,
                   f.status = 200 AND f.folder IS TRUE AND f.now AND NOT $4
                       AS flat,
                   f.status = 200 AND f.folder IS TRUE AND f.now AND $4
                       AS whole,
                   ($1).kind = 3 AS bucket,
                   greatest($6 COLLATE "C", CASE WHEN f.path = '' THEN ''
                                                 ELSE f.path || '/' END)
                       AS above,
                   CASE WHEN f.path = '' THEN repeat(U&'\+10FFFF', 1024)
                        ELSE f.path || '0' END AS below
              FROM (SELECT o.*,
                           CASE WHEN o.status <> 200 THEN NULL
                                WHEN ($1).kind = 3 OR o.path = '' THEN true
                                WHEN o.now
                                THEN (SELECT h.hash IS NULL
                                        FROM xet.hub_paths h
                                       WHERE h.repo_id = o.id
                                         AND h.line = o.lines[1]
                                         AND h.path = o.path
                                         AND h.till = 2147483647)
                                ELSE xet.hub_is_folder(o.id, o.lines, o.seqs,
                                                       o.path) END AS folder
                      FROM xet.hub_opened($1, false, $2, $3) o
                    OFFSET 0) f
            OFFSET 0) r
     CROSS JOIN LATERAL (
               SELECT CASE WHEN r.listed THEN 200
                           WHEN r.status = 200 THEN 404
                           ELSE r.status END AS status,
                      CASE WHEN r.listed THEN encode(r.oid, 'hex')
                           WHEN r.status = 200 THEN 'EntryNotFound'
                           ELSE r.code END AS code,
                      CASE WHEN r.listed THEN r.path
                           WHEN r.status = 200
                           THEN r.path || CASE WHEN r.folder IS NULL
                                               THEN ' does not exist'
                                               ELSE ' is not a folder' END
                                || ' on "' || $2 || '"'
                           ELSE r.message END AS message,
                      CASE WHEN NOT r.listed AND r.status = 200
                           THEN encode(r.oid, 'hex')
                           WHEN NOT r.listed THEN r.more
                           WHEN $7 > $8
                           THEN xet.hub_tree_end(r.id, r.lines, r.seqs, r.now,
                                                 r.path, $4, r.bucket, r.above,
                                                 r.below, $7) END AS more,
                      NULL AS path, NULL::bytea AS hash, NULL::bigint AS size,
                      NULL::bytea AS sha256, NULL::bytea AS made,
                      NULL::timestamptz AS made_at, NULL::timestamptz AS mtime
               UNION ALL
               (SELECT NULL, NULL, NULL, NULL, p.path, p.hash, p.size,
                       p.sha256, p.made, p.made_at, p.mtime
                  FROM xet.hub_paths p
                 WHERE p.repo_id = r.id AND p.line = r.lines[1]
                   AND p.path = r.path AND p.till = 2147483647
                   AND p.hash IS NOT NULL
                 LIMIT CASE WHEN r.listed AND r.bucket AND $6 IS NULL THEN 1
                            ELSE 0 END)
               UNION ALL
               (SELECT NULL, NULL, NULL, NULL, p.path, p.hash, p.size,
                       p.sha256, p.made, p.made_at, p.mtime
                  FROM xet.hub_paths p
                 WHERE p.repo_id = r.id AND p.line = r.lines[1]
                   AND p.folder = r.path AND p.path > r.above
                   AND p.till = 2147483647
                 ORDER BY p.path
                 LIMIT CASE WHEN r.flat THEN least($7, $8) ELSE 0 END)
               UNION ALL
               (SELECT NULL, NULL, NULL, NULL, p.path, p.hash, p.size,
                       p.sha256, p.made, p.made_at, p.mtime
                  FROM xet.hub_paths p
                 WHERE p.repo_id = r.id AND p.line = r.lines[1]
                   AND p.path > r.above AND p.path < r.below
                   AND p.till = 2147483647
                   AND (NOT r.bucket OR p.hash IS NOT NULL)
                 ORDER BY p.path
                 LIMIT CASE WHEN r.whole THEN least($7, $8) ELSE 0 END)
               UNION ALL
               SELECT NULL, NULL, NULL, NULL, h.path, h.hash, h.size, h.sha256,
                      h.made, h.made_at, h.mtime
                 FROM xet.hub_walk(r.id, r.lines, r.seqs,
                                   CASE WHEN NOT $4 THEN r.path END, r.above,
                                   r.below, false, least($7, $8)) h
                WHERE r.listed AND NOT r.now
           ) e;
$$;


-- Returns the last path of a page of "most" entries; NULL if there are fewer
-- entries.

CREATE FUNCTION xet.hub_tree_end(repo bigint, lines integer[], seqs integer[],
    now boolean, path text, deep boolean, bucket boolean, above text,
    below text, most integer)
    RETURNS text
    LANGUAGE plpgsql STABLE
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


-- Returns true if a commit is the last commit of its line, and the line
-- continues no other line: then its content is the currently valid rows.

CREATE FUNCTION xet.hub_is_last(repo bigint, lines integer[], seqs integer[])
    RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN cardinality(lines) = 1
           AND (SELECT x.last = seqs[1] FROM xet.hub_lines x
                 WHERE x.repo_id = $1 AND x.line = lines[1]);
END;
$$;


-- Returns whether a path is a folder at a commit; NULL if the path does not
-- exist.

CREATE FUNCTION xet.hub_is_folder(repo bigint, lines integer[],
    seqs integer[], path text)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN (SELECT h.hash IS NULL FROM xet.hub_at(repo, lines, seqs, $4) h);
END;
$$;


-- Returns the title of the commit that made an entry.  PostgreSQL inlines this
-- function into the calling statement.

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


-- Returns the entries of paths, as rows like those of xet.hub_tree_rows();
-- paths that do not exist are omitted.  code of the first row is the commit,
-- which the caller passes as rev for the other paths of the request.

CREATE FUNCTION xet.hub_paths_rows(asked xet.hub_asked, rev text,
    paths bytea[], expand boolean)
    RETURNS TABLE (status integer, code text, message text, more text,
                   entry text, hash bytea, size bigint, sha256 bytea,
                   made bytea, made_at timestamptz, mtime timestamptz,
                   title text)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r  record;
BEGIN
    r := xet.hub_open(asked, false, rev, '');

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    code := coalesce(r.code, encode(r.oid, 'hex'));

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
     CROSS JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs,
                                   convert_from(u.path, 'UTF8')) h
     WHERE asked.kind <> 3 OR h.hash IS NOT NULL
     ORDER BY u.n;
END;
$$;


-- Returns the file at a path at a revision; the status is 404 if the path is
-- not a file.  The bytes of the hash are in the order of its digits.
-- PostgreSQL inlines this function into the statement.

CREATE FUNCTION xet.hub_resolve(asked xet.hub_asked, rev text, path text)
    RETURNS TABLE (status integer, code text, message text, more text,
                   oid text, hash bytea, size bigint, sha256 bytea,
                   type text, uploads text, private boolean)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT CASE WHEN o.status = 200 AND p.hash IS NULL THEN 404
                ELSE o.status END,
           CASE WHEN o.status = 200 AND p.hash IS NULL THEN 'EntryNotFound'
                ELSE o.code END,
           CASE WHEN o.status = 200 AND p.hash IS NULL THEN 'Entry not found'
                ELSE o.message END,
           o.more, encode(o.oid, 'hex'), p.hash, p.size, p.sha256, p.type,
           o.uploads, o.private
      FROM xet.hub_opened($1, false, $2, $3) o
      LEFT JOIN LATERAL (
               SELECT h.*
                 FROM xet.hub_at(o.id, o.lines, o.seqs, o.path) h
                WHERE o.status = 200
               OFFSET 0
           ) p ON true;
$$;


-- Returns the folders above a path; no rows for a path in the root.

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
    SELECT CASE WHEN strpos(path, '/') = 0 THEN ''
                ELSE left(path, -strpos(reverse(path), '/')) END;
$$;


-- Returns the folders above paths: each folder once, and at most "most" + 1
-- folders, so that PostgreSQL does not list more folders than a request may
-- write.  A caller that gets more than "most" folders refuses the request.

CREATE FUNCTION xet.hub_folders(paths text[], most bigint)
    RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
AS $$
BEGIN
    RETURN (WITH RECURSIVE f(path) AS (
                SELECT xet.hub_folder(p) FROM unnest($1) AS p
                UNION
                SELECT xet.hub_folder(f.path) FROM f WHERE f.path <> ''
            )
            SELECT coalesce(array_agg(k.path), '{}')
              FROM (SELECT f.path FROM f WHERE f.path <> ''
                     LIMIT $2 + 1) k);
END;
$$;


-- Returns the hash of the file at a path at a commit; NULL if the path is a
-- folder or does not exist.

CREATE FUNCTION xet.hub_hash_at(repo bigint, lines integer[], seqs integer[],
    path text)
    RETURNS bytea
    LANGUAGE sql STABLE
AS $$
    SELECT h.hash FROM xet.hub_at($1, $2, $3, $4) h;
$$;


-- Returns up to "most" files of a folder and its subfolders at a commit.

CREATE FUNCTION xet.hub_below(repo bigint, lines integer[], seqs integer[],
    folder text, most bigint)
    RETURNS TABLE (path text, hash bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT h.path, h.hash
      FROM xet.hub_walk($1, $2, $3, NULL, $4 || '/', $4 || '0', true, $5) h;
$$;
