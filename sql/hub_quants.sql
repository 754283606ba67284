-- Functions for pulls of GGUF files by a tag, as from a container registry: by
-- llama.cpp, node-llama-cpp and Ollama.  A tag is a quantization such as
-- "Q4_K_M", in any case, or the name of a file, or "latest".  Only "main" is
-- searched.


-- Returns up to 1,000 GGUF files of a commit, in the order of paths.  words is
-- the path in lower case without extension and number of the part, with blanks
-- between its words.  part is 1 for a file that is not split.

CREATE FUNCTION xet.hub_ggufs(repo bigint, lines integer[], seqs integer[])
    RETURNS TABLE (path text, size bigint, sha256 bytea, part integer,
                   projector boolean, words text, quant text)
    LANGUAGE plpgsql STABLE
    SET enable_sort = off
AS $$
DECLARE
    now  boolean := xet.hub_is_last(repo, lines, seqs);
BEGIN
    RETURN QUERY
    SELECT f.path, f.size, f.sha256,
           coalesce(substring(f.path from '-(\d{5})-of-\d{5}\.gguf$')::integer,
                    1),
           f.path ~* '(mmproj|projector)[^/]*$',
           ' ' || translate(n.name, '/-.', '   ') || ' ',
           upper(substring(n.name from '.*(?:^|[-._/])((?:i?q|tq|mxfp|nvfp)\d'
                                       '(?:_[a-z0-9]+)*|b?f16|f32)'))
      FROM ((SELECT h.path, h.size, h.sha256
               FROM xet.hub_paths h
              WHERE now AND h.repo_id = $1 AND h.line = lines[1]
                AND h.till = 2147483647 AND h.path LIKE '%.gguf'
                AND h.hash IS NOT NULL
              ORDER BY h.path
              LIMIT 1000)
            UNION ALL
            (SELECT h.path, h.size, h.sha256
               FROM xet.hub_walk(repo, lines, seqs, NULL, '',
                                 repeat(U&'\+10FFFF', 1024), true, 10000) h
              WHERE NOT now AND h.path LIKE '%.gguf'
              LIMIT 1000)) f
     CROSS JOIN LATERAL (
               SELECT lower(regexp_replace(f.path, '(-\d{5}-of-\d{5})?\.gguf$',
                                           '')) AS name) n
     WHERE f.size > 0;
END;
$$;


-- Returns how well the name of a GGUF file matches a tag: 1 for its file name,
-- 2 for words of its path, NULL for no match.  "Q4_K" does not match "Q4_K_M".

CREATE FUNCTION xet.hub_tagged(path text, words text, tag text)
    RETURNS integer
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN lower($3) IN (f.name, regexp_replace(f.name, '\.gguf$',
                                                          ''))
                THEN 1
                WHEN strpos($2, ' ' || w.tag || ' ') > 0
                     OR w.tag ~ '^(i?q|tq|mxfp|nvfp|b?f)\d'
                        AND strpos($2, '_' || w.tag || ' ') > 0
                THEN 2 END
      FROM (SELECT lower(substring($1 from '[^/]*$'))) AS f(name),
           (SELECT translate(lower($3), '/-.', '   ')) AS w(tag);
$$;


-- Returns the configuration that belongs to a GGUF file in a manifest.

CREATE FUNCTION xet.hub_config(sha256 bytea, quant text)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '{"model_format":"gguf","file_type":'
           || to_json(coalesce(quant, 'unknown'))
           || ',"architecture":"amd64","os":"linux","rootfs":{"type":"layers",'
              '"diff_ids":["sha256:' || encode(sha256, 'hex') || '"]}}';
$$;


CREATE FUNCTION xet.hub_layer(type text, size bigint, sha256 bytea)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '{"mediaType":' || to_json(type) || ',"digest":"sha256:'
           || encode(sha256, 'hex') || '","size":' || size || '}';
$$;


-- Returns a file of a manifest.  Its blobId is a digest, like those of the
-- layers, and not an id of git as in xet.hub_info(): ramalama refuses others.

CREATE FUNCTION xet.hub_sibling(path text, size bigint, sha256 bytea)
    RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '{"rfilename":' || to_json(path) || ',"size":' || size
           || ',"blobId":"sha256:' || encode(sha256, 'hex')
           || '","lfs":{"size":' || size || ',"sha256":"'
           || encode(sha256, 'hex') || '","pointerSize":134}}';
$$;


-- Returns the manifest for a tag.  The files "template", "system" and "params"
-- become layers of the model, as on huggingface.co.  layers is set for a client
-- that loads the layers, such as Ollama: it cannot load a split file, and shows
-- the message of a 400, but not of a 404.  Other clients read ggufFile and
-- mmprojFile, and find the other parts themselves.  more is the SHA-256 of the
-- manifest.

CREATE FUNCTION xet.hub_manifest(asked xet.hub_asked, tag text,
    layers boolean)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r       record;
    m       record;
    p       record;
    config  text;
    body    text;
    others  text;
