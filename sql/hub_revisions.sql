-- Functions for the revisions of a Hub's repo: commits, branches and tags.


-- Returns up to two commits of a repo whose ids start with these hex digits;
-- there must be at least seven digits, in upper or lower case.

CREATE FUNCTION xet.hub_ids(repo bigint, digits text)
    RETURNS TABLE (oid bytea)
    LANGUAGE sql STABLE
AS $$
    SELECT c.oid
      FROM (SELECT CASE WHEN $2 ~ '^[0-9a-fA-F]{7,40}$' THEN $2 END AS text) d
     CROSS JOIN LATERAL (
               SELECT c.oid FROM xet.hub_commits c
                WHERE c.repo_id = $1
                  AND c.oid >= decode(rpad(d.text, 40, '0'), 'hex')
                  AND c.oid <= decode(rpad(d.text, 40, 'f'), 'hex')
                ORDER BY c.oid
                LIMIT 2) c;
$$;


-- Returns the only commit whose id starts with these digits; NULL if there is
-- no such commit, or more than one.

CREATE FUNCTION xet.hub_oid(repo bigint, digits text)
    RETURNS bytea
    LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN count(*) = 1 THEN (array_agg(i.oid))[1] END
      FROM xet.hub_ids($1, $2) i;
$$;


-- Returns the names in xet.hub_refs that a revision may mean; the name with the
-- lowest n counts.

CREATE FUNCTION xet.hub_ref_names(rev text)
    RETURNS TABLE (n integer, name text)
    LANGUAGE sql IMMUTABLE ROWS 2
AS $$
    SELECT w.n, w.name
      FROM (VALUES (1, CASE WHEN $1 = 'HEAD' THEN 'heads/main'
                            WHEN $1 LIKE 'HEAD/%' THEN NULL
                            WHEN $1 LIKE 'refs/heads/%' OR $1 LIKE 'refs/tags/%'
                            THEN substr($1, 6)
                            WHEN $1 LIKE 'refs/%' OR $1 = 'refs' THEN NULL
                            ELSE 'heads/' || $1 END),
                   (2, CASE WHEN split_part($1, '/', 1)
                                 NOT IN ('HEAD', 'refs')
                            THEN 'tags/' || $1 END)) AS w(n, name);
$$;


-- Returns the commit with this id.  PostgreSQL inlines this function into the
-- calling statement.  Of the indexes, only that of ids gives this order: a plan
-- made for an empty table would otherwise read all commits of the repo.

CREATE FUNCTION xet.hub_commit_of(repo bigint, oid bytea)
    RETURNS SETOF xet.hub_commits
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT c.*
      FROM xet.hub_commits c
     WHERE c.repo_id = $1 AND c.oid >= $2 AND c.oid <= $2
     ORDER BY c.oid
     LIMIT 1;
$$;


-- Returns the commit of a revision that is neither a whole id nor the name of a
-- branch: the 40 digits of its id, followed by the rest of the path.  The first
-- parts of the path may belong to the name of a branch or tag; the longest
-- existing name counts.  The first digits of an id mean a commit only if no
-- branch or tag has this name.  Returns NULL if there is no such commit.

CREATE FUNCTION xet.hub_rev_of(repo bigint, rev text, path text)
    RETURNS text
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    parts  text[] := string_to_array(path, '/');
    most   integer := least(coalesce(cardinality(parts), 0), 8);
    c      record;
