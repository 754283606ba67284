-- Functions for cards, the metadata of the files README.md of a Hub's repos,
-- and for lists of repos by these metadata.


-- Returns the strings of a value in a card, which is a scalar or an array.
-- Strings that are too long for a tag are omitted.

CREATE FUNCTION xet.hub_texts(value json)
    RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(array_agg(t.text ORDER BY t.n), '{}')
      FROM (SELECT a.v #>> '{}' AS text, a.n
              FROM json_array_elements(CASE json_typeof($1)
                                       WHEN 'array' THEN $1
                                       ELSE json_build_array($1) END)
                       WITH ORDINALITY AS a(v, n)
             WHERE json_typeof(a.v) IN ('string', 'number', 'boolean')
               AND a.n <= 1000) t
     WHERE length(t.text) BETWEEN 1 AND 256;
$$;


-- Returns the library of a model: the value in its card, or else the first tag
-- that is the name of a well-known library.

CREATE FUNCTION xet.hub_library(card json)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce((xet.hub_texts($1 -> 'library_name'))[1],
                    (SELECT t.tag
                       FROM unnest(xet.hub_texts($1 -> 'tags'))
                                WITH ORDINALITY AS t(tag, n)
                      WHERE t.tag IN ('transformers', 'diffusers', 'timm',
                                      'sentence-transformers', 'peft', 'keras',
                                      'adapter-transformers', 'spacy',
                                      'flair', 'fastai', 'sklearn', 'open_clip',
                                      'stable-baselines3', 'mlx', 'nemo',
                                      'espnet', 'speechbrain', 'setfit')
                      ORDER BY t.n
                      LIMIT 1));
$$;


-- Returns the tags that a Hub shows for a repo with this card.

CREATE FUNCTION xet.hub_tags(kind integer, card json)
    RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT coalesce(array_agg(d.tag ORDER BY d.n), '{}')
      FROM (SELECT t.tag, min(t.n) AS n
              FROM (SELECT v.before || u.value AS tag, v.n * 1000 + u.n AS n
                      FROM (VALUES (0, 1, '', 'library_name'),
                                   (2, 2, '', 'sdk'),
                                   (1, 3, 'task_categories:',
                                          'task_categories'),
                                   (1, 4, 'task_ids:', 'task_ids'),
                                   (1, 5, 'annotations_creators:',
                                          'annotations_creators'),
                                   (1, 6, 'language_creators:',
                                          'language_creators'),
                                   (1, 7, 'multilinguality:',
                                          'multilinguality'),
                                   (1, 8, 'source_datasets:',
                                          'source_datasets'),
                                   (NULL, 9, '', 'tags'),
                                   (0, 10, '', 'pipeline_tag'),
                                   (0, 11, '', 'language'),
                                   (1, 12, 'language:', 'language'),
                                   (0, 13, 'dataset:', 'datasets'),
                                   (0, 14, 'base_model:', 'base_model'),
                                   (NULL, 15, 'license:', 'license'),
                                   (1, 16, 'size_categories:',
                                           'size_categories'))
                               AS v(kind, n, before, key)
                     CROSS JOIN LATERAL unnest(xet.hub_texts($2 -> v.key))
                              WITH ORDINALITY AS u(value, n)
                     WHERE v.kind IS NULL OR v.kind = $1
                    UNION ALL
                    SELECT 'base_model:' || r.value || ':' || u.value,
                           14500 + u.n
                      FROM unnest(xet.hub_texts($2 -> 'base_model_relation'))
                               WITH ORDINALITY AS r(value, n),
                           unnest(xet.hub_texts($2 -> 'base_model'))
                               WITH ORDINALITY AS u(value, n)
                     WHERE $1 = 0 AND r.n = 1) t
             GROUP BY t.tag) d;
$$;


-- Returns the values by which lists find a repo: its tags, the pipeline tag and
-- the library, each after the kind of the repo.

CREATE FUNCTION xet.hub_marks(kind integer, card json)
    RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT array_agg($1 || ':' || m.mark)
      FROM (SELECT unnest(xet.hub_tags($1, $2))
            UNION
            SELECT 'pipeline_tag:' || (xet.hub_texts($2 -> 'pipeline_tag'))[1]
            UNION
            SELECT 'library:' || xet.hub_library($2)) AS m(mark)
     WHERE m.mark IS NOT NULL;