BEGIN
    r := xet.hub_open(asked, false, 'main', '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    SELECT g.* INTO m
      FROM xet.hub_ggufs(r.id, r.lines, r.seqs) g
     CROSS JOIN LATERAL (
               SELECT CASE WHEN lower(tag) <> 'latest'
                           THEN xet.hub_tagged(g.path, g.words, tag)
                           ELSE coalesce(array_position(
                                    '{Q4_K_M,Q4_0,Q8_0}'::text[], g.quant), 9)
                           END) AS w(rank)
     WHERE w.rank IS NOT NULL AND g.part = 1
       AND (w.rank = 1 AND lower(tag) <> 'latest'
            OR NOT g.projector AND g.words !~ 'imatrix')
     ORDER BY w.rank, g.quant IS DISTINCT FROM upper(tag),
              CASE WHEN lower(tag) <> 'latest' THEN length(g.path) END, g.path
     LIMIT 1;

    IF NOT FOUND THEN
        SELECT string_agg(q.quant, ', ' ORDER BY q.quant) INTO others
          FROM (SELECT DISTINCT g.quant
                  FROM xet.hub_ggufs(r.id, r.lines, r.seqs) g
                 WHERE g.quant IS NOT NULL AND NOT g.projector AND g.part = 1
                 ORDER BY g.quant
                 LIMIT 40) q;

        RETURN xet.hub_says(CASE WHEN layers THEN 400 ELSE 404 END,
                            'EntryNotFound',
                            'The repository has no GGUF file for the tag "'
                            || tag || '"' || coalesce(', only for ' || others,
                                                      ''));
    END IF;

    IF layers AND m.path ~ '-\d{5}-of-\d{5}\.gguf$' THEN
        RETURN xet.hub_says(400, 'invalid_argument',
                            'The GGUF file for the tag "' || tag
                            || '" is split; clients of manifests cannot load'
                               ' it');
    END IF;

    SELECT g.* INTO p
      FROM xet.hub_ggufs(r.id, r.lines, r.seqs) g
     WHERE g.projector AND g.part = 1 AND g.path <> m.path
     ORDER BY xet.hub_folder(g.path) <> xet.hub_folder(m.path),
              g.quant IS DISTINCT FROM 'F16', g.path
     LIMIT 1;

    SELECT string_agg(',' || xet.hub_layer('application/vnd.ollama.image.'
                                           || u.name, h.size, h.sha256), ''
                      ORDER BY u.n)
      INTO others
      FROM unnest('{template,system,params}'::text[])
           WITH ORDINALITY AS u(name, n)
     CROSS JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs, u.name) h
     WHERE h.hash IS NOT NULL AND h.size > 0;

    config := xet.hub_config(m.sha256, m.quant);

    body := '{"schemaVersion":2,"mediaType":'
            '"application/vnd.docker.distribution.manifest.v2+json","config":'
            || xet.hub_layer('application/vnd.docker.container.image.v1+json',
                             octet_length(config),
                             sha256(convert_to(config, 'UTF8')))
            || ',"layers":['
            || xet.hub_layer('application/vnd.ollama.image.model', m.size,
                             m.sha256)
            || coalesce(',' || xet.hub_layer(
                                   'application/vnd.ollama.image.projector',
                                   p.size, p.sha256), '')
            || coalesce(others, '')
            || '],"ggufFile":' || xet.hub_sibling(m.path, m.size, m.sha256)
            || coalesce(',"mmprojFile":'
                        || xet.hub_sibling(p.path, p.size, p.sha256), '')
            || '}';

    RETURN xet.hub_says(200, body => body,
                        more => encode(sha256(convert_to(body, 'UTF8')),
                                       'hex'));
END;
$$;


-- Returns what a digest in a manifest of the repo stands for: body is the
-- configuration; or, for a file, code is the commit, message the path and more
-- the name of the repo.

CREATE FUNCTION xet.hub_blob(asked xet.hub_asked, digest text)
    RETURNS xet.hub_answer
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    r       record;
    sum     bytea;
    config  text;
    file    text;
BEGIN
    r := xet.hub_open(asked, false, 'main', '');

    IF r.status <> 200 THEN
        RETURN xet.hub_says(r.status, r.code, r.message, more => r.more);
    END IF;

    IF digest ~ '^sha256:[0-9a-f]{64}$' THEN
        sum := decode(substr(digest, 8), 'hex');
    END IF;

    SELECT coalesce(min(g.path COLLATE "C") FILTER (WHERE g.sha256 = sum),
                    (SELECT h.path
                       FROM unnest('{template,system,params}'::text[])
                            AS u(name)
                      CROSS JOIN LATERAL xet.hub_at(r.id, r.lines, r.seqs,
                                                    u.name) h
                      WHERE h.hash IS NOT NULL AND h.sha256 = sum
                      LIMIT 1)),
           min(c.text) FILTER (WHERE sha256(convert_to(c.text, 'UTF8')) = sum)
      INTO file, config
      FROM xet.hub_ggufs(r.id, r.lines, r.seqs) g
     CROSS JOIN LATERAL xet.hub_config(g.sha256, g.quant) AS c(text);

    IF file IS NOT NULL THEN
        RETURN xet.hub_says(200, encode(r.oid, 'hex'), file, more => r.more);
    END IF;

    IF config IS NULL THEN
        RETURN xet.hub_says(404, 'EntryNotFound', 'Blob not found');
    END IF;

    RETURN xet.hub_says(200, body => config);
END;
$$;