BEGIN
    IF rev ~ '^[0-9a-fA-F]{40}(/|$)' THEN
        RETURN NULL;
    END IF;

    -- a "/" in rev was sent as %2F, so rev is the whole revision; HEAD is also
    -- a whole revision, without further parts in the path

    IF rev = 'HEAD' OR strpos(rev, '/') > 0 THEN
        most := 0;
    END IF;

    SELECT r.oid, a.n INTO c
      FROM (SELECT i AS n, array_to_string($2 || parts[1 : i], '/') AS rev
              FROM generate_series(most, 0, -1) AS i
            OFFSET 0) a
     CROSS JOIN LATERAL xet.hub_ref_names(a.rev) w
     CROSS JOIN LATERAL (SELECT r.oid FROM xet.hub_refs r
                          WHERE r.repo_id = $1 AND r.name = w.name
                         OFFSET 0) r
     ORDER BY a.n DESC, w.n
     LIMIT 1;

    IF FOUND THEN
        RETURN encode(c.oid, 'hex') || array_to_string(parts[c.n + 1 :], '/');

    ELSIF rev ~ '^[0-9a-fA-F]{7,39}$' THEN
        RETURN encode(xet.hub_oid($1, $2), 'hex') || path;
    END IF;

    RETURN NULL;
END;
$$;


-- Returns the commit of a revision, by the table "Revisions" of docs/hub.md; no
-- row if the revision does not exist.  lines and seqs are the position of the
-- commit; "now" is true if the commit's content is the currently valid rows.
-- If a branch has the name rev, no name of another branch or tag begins with
-- "rev/" (xet.hub_ref_beside()), so the path is not part of a name.
--
-- PostgreSQL inlines this function into the calling statement; OFFSET 0 makes
-- it compute each value once.

CREATE FUNCTION xet.hub_rev(repo bigint, rev text, path text)
    RETURNS TABLE (path text, lines integer[], seqs integer[], oid bytea,
                   made_at timestamptz, now boolean)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT CASE WHEN b.other IS NULL THEN $3 ELSE substr(b.other, 41) END,
           k.line || x.bases, k.seq || x.upto, k.oid, k.made_at,
           k.seq = x.last AND x.bases = '{}'
      FROM (SELECT n.oid,
                   CASE WHEN n.oid IS NULL
                        THEN xet.hub_rev_of($1, $2, $3) END AS other
              FROM (SELECT CASE WHEN $2 ~ '^[0-9a-fA-F]{40}$'
                                THEN decode($2, 'hex')
                                ELSE (SELECT r.oid
                                        FROM xet.hub_refs r
                                       WHERE r.repo_id = $1
                                         AND r.name = xet.hub_branch($2))
                                END AS oid
                    OFFSET 0) n
            OFFSET 0) b
     CROSS JOIN LATERAL xet.hub_commit_of($1,
                   coalesce(b.oid, decode(left(b.other, 40), 'hex'))) k
     CROSS JOIN LATERAL (SELECT l.last, l.bases, l.upto
                           FROM xet.hub_lines l
                          WHERE l.repo_id = $1 AND l.line = k.line
                         OFFSET 0) x;
$$;


-- Finds a repo by its name with xet.hub_found(), and a revision and the path in
-- it with xet.hub_rev().  The status is that of xet.hub_found(), or 404 if the
-- revision does not exist.  If rev is NULL, returns only the repo.
--
-- PostgreSQL inlines this function into the calling statement.
-- xet.hub_open() is for callers that need no other row.

CREATE FUNCTION xet.hub_opened(asked xet.hub_asked, writes boolean, rev text,
    path text)
    RETURNS TABLE (path text, status integer, code text, message text,
                   more text, id bigint, private boolean, uploads text,
                   lines integer[], seqs integer[], oid bytea,
                   made_at timestamptz, now boolean)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT coalesce(c.path, $4),
           CASE WHEN f.status = 200 AND c.oid IS NULL AND $3 IS NOT NULL
                THEN 404 ELSE f.status END,
           CASE WHEN f.status = 200 AND c.oid IS NULL AND $3 IS NOT NULL
                THEN 'RevisionNotFound' ELSE f.code END,
           CASE WHEN f.status = 200 AND c.oid IS NULL AND $3 IS NOT NULL
                THEN 'Invalid rev id: ' || $3 ELSE f.message END,
           f.more, f.id, f.private, f.uploads, c.lines, c.seqs, c.oid,
           c.made_at, c.now
      FROM xet.hub_found($1, $2) f
      LEFT JOIN LATERAL (
               SELECT v.*
                 FROM xet.hub_rev(f.id, $3, $4) v
                WHERE f.status = 200 AND $3 IS NOT NULL
               OFFSET 0
           ) c ON true;
