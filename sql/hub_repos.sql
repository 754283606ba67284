-- Functions for a Hub: repos with names, their commits and files (tables
-- xet.hub_*).
--
-- Most functions handle a request, and return xet.hub_answer.  Their argument
-- xet.hub_asked has the repo and the rights of the caller; xet.hub_may()
-- checks these rights.  Every caller may read public repos.
--
-- Paths are looked up one by one, by LATERAL with a LIMIT, under settings that
-- allow no other plan: a plan made while the tables were small would scan a
-- whole repo for each path.  The sessions of the module have these settings.
-- Other sessions call only xet.hub_sweep().

CREATE FUNCTION xet.hub_date(at timestamptz)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
$$;


-- Converts a hash from the order of its bytes to the order of its digits, or
-- back: reverses the bytes of each of its four 8-byte words.  This is one
-- expression, which PostgreSQL inlines: a query over generate_series() would
-- take ten times as long for each file of a commit.

CREATE FUNCTION xet.hub_hash(hash bytea)
    RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT substr(hash, 8, 1) || substr(hash, 7, 1)
           || substr(hash, 6, 1) || substr(hash, 5, 1)
           || substr(hash, 4, 1) || substr(hash, 3, 1)
           || substr(hash, 2, 1) || substr(hash, 1, 1)
           || substr(hash, 16, 1) || substr(hash, 15, 1)
           || substr(hash, 14, 1) || substr(hash, 13, 1)
           || substr(hash, 12, 1) || substr(hash, 11, 1)
           || substr(hash, 10, 1) || substr(hash, 9, 1)
           || substr(hash, 24, 1) || substr(hash, 23, 1)
           || substr(hash, 22, 1) || substr(hash, 21, 1)
           || substr(hash, 20, 1) || substr(hash, 19, 1)
           || substr(hash, 18, 1) || substr(hash, 17, 1)
           || substr(hash, 32, 1) || substr(hash, 31, 1)
           || substr(hash, 30, 1) || substr(hash, 29, 1)
           || substr(hash, 28, 1) || substr(hash, 27, 1)
           || substr(hash, 26, 1) || substr(hash, 25, 1);
$$;


-- Returns the name in xet.repos that uploads to a Hub repo belong to.  number
-- is the column "store" of xet.hub_repos.  All tokens and URLs issued for the
-- repo are bound to this name, so they become invalid when the name changes.

CREATE FUNCTION xet.hub_store(number bigint)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '_hub/' || number::text;
$$;


-- The next two functions return the name of a Hub repo in xet.repos, and its
-- id in that table.  A commit needs the name and the id several times.  So
-- there are two functions, whose plans the session caches.  Callers store the
-- result in a variable before the statement that uses it: inside the statement,
-- the planner would call the function a second time.

CREATE FUNCTION xet.hub_store_of(repo bigint)
    RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
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
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    stored  text := xet.hub_store_of($1);
BEGIN
    RETURN (SELECT x.id FROM xet.repos x WHERE x.name = stored);
END;
$$;


-- Returns true if a caller has the rights of a repo's owner: to read the repo
-- while it is private, and to write to it.  of_store is the name of the repo
-- in xet.repos; NULL for a repo that does not exist yet.

CREATE FUNCTION xet.hub_may(asked xet.hub_asked, owner text, of_store text)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(($1).any_space IS NOT NULL AND ($1).spaces IS NOT NULL
                    AND ($1).any_store IS NOT NULL AND ($1).store IS NOT NULL
                    AND $2 IS NOT NULL
                    AND (($1).any_space
                         OR lower($2 COLLATE "C") = ANY (($1).spaces))
                    AND (($1).any_store OR ($1).store = $3), false);
$$;


-- Returns why a caller must not create a repo, or move one to a name: "free" is
-- whether the token is for all repos that the caller owns.

CREATE FUNCTION xet.hub_why_not(free boolean)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN $1
                THEN 'You may not create a repository in this name space'
                ELSE 'The token is for one repository, and must not create or '
                     'move repositories' END;
$$;


-- Returns the approximate size in bytes of a row with this text in the
-- database, including its index entries.  The text is a path, which is in six
-- indexes, the title and message of a commit, or the name of a reference.

CREATE FUNCTION xet.hub_weight(path text)
    RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT 400 + 6 * octet_length(path);
$$;


-- Returns the display name of a Hub repo, since its name in xet.repos is only a
-- number; NULL for other repos.

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


-- Returns whether the Hub repo of a name in xet.repos is private; NULL for the
-- name of another repo.

