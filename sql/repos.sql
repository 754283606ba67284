-- Repos, their files, and what operators do with them.


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

    RAISE EXCEPTION 'the repo was deleted in the meantime'
          USING ERRCODE = '40001';
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


-- Acts of administrators.  What the API does is in the audit log of nginx; what
-- "xet repo" does comes here, and so into the log of PostgreSQL, as a line of
-- level LOG, which only a superuser can turn off.  It stands around the call of
-- the function that acts: the result of that is returned as it is, and what has
-- failed is not told.

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