$$;


CREATE FUNCTION xet.hub_open(asked xet.hub_asked, writes boolean, rev text,
    INOUT path text, OUT status integer, OUT code text, OUT message text,
    OUT more text, OUT id bigint, OUT private boolean, OUT uploads text,
    OUT lines integer[], OUT seqs integer[], OUT oid bytea,
    OUT made_at timestamptz, OUT now boolean)
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    SELECT o.* INTO path, status, code, message, more, id, private, uploads,
                    lines, seqs, oid, made_at, now
      FROM xet.hub_opened(asked, writes, rev, $4) o;
END;
$$;


-- Returns the name in xet.hub_refs of the branch that a revision means; NULL
-- if the revision can't be a branch, by the table "Revisions" of docs/hub.md.

CREATE FUNCTION xet.hub_branch(rev text)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 'heads/'
           || CASE WHEN rev = 'HEAD' THEN 'main'
                   WHEN rev LIKE 'refs/heads/%' THEN substr(rev, 12)
                   WHEN split_part(rev, '/', 1) IN ('HEAD', 'refs') THEN NULL
                   WHEN rev ~ '^[0-9a-fA-F]{40}(/|$)' THEN NULL
                   ELSE rev END;
$$;


-- Returns an existing branch or tag that conflicts with a new branch or tag;
-- NULL if there is no conflict.  A tag conflicts with a branch of the same
-- name.  "a" conflicts with "a/b": otherwise "a/b/c" could be the file "b/c" or
-- "c", depending on which names exist.

CREATE FUNCTION xet.hub_ref_beside(repo bigint, ref text)
    RETURNS text
    LANGUAGE plpgsql STABLE
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


-- Lists branches and tags as JSON, in parts of up to 256 names.  rest is NULL
-- for the first part.  For each later part, rest is the value that the previous
-- answer returned: the last name of the previous part.  The last answer returns
-- NULL.

CREATE FUNCTION xet.hub_refs_get(asked xet.hub_asked, rest text)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
AS $$
DECLARE
    r     record;
    f     record;
    body  text;
    tags  boolean := rest LIKE 'tags/%';
    n     integer := 0;
    last  text;
BEGIN
    r := xet.hub_find(asked, false);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    body := CASE WHEN rest IS NULL THEN '{"branches":[' ELSE '' END;
    tags := coalesce(tags, false);

    FOR f IN SELECT x.name, x.oid, x.message, x.name LIKE 'tags/%' AS tag
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
                || ',"targetCommit":"' || encode(f.oid, 'hex') || '"'
                || coalesce(',"message":' || to_json(f.message), '') || '}';
        tags := f.tag;
        last := f.name;
        n := n + 1;
    END LOOP;

    rest := CASE WHEN n = 256 THEN last END;

    IF rest IS NULL THEN
        body := body || CASE WHEN tags THEN '' ELSE '],"tags":[' END
                || '],"converts":[],"pullRequests":[]}';
    END IF;

    RETURN xet.hub_says(200, body => body, more => r.more, rest => rest);
END;
$$;


-- Creates a branch or a tag at a revision, or at a new empty commit if rev is
-- NULL.  ref is "heads/" or "tags/", followed by the name.  does: 0 fails if
-- the branch or tag exists, 1 moves an existing one, 2 keeps an existing one,
-- 3 deletes it.  message is that of a tag, or NULL.