CREATE FUNCTION xet.hub_private(store text)
    RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT h.private
      FROM xet.hub_repos h
     WHERE h.store = CASE WHEN $1 ~ '^_hub/[0-9]{1,18}$'
                          THEN substr($1, 6)::bigint END;
$$;


-- Returns the bytes of metadata of Hub repos, with the subjects whose
-- transactions wrote the metadata: one row per commit, per reference and per
-- path of a bucket.

CREATE FUNCTION xet.hub_metadata()
    RETURNS TABLE (repo_id bigint, subject bytea, bytes bigint)
    LANGUAGE sql STABLE
AS $$
    SELECT c.repo_id, c.subject, c.metadata FROM xet.hub_commits c
    UNION ALL
    SELECT f.repo_id, f.subject,
           xet.hub_weight(f.name || coalesce(f.message, ''))
      FROM xet.hub_refs f
    UNION ALL
    SELECT p.repo_id, p.subject, xet.hub_weight(p.path)
      FROM xet.hub_paths p
      JOIN xet.hub_repos h ON h.id = p.repo_id
     WHERE h.kind = 3;
$$;


-- Counts bytes of metadata for a repo and a subject.  subject is the SHA-256
-- of issuer and subject, or NULL.

CREATE FUNCTION xet.hub_charge(repo bigint, subject bytea, bytes bigint)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM xet.usage_add(ARRAY[int8send(xet.hub_files_of($1)), $2], 0, 0, 0,
                          $3);
END;
$$;


-- Returns the name of a repo in xet.repos.  The repo is given by that name, or
-- by its current or former name on the Hub.  Returns NULL if there is no such
-- repo.

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


CREATE FUNCTION xet.hub_says(status integer, code text DEFAULT NULL,
    message text DEFAULT NULL, body text DEFAULT NULL,
    more text DEFAULT NULL, rest text DEFAULT NULL)
    RETURNS xet.hub_answer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT ROW($1, $2, $3, $4, $5, $6)::xet.hub_answer;
$$;


-- Returns true if a repo of any kind has this owner.

CREATE FUNCTION xet.hub_is_owner(owner text)
    RETURNS boolean
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM generate_series(0, 3) AS k
                    CROSS JOIN LATERAL (
                              SELECT FROM xet.hub_repos h
                               WHERE h.kind = k AND lower(h.owner) = lower($1)
                               LIMIT 1) o);
END;
$$;


-- Finds a repo by its name, if the caller may see it.  Status 200: found; 307:
-- the repo has moved, and more is the new name; 404: the repo does not exist,
-- or is hidden from the caller; 403: the caller may only read the repo.  All
-- look-ups are made for each name, in the same order: otherwise the response
-- time would reveal private names.  So "named" and "was" are columns of a
-- subquery that OFFSET 0 keeps apart: PostgreSQL computes both of them.
--
-- With 404, more is "elsewhere" if the request may be passed to another Hub,
-- that is, if the owner has no repo here.  Otherwise a user who has the same
-- owner name on the other Hub could substitute a repo for a private repo.
--
-- This is a single SELECT, so that PostgreSQL inlines it into the calling
-- statement.  xet.hub_find() is for callers that need no other row.

CREATE FUNCTION xet.hub_found(asked xet.hub_asked, writes boolean)
    RETURNS TABLE (status integer, code text, message text, more text,
                   id bigint, private boolean, uploads text)
    LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT s.status,
           CASE s.status WHEN 404 THEN 'RepoNotFound'
                         WHEN 403 THEN 'insufficient_scope' END,
           CASE WHEN s.status = 404 THEN 'Repository not found'
                WHEN s.status <> 403 THEN NULL
                WHEN ($1).any_store
                THEN 'You may read this repository, but not write to it'
                ELSE 'The token is for another repository' END,
           CASE WHEN s.status IN (200, 307) THEN s.owner || '/' || s.name
                WHEN s.status = 404 AND NOT xet.hub_is_owner(($1).owner)
                THEN 'elsewhere' END,
           CASE WHEN s.status = 200 THEN s.id END,
           CASE WHEN s.status = 200 THEN s.private END,
           CASE WHEN s.status = 200 THEN s.uploads END
      FROM (SELECT v.*,
                   CASE WHEN v.id IS NULL OR v.private AND NOT v.mine THEN 404
                        WHEN v.named IS NULL THEN 307
                        WHEN $2 AND NOT v.mine THEN 403
                        ELSE 200 END AS status
              FROM (SELECT n.named, r.id, r.owner, r.name, r.private,
                           xet.hub_store(r.store) AS uploads,
                           xet.hub_may($1, r.owner, xet.hub_store(r.store))
                               AS mine
                      FROM (SELECT (SELECT h.id
                                      FROM xet.hub_repos h
                                     WHERE h.kind = ($1).kind
                                       AND lower(h.owner) = lower(($1).owner)
                                       AND lower(h.name) = lower(($1).name))
                                       AS named,
                                   (SELECT m.repo_id
                                      FROM xet.hub_moved m
                                     WHERE m.kind = ($1).kind
                                       AND m.owner = lower(($1).owner)
                                       AND m.name = lower(($1).name)) AS was
                            OFFSET 0) n
                      LEFT JOIN LATERAL (
                               SELECT h.id, h.owner, h.name, h.private, h.store
                                 FROM xet.hub_repos h
                                WHERE h.id = coalesce(n.named, n.was, -1)
                               OFFSET 0
                           ) r ON true
                    OFFSET 0) v
            OFFSET 0) s;