$$;


-- Returns the card of a file in a repo; NULL if the repo does not have the file
-- any more, or if the file has no card.

CREATE FUNCTION xet.hub_card(repo bigint, file bigint)
    RETURNS text
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    stored  bigint;
BEGIN
    IF file IS NULL THEN
        RETURN NULL;
    END IF;

    stored := xet.hub_files_of(repo);

    RETURN (SELECT c.card
              FROM xet.hub_cards c
             WHERE c.file_id = $2
               AND EXISTS (SELECT FROM xet.repo_files rf
                            WHERE rf.file_id = $2 AND rf.repo_id = stored));
END;
$$;


-- Returns the file README.md of a commit, if its card is known.

CREATE FUNCTION xet.hub_card_at(repo bigint, lines integer[], seqs integer[])
    RETURNS bigint
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    text_hash  bytea;
BEGIN
    SELECT p.hash INTO text_hash
      FROM xet.hub_at(repo, lines, seqs, 'README.md') p;

    IF text_hash IS NULL THEN
        RETURN NULL;
    END IF;

    text_hash := xet.hub_hash(text_hash);

    RETURN (SELECT c.file_id
              FROM (SELECT f.id FROM xet.files f WHERE f.hash = text_hash) f
             CROSS JOIN LATERAL (SELECT k.file_id FROM xet.hub_cards k
                                  WHERE k.file_id = f.id) c);
END;
$$;


-- Sets the card and the size of a repo to those of a commit, the last one of
-- main.

CREATE FUNCTION xet.hub_card_set(repo bigint, oid bytea)
    RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    r  record;
BEGIN
    SELECT h.kind, h.card, h.marks, h.bytes = c.bytes AS sized, c.bytes,
           xet.hub_card_at($1, x.lines, x.seqs) AS file
      INTO r
      FROM xet.hub_commit_of($1, $2) c
     CROSS JOIN LATERAL xet.hub_line($1, c.line, c.seq) x
      JOIN xet.hub_repos h ON h.id = $1;

    IF r.file IS NOT DISTINCT FROM r.card THEN

        IF r.sized IS NOT FALSE THEN
            RETURN;
        END IF;

    ELSE
        r.marks := (SELECT xet.hub_marks(r.kind, c.card::json)
                      FROM xet.hub_cards c
                     WHERE c.file_id = r.file);
    END IF;

    UPDATE xet.hub_repos h
       SET card = r.file, marks = r.marks, bytes = r.bytes
     WHERE h.id = $1;
END;
$$;


-- Returns the hash of the file that a staged commit puts at README.md, if the
-- card of that file is not known yet; no row otherwise.  uploads is the name in
-- xet.repos that the file was uploaded to.

CREATE FUNCTION xet.hub_card_wanted(asked xet.hub_asked, uploads text,
    rev text, upload bytea)
    RETURNS TABLE (hash bytea)
    LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
DECLARE
    o       record;
    r       record;
    stored  bigint;
BEGIN
    IF NOT xet.hub_may(asked, asked.owner, uploads) THEN
        RETURN;
    END IF;

    SELECT s.op, s.sha256, s.type, s.source INTO o
      FROM xet.hub_staged_ops($4) s
     WHERE s.path = 'README.md'
     ORDER BY s.n DESC LIMIT 1;

    -- 7 copies a path of the repo

    IF o.op = 7 THEN
        r := xet.hub_find(asked, true);

        SELECT s.sha256 INTO o.sha256
          FROM xet.hub_source(r.id, coalesce(o.type, $3), o.source) s;

    ELSIF o.op IS DISTINCT FROM 2 THEN
        RETURN;
    END IF;

    SELECT x.id INTO stored FROM xet.repos x WHERE x.name = $2;

    RETURN QUERY
    SELECT f.hash
      FROM xet.hub_claimed(stored, o.sha256) f
     WHERE f.proven = o.sha256
       AND NOT EXISTS (SELECT FROM xet.hub_cards c WHERE c.file_id = f.id);
END;
$$;


-- Records the card of a file in a repo, NULL if the file has none.  Returns
-- whether the repo has the file.

CREATE FUNCTION xet.hub_card_put(store text, file bytea, card text)
    RETURNS boolean
    LANGUAGE sql