CREATE FUNCTION xet.hub_ref_put(asked xet.hub_asked, ref text, rev text,
    does integer, who text, message text, act bytea,
    subject bytea DEFAULT NULL)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    r     record;
    c     record;
    bad   text;
    mine  bytea;
    cost  bigint := xet.hub_weight(ref || coalesce(message, ''));
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN xet.hub_says(200);
    END IF;

    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    -- the lock serializes this transaction with the creation of other names,
    -- which might conflict with this name

    IF does = 3 THEN
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR KEY SHARE;
    ELSE
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR NO KEY UPDATE;
    END IF;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    IF does = 3 THEN

        IF ref = 'heads/main' THEN
            RETURN xet.hub_says(403, 'main_branch',
                                'The main branch can''t be deleted');
        END IF;

        DELETE FROM xet.hub_refs f
         WHERE f.repo_id = r.id AND f.name = $2
        RETURNING f.subject, xet.hub_weight(f.name || coalesce(f.message, ''))
             INTO mine, cost;

        IF NOT FOUND THEN
            RETURN xet.hub_says(404, 'RevisionNotFound',
                                'Reference not found: ' || ref);
        END IF;

        PERFORM xet.hub_charge(r.id, mine, -cost);
        PERFORM xet.act_note(act, '200');

        RETURN xet.hub_says(200, more => r.more);
    END IF;

    IF rev IS NOT NULL THEN
        SELECT * INTO c FROM xet.hub_rev(r.id, rev, '');

        IF c.oid IS NULL THEN
            RETURN xet.hub_says(404, 'RevisionNotFound',
                                'Invalid rev id: ' || rev);
        END IF;
    END IF;

    bad := xet.hub_ref_beside(r.id, ref);

    IF bad IS NOT NULL THEN
        RETURN xet.hub_says(400, 'ref_conflict',
            'refs/' || ref || ' conflicts with the existing refs/' || bad);
    END IF;

    IF EXISTS (SELECT FROM xet.hub_refs f
                WHERE f.repo_id = r.id AND f.name = ref)
    THEN
        IF does = 0 THEN
            RETURN xet.hub_says(409, 'ref_exists', 'Reference already exists');
        END IF;

        IF does = 2 THEN
            RETURN xet.hub_says(200, more => r.more);
        END IF;
    END IF;

    IF rev IS NULL THEN
        SELECT * INTO c
          FROM xet.hub_root(r.id, ref, who, 'initial commit', sha256($8));
    END IF;

    INSERT INTO xet.hub_refs AS f (repo_id, name, oid, subject, message)
    VALUES (r.id, ref, c.oid, sha256($8), $6)
    ON CONFLICT ON CONSTRAINT hub_refs_pkey DO NOTHING;

    IF FOUND THEN
        PERFORM xet.hub_charge(r.id, sha256($8), cost);
    ELSE
        UPDATE xet.hub_refs f SET oid = c.oid
         WHERE f.repo_id = r.id AND f.name = ref;
    END IF;

    PERFORM xet.act_note(act, '200');
    PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), $8, 0, 0, cost);

    RETURN xet.hub_says(200, more => r.more);
END;
$$;


-- Creates a commit without a parent and without files, in a line of its own.
-- The caller holds a lock on the repo that excludes itself.

CREATE FUNCTION xet.hub_root(repo bigint, ref text, who text, title text,
    mine bytea, OUT line integer, OUT oid bytea)
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM FROM xet.hub_lines k
      WHERE k.repo_id = $1 AND k.line = 0 FOR UPDATE;

    SELECT max(k.line) + 1 INTO hub_root.line
      FROM xet.hub_lines k WHERE k.repo_id = $1;

    oid := substr(sha256(uuid_send(gen_random_uuid())), 1, 20);

    INSERT INTO xet.hub_lines (repo_id, line, last, branch)
    VALUES ($1, hub_root.line, 1, ref);
    INSERT INTO xet.hub_commits (repo_id, line, seq, oid, who, title, subject,
                                 metadata)
    VALUES ($1, hub_root.line, 1, hub_root.oid, who, title, mine,
            xet.hub_weight(title));

    PERFORM xet.hub_charge($1, mine, xet.hub_weight(title));