$$;


CREATE FUNCTION xet.hub_find(asked xet.hub_asked, writes boolean,
    OUT status integer, OUT code text, OUT message text, OUT more text,
    OUT id bigint, OUT private boolean, OUT uploads text)
    LANGUAGE plpgsql STABLE
AS $$
BEGIN
    SELECT f.* INTO status, code, message, more, id, private, uploads
      FROM xet.hub_found(asked, writes) f;
END;
$$;


-- Returns the name of a row in xet.repos, for which no token is issued.  The
-- initial files of a repo belong to this row until the repo is created.

CREATE FUNCTION xet.hub_nursery(upload bytea)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '_hub/new/' || encode(upload, 'hex');
$$;


-- Prepares the creation of a repo with files: creates the row in xet.repos
-- that the files are uploaded to.  more is the name of that row; NULL if the
-- repo exists already.

CREATE FUNCTION xet.hub_begin(asked xet.hub_asked, upload bytea)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT xet.hub_may(asked, asked.owner, NULL) THEN
        RETURN xet.hub_says(403, 'insufficient_scope',
            xet.hub_why_not(asked.any_store));
    END IF;

    IF EXISTS (SELECT FROM xet.hub_repos h
                WHERE h.kind = asked.kind
                  AND lower(h.owner) = lower(asked.owner)
                  AND lower(h.name) = lower(asked.name))
    THEN
        RETURN xet.hub_says(200);
    END IF;

    INSERT INTO xet.repos (name) VALUES (xet.hub_nursery(upload))
    ON CONFLICT DO NOTHING;

    RETURN xet.hub_says(200, more => xet.hub_nursery(upload));
END;
$$;


-- Creates a repo with its initial commit, which has the staged files or is
-- empty.  The status is 409 if the repo exists, and body is its visibility.
-- upload is a random id from the
-- worker, which determines the id of the commit; a retry of the statement gets
-- the same response.

CREATE FUNCTION xet.hub_create(asked xet.hub_asked, private boolean, who text,
    upload bytea, batches integer DEFAULT 0, subject bytea DEFAULT NULL,
    most integer DEFAULT 500000)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    there    record;
    first    xet.hub_answer;
    repo     bigint;
    uploads  text;
    weight   bigint;
