-- Functions for the cached checks of zTensor files.


-- Returns the result of the check of a file by these rules; no row if there is
-- no result.  Callers must first open the file, which checks that they may see
-- it.  The file is looked up first: while the table is empty, the planner may
-- prefer a join by the rules only.  That plan, once cached, would scan all
-- results.

CREATE FUNCTION xet.zt_get(file bytea, rules bigint, with_attributes boolean)
    RETURNS TABLE (verdict bytea, attributes bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT z.verdict, CASE WHEN with_attributes THEN z.attributes END
      FROM xet.zt_files z
     WHERE z.file_id = (SELECT f.id FROM xet.files f
                         WHERE f.hash = zt_get.file)
       AND z.rules = zt_get.rules;
$$;


-- Records the result of a check, which replaces an earlier one: all checks of
-- a file by the same rules have the same result.

CREATE FUNCTION xet.zt_put(file bytea, rules bigint, verdict bytea,
    attributes bytea)
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    INSERT INTO xet.zt_files AS z (file_id, rules, verdict, attributes)
    SELECT f.id, $2, $3, $4
      FROM xet.files f
     WHERE f.hash = $1
    ON CONFLICT (file_id, rules) DO UPDATE
       SET verdict = excluded.verdict, attributes = excluded.attributes,
           checked_at = excluded.checked_at;

    SELECT 1;
$$;


-- Returns the reports of the verified objects among objects first..last of a
-- file.

CREATE FUNCTION xet.zt_reports_get(file bytea, rules bigint, first bigint,
    last bigint)
    RETURNS TABLE (object bigint, report bytea)
    LANGUAGE sql STABLE PARALLEL SAFE
AS $$
    SELECT z.object, z.report
      FROM xet.zt_reports z
     WHERE z.file_id = (SELECT f.id FROM xet.files f
                         WHERE f.hash = zt_reports_get.file)
       AND z.rules = zt_reports_get.rules
       AND z.object BETWEEN zt_reports_get.first AND zt_reports_get.last
     ORDER BY z.object;
$$;


-- Records reports of objects.  All requests insert rows in the same order;
-- otherwise two requests could deadlock.

CREATE FUNCTION xet.zt_reports_put(file bytea, rules bigint,
    objects bigint[], reports bytea[])
    RETURNS integer
    LANGUAGE sql
    SET lock_timeout = '1s'
AS $$
    INSERT INTO xet.zt_reports (file_id, rules, object, report)
    SELECT f.id, $2, w.object, w.report
      FROM xet.files f, unnest($3, $4) AS w(object, report)
     WHERE f.hash = $1
     ORDER BY w.object
    ON CONFLICT (file_id, rules, object) DO UPDATE
       SET report = excluded.report, checked_at = now();

    SELECT 1;
$$;