END;
$$;


-- Replaces the history of a branch by one commit with the same files.  Earlier
-- commits are no longer in the history, and remain readable by their ids.

CREATE FUNCTION xet.hub_squash(asked xet.hub_asked, rev text, title text,
    who text, act bytea, subject bytea DEFAULT NULL,
    most integer DEFAULT 500000)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    r       record;
    ref     text;
    base    xet.hub_commits;
    l       record;
    root    record;
    weight  bigint;
    n       bigint;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN xet.hub_says(200);
    END IF;

    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR NO KEY UPDATE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    ref := xet.hub_branch(rev);

    PERFORM FROM xet.hub_refs f
      WHERE f.repo_id = r.id AND f.name = ref FOR UPDATE;

    SELECT c.* INTO base
      FROM xet.hub_refs f
     CROSS JOIN LATERAL xet.hub_commit_of(f.repo_id, f.oid) c
     WHERE f.repo_id = r.id AND f.name = ref;

    IF base.oid IS NULL THEN
        RETURN xet.hub_says(404, 'RevisionNotFound',
                            'Branch not found: ' || rev);
    END IF;

    SELECT * INTO l FROM xet.hub_line(r.id, base.line, base.seq);

    root := xet.hub_root(r.id, ref, who, title, sha256(subject));

    INSERT INTO xet.hub_paths (repo_id, line, path, since, folder, hash, size,
                               sha256, made)
    SELECT r.id, root.line, h.path, 1, xet.hub_folder(h.path), h.hash, h.size,
           h.sha256, root.oid
      FROM xet.hub_walk(r.id, l.lines, l.seqs, NULL, '', NULL, false,
                        most + 1) h;

    GET DIAGNOSTICS n = ROW_COUNT;

    IF n > most THEN
        RAISE EXCEPTION 'too many rows' USING ERRCODE = 'XT007';
    END IF;

    SELECT coalesce(sum(xet.hub_weight(p.path)), 0) INTO weight
      FROM xet.hub_paths p
     WHERE p.repo_id = r.id AND p.line = root.line;

    UPDATE xet.hub_lines x
       SET files = base.files, bytes = base.bytes
     WHERE x.repo_id = r.id AND x.line = root.line;
    UPDATE xet.hub_commits c
       SET files = base.files, bytes = base.bytes,
           metadata = c.metadata + weight
     WHERE c.repo_id = r.id AND c.oid = root.oid;
    UPDATE xet.hub_refs f SET oid = root.oid
     WHERE f.repo_id = r.id AND f.name = ref;
    UPDATE xet.hub_repos h SET changed_at = now() WHERE h.id = r.id;

    PERFORM xet.hub_charge(r.id, sha256(subject), weight);
    PERFORM xet.act_note(act, '200');
    PERFORM xet.quota_hold(false, xet.hub_store_of(r.id), subject, 0, 0,
                           weight);

    RETURN xet.hub_says(200, more => r.more);

EXCEPTION WHEN SQLSTATE 'XT007' THEN
    RETURN xet.hub_says(413, 'too_many_rows',
        'The branch has more than ' || most || ' files and folders');
END;
$$;


-- Returns the last commit that wrote a row of the path, of the lines up to
-- their commits seqs; NULL if none did.

CREATE FUNCTION xet.hub_wrote(repo bigint, lines integer[], seqs integer[],
    path text)
    RETURNS bytea
    LANGUAGE sql STABLE
AS $$
    SELECT c.oid
      FROM unnest($2, $3) WITH ORDINALITY AS a(line, seq, n)
     CROSS JOIN LATERAL (
               SELECT CASE WHEN h.till <= a.seq THEN h.till
                           ELSE h.since END AS seq
                 FROM xet.hub_paths h
                WHERE h.repo_id = $1 AND h.line = a.line AND h.path = $4
                  AND h.since <= a.seq
                ORDER BY h.since DESC
                LIMIT 1
           ) p
      JOIN xet.hub_commits c
        ON c.repo_id = $1 AND c.line = a.line AND c.seq = p.seq
     ORDER BY a.n
     LIMIT 1;