BEGIN
    IF NOT xet.hub_may(asked, asked.owner, NULL) THEN
        RETURN xet.hub_says(403, 'insufficient_scope',
            xet.hub_why_not(asked.any_store));
    END IF;

    INSERT INTO xet.hub_repos AS r (kind, owner, name, private)
    VALUES (asked.kind, asked.owner, asked.name, coalesce($2, false))
    ON CONFLICT DO NOTHING
    RETURNING r.id, xet.hub_store(r.store) INTO repo, uploads;

    IF repo IS NULL THEN
        there := xet.hub_find(asked, false);

        RETURN xet.hub_says(CASE WHEN EXISTS (SELECT FROM xet.hub_commits c
                                               WHERE c.repo_id = there.id
                                                 AND c.upload = $4)
                                 THEN 200 ELSE 409 END,
                            'repo_exists',
                            'You already created this repository',
                            body => CASE WHEN there.private THEN 'private'
                                         ELSE 'public' END,
                            more => there.more);
    END IF;

    -- if the name is a former name of another repo, it no longer redirects

    DELETE FROM xet.hub_moved m
     WHERE m.kind = asked.kind AND m.owner = lower(asked.owner)
       AND m.name = lower(asked.name);

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

    weight := xet.hub_weight('initial commit') + xet.hub_weight('heads/main');

    IF batches = 0 THEN
        INSERT INTO xet.repos (name, listed)
        VALUES (uploads, NOT coalesce($2, false));

        PERFORM xet.hub_charge(repo, sha256(subject), weight);
        PERFORM xet.quota_hold(false, uploads, subject, 0, 0, weight);

        RETURN xet.hub_says(200, more => asked.owner || '/' || asked.name);
    END IF;

    -- takes the first lock, which serializes this commit with a drop of the
    -- staged rows

    PERFORM xet.hub_whole(upload, batches);

    UPDATE xet.repos x SET name = uploads, listed = NOT coalesce($2, false)
     WHERE x.name = xet.hub_nursery(upload);

    IF NOT FOUND THEN
        RAISE EXCEPTION 'the files of the new repository were dropped'
              USING ERRCODE = 'XT003';
    END IF;

    first := xet.hub_commit(asked, 'main', upload, NULL, who, 'initial commit',
                            '', batches, NULL, subject, most);

    IF first.status <> 200 THEN
        RAISE EXCEPTION 'the first commit was rejected' USING ERRCODE = 'XT007';
    END IF;

    PERFORM xet.hub_charge(repo, sha256(subject),
                           xet.hub_weight('heads/main'));

    -- removes the empty commit before the commit of the staged files

    DELETE FROM xet.hub_commits c WHERE c.repo_id = repo AND c.seq = 1;
    UPDATE xet.hub_commits c SET seq = 1, parent = NULL
     WHERE c.repo_id = repo;
    UPDATE xet.hub_paths p SET since = 1
     WHERE p.repo_id = repo AND p.line = 0;
    UPDATE xet.hub_lines l SET last = 1 WHERE l.repo_id = repo;

    RETURN xet.hub_says(200, more => asked.owner || '/' || asked.name);

EXCEPTION WHEN SQLSTATE 'XT007' THEN
    RETURN xet.hub_says(first.status, first.code, first.message);
END;
$$;


-- Deletes a repo and everything in it.  The collector later removes the bytes
-- that no other repo has.

CREATE FUNCTION xet.hub_delete(asked xet.hub_asked, act bytea)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    r        record;
    m        record;
    uploads  text;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN xet.hub_says(200);
    END IF;

    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    -- a commit holds a lock on the repo until it ends

    SELECT xet.hub_store(h.store) INTO uploads
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower(asked.owner)
       AND lower(h.name) = lower(asked.name)
       FOR UPDATE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    -- subjects are locked in the order that all deletions of repos use

    FOR m IN SELECT w.subject, sum(w.bytes)::bigint AS bytes
               FROM xet.hub_metadata() w
              WHERE w.repo_id = r.id
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

    RETURN xet.hub_says(200, more => r.more);
END;
$$;


-- Renames a repo; the old name then redirects.  If a private repo moves to
-- another name space, other users can see it.  So this move requires a token
-- with the scope admin, like a change of the visibility in xet.hub_settings().

CREATE FUNCTION xet.hub_move(asked xet.hub_asked, admin boolean, to_owner text,
    to_name text, act bytea)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    r       record;
    others  boolean;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN xet.hub_says(200, more => to_owner || '/' || to_name);
    END IF;

    r := xet.hub_find(asked, true);

    -- the repo has already been renamed, by an earlier try or another request

    IF r.status = 307
       AND lower(r.more) = lower(to_owner || '/' || to_name)
       AND xet.hub_may(asked, to_owner, NULL)
    THEN
        RETURN xet.hub_says(200, more => r.more);
    END IF;

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    IF NOT xet.hub_may(asked, to_owner, NULL) THEN
        RETURN xet.hub_says(403, 'insufficient_scope',
            xet.hub_why_not(asked.any_store));
    END IF;

    -- the second of two concurrent renames no longer finds the old name; a
    -- rename waits for commits only if it revokes tokens and URLs

    IF r.private AND lower(asked.owner) <> lower(to_owner) THEN
        PERFORM FROM xet.hub_repos h WHERE h.id = r.id FOR UPDATE;
    END IF;

    SELECT h.private INTO others
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower(asked.owner)
       AND lower(h.name) = lower(asked.name)
       FOR NO KEY UPDATE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    -- in another name space, other users can see the private repo, and the
    -- tokens and URLs of its former readers are revoked

    others := others AND lower(asked.owner) <> lower(to_owner);

    IF others AND admin IS NOT TRUE THEN
        RETURN xet.hub_says(403, 'insufficient_scope',
            'Only a token with the scope admin may move a private repository'
            ' to another name space');
    END IF;

    IF EXISTS (SELECT FROM xet.hub_repos h
                WHERE h.kind = asked.kind AND lower(h.owner) = lower($3)
                  AND lower(h.name) = lower($4) AND h.id <> r.id)
    THEN
        RETURN xet.hub_says(409, 'repo_exists',
                            'A repository with this name already exists');
    END IF;

    DELETE FROM xet.hub_moved m
     WHERE m.kind = asked.kind AND m.owner = lower($3) AND m.name = lower($4);

    IF lower(asked.owner) <> lower(to_owner)
       OR lower(asked.name) <> lower(to_name)
    THEN
        INSERT INTO xet.hub_moved (kind, owner, name, repo_id)
        VALUES (asked.kind, lower(asked.owner), lower(asked.name), r.id);
    END IF;

    IF others THEN
        PERFORM xet.hub_close(r.id);
    END IF;

    UPDATE xet.hub_repos h
       SET owner = $3, name = $4, changed_at = now()
     WHERE h.id = r.id;

    PERFORM xet.act_note(act, '200');

    RETURN xet.hub_says(200, more => to_owner || '/' || to_name);