AS $$
    INSERT INTO xet.hub_cards (file_id, card)
    SELECT f.id, $3
      FROM (SELECT f.id FROM xet.files f WHERE f.hash = $2
                FOR KEY SHARE) f
     CROSS JOIN LATERAL (SELECT FROM xet.repo_files rf
                           JOIN xet.repos x ON x.id = rf.repo_id
                          WHERE rf.file_id = f.id AND x.name = $1
                          LIMIT 1) rf
    ON CONFLICT DO NOTHING;

    SELECT EXISTS (SELECT FROM xet.repo_files rf
                     JOIN xet.repos x ON x.id = rf.repo_id
                     JOIN xet.files f ON f.id = rf.file_id
                    WHERE f.hash = $2 AND x.name = $1);
$$;


-- Returns up to "most" repos with all of these marks, in no order.

CREATE FUNCTION xet.hub_marked(marks text[], most integer)
    RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    SET enable_bitmapscan = on
    SET plan_cache_mode = force_custom_plan
AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(h.id), '{}')
              FROM (SELECT r.id FROM xet.hub_repos r
                     WHERE r.marks @> $1
                     LIMIT most) h);
END;
$$;


-- Returns up to "most" repos of some kinds that the caller may see, after the
-- position (after, last), in an order: recently changed first (changed_at),
-- recently created first (created_at), the largest first (bytes), or by name.
-- n is the position on the page, and key is the key of the order; the position
-- of a repo is its key and id.  asked may limit the repos to one owner, and to
-- names that contain a string; words are further such strings.  marks are
-- values that the repos must have, from xet.hub_marks().
--
-- The search checks up to 5,000 repos of each kind.  If there are more repos,
-- and few of those checked match, the last row is not a repo of the page but
-- the position where the search stopped.  If up to 5,000 repos have the marks,
-- these are checked instead.  The indexes hub_repos_changed, hub_repos_owner,
-- and the two for "created" have the order of the result.  The plan is made for
-- the arguments: a generic plan would not use the index of the owner.
--
-- The orders by size and name are for up to 5,000 repos; the only row for more
-- is a stop.  With an index and a position of a stop, a caller could find out
-- the size or the name of a hidden repo from the repos after it.

CREATE FUNCTION xet.hub_newest(kinds integer[], asked xet.hub_asked,
    after text, last bigint, most integer, marks text[] DEFAULT NULL,
    words text[] DEFAULT NULL, sort text DEFAULT 'changed_at')
    RETURNS TABLE (n bigint, stopped boolean, id bigint, key text,
                   repo xet.hub_repos)
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
#variable_conflict use_column
DECLARE
    looked  CONSTANT integer := 5000;
    hits    bigint[];