$$;


-- Returns the time of a text, a date or a date and a time in UTC; NULL if the
-- text is neither.

CREATE FUNCTION xet.hub_time(text text)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    IF text ~ '^\d{4}-\d\d-\d\d$' THEN
        RETURN (text || 'T00:00:00Z')::timestamptz;
    END IF;

    IF text ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$' THEN
        RETURN text::timestamptz;
    END IF;

    RETURN NULL;

EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END;
$$;


-- Returns the last commit that was made at a time or before, of the lines up to
-- their commits seqs; NULL if there is none.

CREATE FUNCTION xet.hub_until(repo bigint, lines integer[], seqs integer[],
    until timestamptz)
    RETURNS bytea
    LANGUAGE sql STABLE
AS $$
    SELECT p.oid
      FROM unnest($2, $3) WITH ORDINALITY AS a(line, seq, n)
     CROSS JOIN LATERAL (
               SELECT c.oid
                 FROM xet.hub_commits c
                WHERE c.repo_id = $1 AND c.line = a.line AND c.seq <= a.seq
                  AND c.made_at <= $4
                ORDER BY c.seq DESC
                LIMIT 1
           ) p
     ORDER BY a.n
     LIMIT 1;
$$;


-- Returns the commit before a commit in the history of a path; of all files,
-- if path is ''.

CREATE FUNCTION xet.hub_before(k xet.hub_commits, path text)
    RETURNS bytea
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    l  record;
BEGIN
    IF path = '' THEN
        RETURN k.parent;
    END IF;

    SELECT * INTO l FROM xet.hub_line(k.repo_id, k.line, k.seq);

    RETURN xet.hub_wrote(k.repo_id, l.lines, (k.seq - 1) || l.seqs[2 :], path);
END;
$$;


-- Returns the history of a revision, newest commit first; if path is not '',
-- only the commits that added, changed or removed this file, or files in this
-- folder.  Commits after the time "until" are left out.  more is the first
-- commit of the next page, and message is the number of commits, NULL for a
-- path.  A page is returned in parts of about 64 KiB.
-- rest is the number of remaining commits, the first of them, and the path;
-- NULL after the last part.

CREATE FUNCTION xet.hub_commits_get(asked xet.hub_asked, rev text, path text,
    until text, after text, most integer, rest text)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r     record;
    k     xet.hub_commits;
    got   integer := 0;
    at    bytea;
    body  text := '';
    total text;
    more  text;