EXCEPTION WHEN unique_violation THEN
    RETURN xet.hub_says(409, 'repo_exists',
                        'A repository with this name already exists');
END;
$$;


-- Revokes all tokens and URLs issued for a repo: gives its uploads a name that
-- was never used.  The caller has locked the row of the repo.  Waits for the
-- commits of uploads in progress, as xet.repo_delete() does; later uploads
-- with an old token find no repo.

CREATE FUNCTION xet.hub_close(repo bigint)
    RETURNS void
    LANGUAGE plpgsql
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


-- Sets whether a repo is listed.  Takes the same lock as xet.repo_set_public(),
-- for the same reason.

CREATE FUNCTION xet.hub_publish(repo bigint, listed boolean)
    RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    stored  text := xet.hub_store_of(repo);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('xet.repos'), hashint8(x.id))
       FROM xet.repos x
      WHERE x.name = stored;

    UPDATE xet.repos x SET listed = $2 WHERE x.name = stored;
END;
$$;


-- Changes the settings of a repo.  admin: whether the token has the scope
-- admin, which is required to change the visibility.

CREATE FUNCTION xet.hub_settings(asked xet.hub_asked, admin boolean,
    private boolean, act bytea)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql
AS $$
DECLARE
    r     record;
    was   boolean;
    body  text := xet.act_said(act) #>> '{}';
BEGIN
    IF body IS NOT NULL THEN
        RETURN xet.hub_says(200, body => body);
    END IF;

    r := xet.hub_find(asked, true);

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    SELECT h.private INTO was
      FROM xet.hub_repos h
     WHERE h.id = r.id AND lower(h.owner) = lower(asked.owner)
       AND lower(h.name) = lower(asked.name)
       FOR UPDATE;

    IF NOT FOUND THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    IF $3 <> was AND admin IS NOT TRUE THEN
        RETURN xet.hub_says(403, 'insufficient_scope',
            'Only a token with the scope admin may make a repository'
            ' public or private');
    END IF;

    IF $3 AND NOT was THEN
        PERFORM xet.hub_close(r.id);
    END IF;

    IF $3 <> was THEN
        PERFORM xet.hub_publish(r.id, NOT $3);
    END IF;

    UPDATE xet.hub_repos h
       SET private = coalesce($3, h.private), changed_at = now()
     WHERE h.id = r.id;

    IF $3 AND NOT was THEN
        PERFORM xet.hide();
    END IF;

    body := '{"private":' || coalesce($3, was) || '}';

    PERFORM xet.act_note(act, to_jsonb(body));

    RETURN xet.hub_says(200, body => body, more => r.more);
END;
$$;


-- Checks whether the caller may read a repo, or write to it if writes is set,
-- and whether the revision exists if one is given; the status is 200 if so.
-- more is the name in xet.repos that uploads to the repo belong to.  If the
-- caller may write, body is the commit of the revision.

CREATE FUNCTION xet.hub_enter(asked xet.hub_asked, rev text, writes boolean)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r  record;
BEGIN
    r := xet.hub_open(asked, writes, rev, '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    RETURN xet.hub_says(200, more => r.uploads,
                        body => CASE WHEN writes THEN encode(r.oid, 'hex') END);
END;
$$;
