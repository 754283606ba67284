-- Functions for repos and their files, and functions for operators.


-- Returns the id of a repo, and creates its row for the first upload.  The row
-- is locked until the commit, which serializes the transaction with a deletion
-- of the repo.  The advisory lock is taken first, as in the deletion; otherwise
-- an upload and a deletion could deadlock.
--
-- This function never creates the row of a Hub repo, which is created with the
-- repo: an old token for a deleted repo must not create the row again.

CREATE FUNCTION xet.repo_row(repo text)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    found_id bigint;
    locked   text;
BEGIN
    FOR i IN 1 .. 8 LOOP
        SELECT r.id INTO found_id FROM xet.repos r WHERE r.name = $1;

        IF found_id IS NOT NULL THEN
            locked := pg_advisory_xact_lock_shared(hashtext('xet.repos'),
                                                   hashint8(found_id));

            PERFORM FROM xet.repos r WHERE r.id = found_id FOR KEY SHARE;

            IF FOUND THEN
                RETURN found_id;
            END IF;

        ELSIF $1 LIKE '\_hub/%' THEN
            RAISE EXCEPTION 'the repo was deleted' USING ERRCODE = 'XT006';

        ELSE
            INSERT INTO xet.repos (name) VALUES ($1) ON CONFLICT DO NOTHING;
        END IF;
    END LOOP;

    RAISE EXCEPTION 'the repo was deleted in the meantime'
          USING ERRCODE = '40001';
END;
$$;


-- Removes a file from a repo; the store keeps the file as long as another repo
-- has it.  Returns false if the repo did not have the file.

CREATE FUNCTION xet.repo_forget(repo text, file bytea, act bytea DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
DECLARE
    gone  record;
BEGIN
    IF xet.act_said(act) IS NOT NULL THEN
        RETURN true;
    END IF;

    DELETE FROM xet.repo_files rf
     USING xet.repos r, xet.files f
     WHERE r.name = $1 AND f.hash = $2
       AND rf.repo_id = r.id AND rf.file_id = f.id
    RETURNING coalesce(rf.public_file, rf.listed_file) AS shown INTO gone;

    IF NOT FOUND THEN
        RETURN false;
    END IF;

    IF gone.shown IS NOT NULL THEN
        PERFORM xet.hide();
    END IF;

    PERFORM xet.act_note(act, '1');

    RETURN true;
END;
$$;


-- Makes a repo public or private, for administrators.
--
-- The advisory lock is fair: this statement waits for shard commits in
-- progress, and later shard commits wait for this statement.  With row locks,
-- which are not fair, overlapping shard commits could block it forever.

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


-- Deletes a repo with all of its entries.  The collector later removes files
-- that no other repo has.  Returns false if there is no such repo.  Only
-- uploads to this repo wait for the deletion.

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

    DELETE FROM xet.repos r WHERE r.id = found_id;

    IF NOT FOUND THEN
        RETURN false;
    END IF;

    PERFORM xet.hide();
    PERFORM xet.act_note(act, '1');

    RETURN true;
END;
$$;


-- Creates a repo.  Returns false if the repo already exists.

CREATE FUNCTION xet.repo_create(repo text)
    RETURNS boolean
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO xet.repos (name) VALUES ($1) ON CONFLICT DO NOTHING;

    RETURN FOUND;
END;
$$;


-- Adds a stored file to a repo.  Returns false if the file or the repo does
-- not exist.

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


-- Lists the repos.  A repo of the Hub has its visibility in xet.hub_repos.

CREATE FUNCTION xet.repo_list()
    RETURNS TABLE (name text, public boolean, files bigint, bytes bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT r.name, coalesce(NOT xet.hub_private(r.name), r.public),
           count(f.id), coalesce(sum(f.size), 0)::bigint
      FROM xet.repos r
      LEFT JOIN xet.repo_files rf ON rf.repo_id = r.id
      LEFT JOIN xet.files f ON f.id = rf.file_id
     GROUP BY r.id;
$$;


-- Returns one part of the figures of repos: reads the next entries of files in
-- repos, some thousand rows in the order of repos.  Returns the first and the
-- last repo of the part, which may have entries in other parts, too, and
-- between them the largest of the other repos, in the same order.

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


-- Writes an action of "xet repo" to the PostgreSQL log, as a line of level LOG,
-- which only a superuser can disable; the audit log of nginx has only actions
-- of the API.  The argument done is the result of the function that performs
-- the action, and is returned unchanged; so a failed action is not logged.

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