BEGIN
    IF $6 IS NOT NULL THEN
        hits := xet.hub_marked($6, looked + 1);
    END IF;

    IF sort IN ('bytes', 'name')
       AND (hits IS NULL OR cardinality(hits) > looked)
    THEN
        SELECT coalesce(array_agg(h.id), '{}') INTO hits
          FROM (SELECT r.id
                  FROM xet.hub_repos r
                 WHERE r.kind = ANY ($1)
                   AND (($2).owner IS NULL
                        OR lower(r.owner) = lower(($2).owner))
                 LIMIT looked + 1) h;

        IF cardinality(hits) > looked THEN
            RETURN QUERY SELECT 1::bigint, true, NULL::bigint, NULL::text,
                                NULL::xet.hub_repos;
            RETURN;
        END IF;
    END IF;

    IF cardinality(hits) <= looked THEN
        RETURN QUERY EXECUTE format($sql$
            SELECT row_number() OVER (ORDER BY q.key %2$s, q.id %2$s), false,
                   q.id, q.key::text, q.whole
              FROM (SELECT h.*, %1$s AS key
                      FROM unnest($1) AS u(id)
                     CROSS JOIN LATERAL (SELECT r AS whole, r.*
                                           FROM xet.hub_repos r
                                          WHERE r.id = u.id
                                         OFFSET 0) h) q
             WHERE q.kind = ANY ($8)
               AND (($2).owner IS NULL
                    OR lower(q.owner) = lower(($2).owner))
               AND ($3 IS NULL OR (q.key, q.id) %3$s ($3::%4$s, $4))
               AND xet.hub_matches($2, $6, q.whole)
               AND ($7 IS NULL OR q.marks @> $7)
             ORDER BY q.key %2$s, q.id %2$s
             LIMIT $5$sql$,
            CASE sort WHEN 'bytes' THEN 'h.bytes'
                      WHEN 'name' THEN $e$lower(h.owner || '/' || h.name)
                                          COLLATE "C"$e$
                      ELSE 'extract(epoch FROM h.' || quote_ident(sort) || ')'
            END,
            CASE sort WHEN 'name' THEN 'ASC' ELSE 'DESC' END,
            CASE sort WHEN 'name' THEN '>' ELSE '<' END,
            CASE sort WHEN 'name' THEN 'text' ELSE 'numeric' END)
        USING hits, asked, after, last, most, words, $6, kinds;
        RETURN;
    END IF;

    RETURN QUERY EXECUTE format($sql$
    WITH found AS MATERIALIZED (
        SELECT w.*
          FROM unnest($1) AS k
         CROSS JOIN LATERAL (
                   SELECT q.*
                     FROM (SELECT r AS whole, r.*
                             FROM xet.hub_repos r
                            WHERE r.kind = k
                              AND (($2).owner IS NULL
                                   OR lower(r.owner) = lower(($2).owner))
                              AND ($3 IS NULL
                                   OR (r.%1$I, r.id) < ($3, $4))
                            ORDER BY r.%1$I DESC, r.id DESC
                            LIMIT $8) q
                    WHERE xet.hub_matches($2, $6, q.whole)
                      AND ($7 IS NULL OR q.marks @> $7)
                    ORDER BY q.%1$I DESC, q.id DESC
                    LIMIT $5
               ) w
    ), stops AS MATERIALIZED (
        SELECT p.%1$I, p.id
          FROM unnest($1) AS k
         CROSS JOIN LATERAL (
                   SELECT r.%1$I, r.id
                     FROM xet.hub_repos r
                    WHERE r.kind = k
                      AND (($2).owner IS NULL
                           OR lower(r.owner) = lower(($2).owner))
                      AND ($3 IS NULL OR (r.%1$I, r.id) < ($3, $4))
                    ORDER BY r.%1$I DESC, r.id DESC
                   OFFSET $8 - 1
                    LIMIT 1
               ) p
         WHERE (SELECT count(*) FROM found f WHERE f.kind = k) < $5
         ORDER BY p.%1$I DESC, p.id DESC
         LIMIT 1
    ), page AS MATERIALIZED (
        SELECT f.id, f.%1$I, f.whole
          FROM found f
          LEFT JOIN stops s ON true
         WHERE s.id IS NULL OR (f.%1$I, f.id) >= (s.%1$I, s.id)
         ORDER BY f.%1$I DESC, f.id DESC
         LIMIT $5
    )
    SELECT row_number() OVER (ORDER BY p.%1$I DESC, p.id DESC), false, p.id,
           extract(epoch FROM p.%1$I)::text, p.whole
      FROM page p
    UNION ALL
    SELECT $5::bigint + 1, true, s.id, extract(epoch FROM s.%1$I)::text,
           NULL::xet.hub_repos
      FROM stops s
     WHERE (SELECT count(*) FROM page) < $5$sql$, sort)
    USING kinds, asked, to_timestamp(after::numeric), last, most, words, $6,
          looked;
END;
$$;


-- Returns whether a list shows a repo: the caller may see the repo, and its
-- name contains the strings.

CREATE FUNCTION xet.hub_matches(asked xet.hub_asked, words text[],
    repo xet.hub_repos)
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (($1).name IS NULL
            OR strpos(lower(($3).owner || '/' || ($3).name),
                      lower(($1).name)) > 0)
           AND ($2 IS NULL
                OR NOT EXISTS (SELECT FROM unnest($2) AS u(word)
                                WHERE strpos(lower(($3).owner || '/'
                                                   || ($3).name),
                                             lower(u.word)) = 0))
           AND (NOT ($3).private
                OR xet.hub_may($1, ($3).owner, xet.hub_store(($3).store)));
$$;


-- Returns the description of a repo at a commit, as JSON; card is the card of
-- that commit, whole is whether to add all of the card, and more is the JSON of
-- further members, or empty.
--
-- The two omitted members would break huggingface_hub, which passes a card as
-- arguments to a constructor with parameters of these names.