BEGIN
    r := xet.hub_open(asked, false, CASE WHEN rest IS NULL THEN rev END, path);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    IF rest IS NULL THEN
        IF after !~ '^[0-9a-f]{40}$' THEN
            RETURN xet.hub_says(400, 'invalid_cursor', 'Malformed cursor');
        END IF;

        path := r.path;
        body := '[';
        at := r.oid;

        IF until IS NOT NULL THEN
            IF xet.hub_time(until) IS NULL THEN
                RETURN xet.hub_says(400, 'invalid_argument',
                                    'Unsupported value of the argument: until');
            END IF;

            at := xet.hub_until(r.id, r.lines, r.seqs, xet.hub_time(until));
        END IF;

        SELECT h.* INTO k FROM xet.hub_commit_of(r.id, at) h;

        IF path = '' THEN
            total := coalesce(k.seq, 0);
        ELSE
            SELECT xet.hub_wrote(r.id, l.lines, l.seqs, path) INTO at
              FROM xet.hub_line(r.id, k.line, k.seq) l;
        END IF;

        at := coalesce(decode(after, 'hex'), at);

    ELSE
        most := split_part(rest, '/', 1)::integer;
        at := decode(split_part(rest, '/', 2), 'hex');
        path := substr(rest, strpos(rest, '/') + 42);
    END IF;

    WHILE got < most AND octet_length(body) < 65536 LOOP
        SELECT h.* INTO k FROM xet.hub_commit_of(r.id, at) h;

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
        at := xet.hub_before(k, path);
        got := got + 1;
    END LOOP;

    at := (SELECT h.oid FROM xet.hub_commit_of(r.id, at) h);

    IF at IS NULL OR got = most THEN
        RETURN xet.hub_says(200, NULL, total, body || ']', encode(at, 'hex'));
    END IF;

    IF rest IS NULL THEN
        WITH RECURSIVE w AS (
            SELECT at AS oid, 0 AS n
            UNION ALL
            SELECT xet.hub_before(p, path), w.n + 1
              FROM w
             CROSS JOIN LATERAL xet.hub_commit_of(r.id, w.oid) p
             WHERE w.n < most - got
        )
        SELECT encode(w.oid, 'hex') INTO more
          FROM w WHERE w.n = most - got;
    END IF;

    RETURN xet.hub_says(200, NULL, total, body, more,
                        (most - got) || '/' || encode(at, 'hex') || '/'
                        || path);
END;
$$;


-- Returns up to "most" paths behind "after", in order, whose rows a commit has
-- written: they begin or end at its number.

CREATE FUNCTION xet.hub_changed_by(repo bigint, line integer, seq integer,
    after text, most integer)
    RETURNS text[]
    LANGUAGE sql STABLE
    SET enable_sort = off
AS $$
    SELECT ARRAY(
        SELECT DISTINCT w.path
          FROM ((SELECT h.path
                   FROM xet.hub_paths h
                  WHERE h.repo_id = $1 AND h.line = $2
                    AND h.since = $3 AND h.since > 0
                    AND h.path > coalesce($4, '')
                  ORDER BY h.path
                  LIMIT $5)
                 UNION ALL
                 (SELECT h.path
                    FROM xet.hub_paths h
                   WHERE h.repo_id = $1 AND h.line = $2
                     AND h.till = $3 AND h.till <> 2147483647
                     AND h.path > coalesce($4, '')
                   ORDER BY h.path
                   LIMIT $5)) w
         ORDER BY w.path
         LIMIT $5);
$$;


-- Does the same for two commits: of each line that one of them continues, rows
-- count that begin or end between the commits.  Returns NULL if there are more
-- than 100,000 of these rows.

CREATE FUNCTION xet.hub_changed_between(repo bigint, lines integer[],
    seqs integer[], old_lines integer[], old_seqs integer[], after text,
    most integer)
    RETURNS text[]
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    rows   CONSTANT integer := 100000;
    b      record;
    n      integer := 0;
    got    integer;
    paths  text[] := '{}';
BEGIN
    FOR b IN SELECT u.line, least(u.new, u.old) AS low,
                    greatest(u.new, u.old) AS high
               FROM (SELECT k.line, coalesce(max(k.new), 0) AS new,
                            coalesce(max(k.old), 0) AS old
                       FROM (SELECT a.line, a.seq AS new, NULL::integer AS old
                               FROM unnest(lines, seqs) AS a(line, seq)
                              UNION ALL
                             SELECT o.line, NULL, o.seq
                               FROM unnest(old_lines, old_seqs)
                                       AS o(line, seq)) k
                      GROUP BY k.line) u
              WHERE u.new <> u.old
    LOOP
        WITH w AS MATERIALIZED (
            (SELECT h.path
               FROM xet.hub_paths h
              WHERE h.repo_id = repo AND h.line = b.line
                AND h.since > b.low AND h.since <= b.high AND h.since > 0
              LIMIT rows - n + 1)
            UNION ALL
            (SELECT h.path
               FROM xet.hub_paths h
              WHERE h.repo_id = repo AND h.line = b.line
                AND h.till > b.low AND h.till <= b.high
                AND h.till <> 2147483647
              LIMIT rows - n + 1)
        )
        SELECT (SELECT count(*) FROM w),
               ARRAY(SELECT DISTINCT k.path
                       FROM (SELECT unnest(paths)
                              UNION ALL
                             SELECT w.path FROM w
                              WHERE w.path > coalesce(after, ''))
                               AS k(path)
                      ORDER BY k.path
                      LIMIT most)
          INTO got, paths;

        n := n + got;

        IF n > rows THEN
            RETURN NULL;
        END IF;
    END LOOP;

    RETURN paths;
