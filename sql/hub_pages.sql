-- Functions that return the data for the web pages of a Hub.


-- Returns a page of repos, recently changed first.  The kind of the repos is in
-- asked; 4 means all kinds.  The other arguments are those of xet.hub_list().
-- after is the end of the previous page: the time in microseconds since 1970,
-- "/", and the id of the repo.

CREATE FUNCTION xet.hub_page_list(asked xet.hub_asked, after text,
    most integer)
    RETURNS TABLE (kind integer, repo text, private boolean, changed bigint,
                   id bigint, files bigint, bytes bigint)
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT o.*
      FROM (SELECT (n.repo).kind::integer,
                   (n.repo).owner || '/' || (n.repo).name AS repo,
                   (n.repo).private,
                   (extract(epoch FROM n.sorted_at) * 1000000)::bigint
                       AS changed, n.id,
                   CASE WHEN m.seq = x.last THEN x.files ELSE m.files END,
                   CASE WHEN m.seq = x.last THEN x.bytes ELSE m.bytes END
              FROM xet.hub_newest(CASE WHEN asked.kind = 4 THEN '{0,1,2,3}'
                                       ELSE ARRAY[asked.kind] END,
                                  asked,
                                  to_timestamp(0) + interval '1 microsecond'
                                  * least(split_part(after, '/', 1)::bigint,
                                          253402300799999999),
                                  split_part(after, '/', 2)::bigint, most) n
              LEFT JOIN LATERAL (SELECT f.oid
                                   FROM xet.hub_refs f
                                  WHERE f.repo_id = n.id
                                    AND f.name = 'heads/main'
                                  LIMIT 1) f ON NOT n.stopped
              LEFT JOIN LATERAL (SELECT c.line, c.seq, c.files, c.bytes
                                   FROM xet.hub_commit_of(n.id, f.oid) c
                                  LIMIT 1) m ON true
              LEFT JOIN LATERAL (SELECT l.last, l.files, l.bytes
                                   FROM xet.hub_lines l
                                  WHERE l.repo_id = n.id AND l.line = m.line
                                  LIMIT 1) x ON true) o
     ORDER BY o.repo IS NULL, o.changed DESC, o.id DESC;
END;
$$;


-- Returns a repo at a revision, and the folder or file at a path.  readme is
-- the path of the text to show, if there is one: README.md of the folder, or
-- the file itself.  The returned rev includes the parts of the path that
-- belong to the name of the revision.

CREATE FUNCTION xet.hub_page_repo(asked xet.hub_asked, INOUT rev text,
    INOUT path text, OUT status integer, OUT code text, OUT message text,
    OUT more text, OUT private boolean, OUT oid text, OUT made_at bigint,
    OUT title text, OUT who text, OUT files bigint, OUT bytes bigint,
    OUT is_folder boolean, OUT readme text, OUT hash bytea, OUT size bigint,
    OUT uploads text)
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r      record;
    whole  text := concat_ws('/', rev, nullif(path, ''));
BEGIN
    r := xet.hub_open(asked, false, rev, path);

    status := r.status;
    code := r.code;
    message := r.message;
    more := r.more;

    IF status <> 200 THEN
        RETURN;
    END IF;

    private := r.private;
    uploads := r.uploads;
    path := r.path;
    rev := CASE WHEN path = '' THEN whole
                ELSE left(whole, length(whole) - length(path) - 1) END;
    oid := encode(r.oid, 'hex');
    made_at := extract(epoch FROM r.made_at)::bigint;

    SELECT left(k.title, 200), k.who,
           CASE WHEN k.seq = x.last THEN x.files ELSE k.files END,
           CASE WHEN k.seq = x.last THEN x.bytes ELSE k.bytes END
      INTO hub_page_repo.title, hub_page_repo.who, hub_page_repo.files,
           hub_page_repo.bytes
      FROM xet.hub_commit_of(r.id, r.oid) k
      JOIN xet.hub_lines x ON x.repo_id = k.repo_id AND x.line = k.line;

    is_folder := path = '';

    IF NOT is_folder THEN
        SELECT p.hash IS NULL INTO is_folder
          FROM xet.hub_at(r.id, r.lines, r.seqs, r.path) p;

        IF is_folder IS NULL THEN
            status := 404;
            code := 'EntryNotFound';
            message := 'File or folder not found';
            RETURN;
        END IF;
    END IF;

    SELECT p.path, xet.hub_hash(p.hash), p.size
      INTO readme, hub_page_repo.hash, hub_page_repo.size
      FROM xet.hub_at(r.id, r.lines, r.seqs,
                      CASE WHEN is_folder
                           THEN concat_ws('/', nullif(r.path, ''), 'README.md')
                           ELSE r.path END) p
     WHERE p.hash IS NOT NULL;
END;
$$;


-- Returns the entries of a folder, each with the title of its last commit; if
-- the path is a file, returns its own entry.

CREATE FUNCTION xet.hub_page_tree(asked xet.hub_asked, rev text, path text,
    after text, most integer)
    RETURNS TABLE (entry text, folder boolean, size bigint, at bigint,
                   title text)
    LANGUAGE sql STABLE
AS $$
    WITH t AS MATERIALIZED (
        SELECT f.*
          FROM xet.hub_tree_rows($1, $2, $3, false, true, $4, $5, $5) f
    )
    SELECT k.entry, k.hash IS NULL, k.size,
           extract(epoch FROM coalesce(k.mtime, k.made_at))::bigint,
           left(k.title, 200)
      FROM (SELECT t.* FROM t
            UNION ALL
            SELECT p.*
              FROM xet.hub_paths_rows($1, $2, ARRAY[convert_to($3, 'UTF8')],
                                      true) p
             WHERE EXISTS (SELECT FROM t WHERE t.code = 'EntryNotFound')
               AND $4 IS NULL AND p.hash IS NOT NULL) k
     WHERE k.entry IS NOT NULL;
$$;


-- Lists branches and tags, with their prefixes "heads/" and "tags/"; the main
-- branch is first.

CREATE FUNCTION xet.hub_page_refs(asked xet.hub_asked, most integer)
    RETURNS TABLE (ref text)
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
AS $$
DECLARE
    r  record;
BEGIN
    r := xet.hub_find(asked, false);

    IF r.status <> 200 THEN
        RETURN;
    END IF;

    RETURN QUERY
    SELECT f.name
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name = 'heads/main'
     LIMIT most;

    RETURN QUERY
    SELECT f.name
      FROM xet.hub_refs f
     WHERE f.repo_id = r.id AND f.name > '' AND f.name <> 'heads/main'
     ORDER BY f.name
     LIMIT greatest(most - 1, 0);
END;
$$;