CREATE FUNCTION xet.hub_describe(r xet.hub_repos, oid bytea, card text,
    whole boolean, more text)
    RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT '{"_id":"' || lpad(to_hex((r).id), 24, '0')
           || '","id":' || to_json((r).owner || '/' || (r).name)
           || CASE WHEN (r).kind = 0
                   THEN ',"modelId":' || to_json((r).owner || '/' || (r).name)
                   ELSE '' END
           || ',"author":' || to_json((r).owner)
           || ',"sha":"' || encode(oid, 'hex')
           || '","lastModified":"' || xet.hub_date((r).changed_at)
           || '","createdAt":"' || xet.hub_date((r).created_at)
           || '","private":' || (r).private
           || ',"gated":false,"disabled":false,"xetEnabled":true'
           || ',"downloads":0,"likes":0'
           || ',"tags":' || to_json(xet.hub_tags((r).kind, card::json))
           || coalesce(CASE (r).kind WHEN 0 THEN ',"pipeline_tag":'
                       WHEN 2 THEN ',"sdk":' END
                       || to_json((xet.hub_texts(card::json
                                   -> CASE (r).kind WHEN 0 THEN 'pipeline_tag'
                                           ELSE 'sdk' END))[1]), '')
           || coalesce(CASE WHEN (r).kind = 0 THEN ',"library_name":' END
                       || to_json(xet.hub_library(card::json)), '')
           || CASE WHEN NOT whole THEN ''
                   ELSE ',"cardData":'
                        || CASE WHEN card ~ '"(self|ignore_metadata_errors)":'
                                THEN (card::jsonb
                                      - '{self,ignore_metadata_errors}'::text[]
                                     )::text
                                ELSE coalesce(card, 'null') END
                        || CASE WHEN (r).kind <> 0 OR card IS NULL THEN ''
                                ELSE coalesce(',"model-index":'
                                              || (card::json -> 'model-index'),
                                              '') END END
           || more || '}';
$$;


-- Returns a part of the files of a repo at a commit, as JSON, in the order of
-- paths: up to "most" files after a path.  n is their number, and last is the
-- last path.  now is whether the commit is the last one of its line.

CREATE FUNCTION xet.hub_siblings(repo bigint, lines integer[], seqs integer[],
    now boolean, blobs boolean, after text, most integer, OUT files text,
    OUT n bigint, OUT last text)
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    SELECT string_agg('{"rfilename":' || to_json(p.path)
                      || CASE WHEN NOT blobs THEN ''
                              WHEN p.size = 0 THEN ',"size":0'
                                   ',"blobId":"e69de29bb2d1d6434b8b29ae775ad8'
                                   'c2e48c5391"'
                              ELSE ',"size":' || p.size || ',"blobId":"'
                                   || encode(substr(p.sha256, 1, 20), 'hex')
                                   || '","lfs":{"size":' || p.size
                                   || ',"sha256":"' || encode(p.sha256, 'hex')
                                   || '","pointerSize":134}' END
                      || '}', ',' ORDER BY p.path),
           count(*), max(p.path COLLATE "C")
      INTO files, n, last
      FROM ((SELECT h.path, h.size, h.sha256
               FROM xet.hub_paths h
              WHERE now AND h.repo_id = $1 AND h.line = lines[1]
                AND h.path > after AND h.till = 2147483647
                AND h.hash IS NOT NULL
              ORDER BY h.path LIMIT most)
            UNION ALL
            (SELECT h.path, h.size, h.sha256
               FROM xet.hub_walk($1, lines, seqs, NULL, after,
                                 repeat(U&'\+10FFFF', 1024), true, most) h
              WHERE NOT now)) p;
END;
$$;


-- Returns the description of a repo, in parts, with its files if siblings is
-- set.  rest is the position of the next part, at the same commit; NULL after
-- the last part.

CREATE FUNCTION xet.hub_info(asked xet.hub_asked, rev text, blobs boolean,
    rest text, siblings boolean DEFAULT true)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
AS $$
DECLARE
    r      record;
    f      record;
    after  text := '';
    most   integer := 256;
    body   text;