END;
$$;


-- Returns a page of the files that a commit added, removed or changed, compared
-- with the revision "base", or with its parent, by path; the cursor is the last
-- path.  If base is '', all files are added.  A file changed if its contents
-- did.
--
-- A page has "most" of the paths whose rows were written.  A folder, or a file
-- with the same contents, is left out, so a page may be short, or empty, and
-- still have a next one.

CREATE FUNCTION xet.hub_changes(asked xet.hub_asked, rev text, base text,
    after text, most integer)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r      record;
    o      record;
    c      record;
    k      record;
    paths  text[];
    items  text[] := '{}';
    last   text;
BEGIN
    r := xet.hub_open(asked, false, rev, '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    IF base IS NOT NULL THEN
        SELECT b.lines, b.seqs INTO o FROM xet.hub_rev(r.id, base, '') b;

        IF NOT FOUND AND base <> '' THEN
            RETURN xet.hub_says(404, 'RevisionNotFound',
                                'Invalid rev id: ' || base);
        END IF;

        paths := xet.hub_changed_between(r.id, r.lines, r.seqs, o.lines,
                                         o.seqs, after, most + 1);

        IF paths IS NULL THEN
            RETURN xet.hub_says(413, 'too_many_rows',
                'Too many files changed between the revisions');
        END IF;

    ELSE
        SELECT h.line, h.seq, p.line AS old_line, p.seq AS old_seq INTO c
          FROM xet.hub_commits h
          LEFT JOIN xet.hub_commits p
            ON p.repo_id = h.repo_id AND p.oid = h.parent
         WHERE h.repo_id = r.id AND h.oid = r.oid;

        SELECT l.lines, l.seqs INTO o
          FROM xet.hub_line(r.id, c.old_line, c.old_seq) l
         WHERE c.old_line IS NOT NULL;

        paths := xet.hub_changed_by(r.id, c.line, c.seq, after, most + 1);
    END IF;

    IF cardinality(paths) > most THEN
        paths := paths[: most];
        last := paths[most];
    END IF;

    FOR k IN SELECT p.path, n.hash, n.size, f.hash AS old_hash,
                    f.size AS old_size
               FROM unnest(paths) WITH ORDINALITY AS p(path, n)
               LEFT JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs, p.path) n
                 ON true
               LEFT JOIN LATERAL xet.hub_at(r.id, o.lines, o.seqs, p.path) f
                 ON true
              ORDER BY p.n
    LOOP
        CONTINUE WHEN k.hash IS NOT DISTINCT FROM k.old_hash;

        items := items || json_build_object('path', k.path, 'type',
                     CASE WHEN k.old_hash IS NULL THEN 'added'
                          WHEN k.hash IS NULL THEN 'removed'
                          ELSE 'changed' END,
                     'size', CASE WHEN k.hash IS NOT NULL THEN k.size END,
                     'oldSize', CASE WHEN k.old_hash IS NOT NULL
                                     THEN k.old_size END,
                     'xetHash', encode(k.hash, 'hex'),
                     'oldXetHash', encode(k.old_hash, 'hex'))::text;
    END LOOP;

    RETURN xet.hub_says(200, body => '[' || array_to_string(items, ',')
                                     || ']',
                        more => last);
END;
$$;