BEGIN
    IF rest IS NOT NULL THEN
        rev := left(rest, 40);
        after := substr(rest, 41);
    END IF;

    r := xet.hub_open(asked, false, CASE WHEN asked.kind <> 3 THEN rev END,
                      '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    IF asked.kind = 3 THEN
        SELECT '{"id":' || to_json(h.owner || '/' || h.name)
               || ',"author":' || to_json(h.owner)
               || ',"private":' || h.private
               || ',"createdAt":"' || xet.hub_date(h.created_at)
               || '","updatedAt":"' || xet.hub_date(h.changed_at)
               || '","size":' || l.bytes || ',"totalFiles":' || l.files || '}'
          INTO body
          FROM xet.hub_repos h
          JOIN xet.hub_lines l ON l.repo_id = h.id AND l.line = 0
         WHERE h.id = r.id;

        RETURN xet.hub_says(200, body => body, more => r.more);
    END IF;

    IF rest IS NULL THEN
        SELECT left(xet.hub_describe(h, r.oid,
                        xet.hub_card(r.id, xet.hub_card_at(r.id, r.lines,
                                                           r.seqs)), true,
                        ',"usedStorage":' || CASE WHEN k.seq = l.last
                                                  THEN l.bytes
                                                  ELSE k.bytes END), -1)
               || CASE WHEN siblings THEN ',"siblings":[' ELSE '}' END
          INTO body
          FROM xet.hub_repos h
         CROSS JOIN LATERAL xet.hub_commit_of(h.id, r.oid) k
          JOIN xet.hub_lines l ON l.repo_id = h.id AND l.line = k.line
         WHERE h.id = r.id;
    END IF;

    IF NOT siblings THEN
        RETURN xet.hub_says(200, body => body, more => r.more);
    END IF;

    f := xet.hub_siblings(r.id, r.lines, r.seqs, r.now, blobs, after, most);

    body := coalesce(body, CASE WHEN f.n > 0 THEN ',' END, '')
            || coalesce(f.files, '')
            || CASE WHEN f.n < most THEN ']}' ELSE '' END;

    RETURN xet.hub_says(200, body => body, more => r.more,
                        rest => CASE WHEN f.n = most
                                     THEN encode(r.oid, 'hex') || f.last END);
END;
$$;


-- Returns the JSON of a repo in a list.  whole is whether to add its card, and
-- siblings is whether to add its files, unless there are more than 5,000.

CREATE FUNCTION xet.hub_listed(repo xet.hub_repos, card text, whole boolean,
    siblings boolean)
    RETURNS text
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    head  bytea;
    more  text;
BEGIN
    SELECT f.oid INTO head
      FROM xet.hub_refs f
     WHERE f.repo_id = repo.id AND f.name = 'heads/main';

    IF siblings THEN
        SELECT ',"siblings":[' || coalesce(s.files, '') || ']' INTO more
          FROM xet.hub_commit_of(repo.id, head) k
          JOIN xet.hub_lines l ON l.repo_id = k.repo_id AND l.line = k.line
         CROSS JOIN LATERAL xet.hub_line(repo.id, k.line, k.seq) x
         CROSS JOIN LATERAL xet.hub_siblings(repo.id, x.lines, x.seqs,
                                             k.seq = l.last, false, '',
                                             5000) s
         WHERE CASE WHEN k.seq = l.last THEN l.files ELSE k.files END <= 5000;
    END IF;

    RETURN xet.hub_describe(repo, head, card, whole, ',"usedStorage":'
                            || repo.bytes || coalesce(more, ''));
END;
$$;


-- Returns a page of the repos of a kind; after is the end of the page before.
-- A page of a search may have few repos, or no repos, and still have a next
-- page.  A page ends after a MiB.  sort, marks and words are those of
-- xet.hub_newest(), as UTF-8; whole and siblings are those of xet.hub_listed().

CREATE FUNCTION xet.hub_list(asked xet.hub_asked, most integer, after text,
    marks bytea[] DEFAULT NULL, words bytea[] DEFAULT NULL,
    sort text DEFAULT 'changed_at', whole boolean DEFAULT false,
    siblings boolean DEFAULT false)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    n      record;
    card   text;
    item   text;
    items  text[] := '{}';
    more   text;
    last   text;
    rows   integer := 0;
    bytes  bigint := 0;
    wants  text[];
BEGIN
    IF after !~ (CASE sort WHEN 'name' THEN '^[^/]+/[^/]+/\d{1,18}$'
                           WHEN 'bytes' THEN '^\d{1,18}/\d{1,18}$'
                           ELSE '^\d{1,12}(\.\d{1,6})?/\d{1,18}$' END)
    THEN
        RETURN xet.hub_says(400, 'invalid_cursor', 'Malformed cursor');
    END IF;

    SELECT array_agg(asked.kind || ':' || convert_from(m, 'UTF8')) INTO wants
      FROM unnest(marks) AS m;

    FOR n IN SELECT l.*, l.key || '/' || l.id AS at
               FROM xet.hub_newest(ARRAY[asked.kind], asked,
                        substring(after FROM '^(.*)/'),
                        substring(after FROM '[^/]*$')::bigint, most, wants,
                        (SELECT array_agg(convert_from(w, 'UTF8'))
                           FROM unnest(words) AS w), sort) l
              ORDER BY l.n
    LOOP
        IF n.id IS NULL THEN
            RETURN xet.hub_says(400, 'too_many_repos',
                'More than 5,000 repos can be sorted only by their dates');
        END IF;

        IF n.stopped OR bytes > 1048576 THEN
            more := CASE WHEN n.stopped THEN n.at ELSE last END;
            EXIT;
        END IF;

        rows := rows + 1;
        last := n.at;
        more := CASE WHEN rows = most THEN last END;

        IF asked.kind = 3 THEN
            SELECT '{"id":' || to_json((n.repo).owner || '/' || (n.repo).name)
                   || ',"author":' || to_json((n.repo).owner)
                   || ',"private":' || (n.repo).private
                   || ',"createdAt":"' || xet.hub_date((n.repo).created_at)
                   || '","updatedAt":"' || xet.hub_date((n.repo).changed_at)
                   || '","size":' || (n.repo).bytes
                   || ',"totalFiles":' || x.files || '}'
              INTO item
              FROM xet.hub_lines x
             WHERE x.repo_id = n.id AND x.line = 0;

        ELSE
            card := xet.hub_card(n.id, (n.repo).card);

            -- the file README.md may have been removed since the commit

            CONTINUE WHEN wants IS NOT NULL AND card IS NULL;

            item := xet.hub_listed(n.repo, card, whole, siblings);
        END IF;

        IF item IS NOT NULL THEN
            items := items || item;
            bytes := bytes + length(item);
        END IF;
    END LOOP;

    -- a name without an owner, as in api/buckets/NAME, is not found; nor is an
    -- owner of whom the caller may see nothing

    IF asked.kind = 3 AND rows = 0 AND after IS NULL AND words IS NULL
       AND lower(asked.owner COLLATE "C") <> ALL (asked.spaces)
       AND NOT EXISTS (SELECT FROM xet.hub_newest('{0,1,2,3}', asked, NULL,
                                                  NULL, 1))
    THEN
        RETURN xet.hub_says(404, 'RepoNotFound', 'Repository not found');
    END IF;

    RETURN xet.hub_says(200, body => '[' || array_to_string(items, ',') || ']',
                        more => more);
END;
$$;


-- Returns a page of the repos and buckets of an owner that the caller may see,
-- recently changed first, with their sizes.

CREATE FUNCTION xet.hub_own(asked xet.hub_asked, most integer, after text)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
    SET plan_cache_mode = force_custom_plan
AS $$
DECLARE
    body  text;
    more  text;
BEGIN
    IF after !~ '^\d{1,12}(\.\d{1,6})?/\d{1,18}$' THEN
        RETURN xet.hub_says(400, 'invalid_cursor', 'Malformed cursor');
    END IF;

    SELECT '[' || coalesce(string_agg('{"id":'
               || to_json(l.owner || '/' || l.name) || ',"type":"'
               || ('{model,dataset,space,bucket}'::text[])[l.kind + 1]
               || '","updatedAt":"' || xet.hub_date(l.changed_at)
               || '","visibility":"'
               || CASE WHEN l.private THEN 'private' ELSE 'public' END
               || '","storage":' || l.bytes || '}', ',' ORDER BY n.n)
               FILTER (WHERE NOT n.stopped), '') || ']',
           CASE WHEN count(*) = most OR bool_or(n.stopped)
                THEN (array_agg(n.key || '/' || n.id ORDER BY n.n DESC))[1]
           END
      INTO body, more
      FROM xet.hub_newest('{0,1,2,3}', asked,
                          split_part(after, '/', 1),
                          split_part(after, '/', 2)::bigint, most) n
     CROSS JOIN LATERAL (SELECT (n.repo).*) l;

    RETURN xet.hub_says(200, body => body, more => more);
END;
$$;
