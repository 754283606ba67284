-- Copyright (C) the ngx_http_xet_module authors

-- Cuts the tables that grow into partitions by hash, for "xet migrate
-- --partitions N", which runs this file in its session, behind migrate.sql and
-- all migrations, and calls pg_temp.partition(N) in a transaction of its own:
-- what is broken off has changed nothing.
--
-- The rows are copied, so it takes the time and the room of a copy, and nobody
-- reads or writes these tables meanwhile: servers wait, and tell their clients
-- to come again.  N = 1 makes each of them one table again.
--
-- The keys are ids, and of chunks the hash, so that what belongs together by
-- a foreign key of an id is found by it.  PostgreSQL can hold no hash unique
-- over partitions that are cut by ids.  So xet.xorb_names and xet.file_names
-- do, which are cut by hashes: triggers keep them, whatever writes.
--
-- A migration that comes later is for both forms; sql/migrate.sql says what it
-- may do.

-- The copy may take hours.

SET statement_timeout = 0;


-- What grows, and by which column it is cut.

CREATE OR REPLACE FUNCTION pg_temp.partition_tables()
    RETURNS TABLE (name text, key text)
    LANGUAGE sql
AS $$
    VALUES ('xorbs', 'id'), ('files', 'id'), ('chunks', 'hash'),
           ('terms', 'file_id'), ('file_xorbs', 'xorb_id');
$$;


-- How many partitions there are; 1: none.

CREATE OR REPLACE FUNCTION pg_temp.partitions()
    RETURNS bigint
    LANGUAGE sql
AS $$
    SELECT greatest(count(*), 1) FROM pg_inherits i
     WHERE i.inhparent = 'xet.xorbs'::regclass;
$$;


-- What a table has beside its columns and checks, as statements that make it
-- again, in the order in which it was made: of indexes that look as good a plan
-- takes the one that it has met first.
--
-- A key that does not have the column by which the table is cut can be an index
-- only, for one table it is what it was.  It gets that column, or a plan might
-- ask for the id of a hash behind the index, only where it has found one: time
-- would tell.

CREATE OR REPLACE FUNCTION pg_temp.partition_parts(name text, key text,
    n integer)
    RETURNS SETOF text
    LANGUAGE plpgsql
AS $$
DECLARE
    rel regclass := format('xet.%I', name);
BEGIN
    RETURN QUERY
    SELECT CASE WHEN k.conname IS NULL AND n = 1 AND k.hashes
                THEN format('ALTER TABLE %s ADD UNIQUE (hash)', rel)
                WHEN k.conname IS NULL
                THEN replace(pg_get_indexdef(k.oid), ' ON ONLY ', ' ON ')
                WHEN n = 1 OR key = ANY (k.columns)
                THEN format('ALTER TABLE %s ADD CONSTRAINT %I %s', rel,
                            k.conname, k.def)
                ELSE format('CREATE INDEX %I ON %s (%s)', k.conname, rel,
                            (SELECT string_agg(quote_ident(c), ', ')
                               FROM unnest(k.columns || key) AS c))
           END
      FROM (SELECT i.oid, c.conname, pg_get_constraintdef(c.oid) AS def,
                   i.relname = name || '_hash_key' AS hashes,
                   ARRAY(SELECT a.attname::text
                           FROM unnest(c.conkey) WITH ORDINALITY AS u(at, nth)
                           JOIN pg_attribute a ON a.attrelid = c.conrelid
                                              AND a.attnum = u.at
                          ORDER BY u.nth) AS columns
              FROM pg_index x
              JOIN pg_class i ON i.oid = x.indexrelid
              LEFT JOIN pg_constraint c ON c.conindid = i.oid
                                       AND c.conrelid = rel
                                       AND c.contype IN ('p', 'u')
             WHERE x.indrelid = rel) k
     ORDER BY k.oid;

    RETURN QUERY
    SELECT pg_get_triggerdef(t.oid)
           || CASE t.tgenabled WHEN 'O' THEN '' ELSE
              format('; ALTER TABLE %s %s TRIGGER %I', rel,
                     CASE t.tgenabled WHEN 'D' THEN 'DISABLE'
                                      WHEN 'A' THEN 'ENABLE ALWAYS'
                                      ELSE 'ENABLE REPLICA' END, t.tgname)
              END
      FROM pg_trigger t
      JOIN pg_proc p ON p.oid = t.tgfoid
     WHERE t.tgrelid = rel AND NOT t.tgisinternal
       AND p.proname NOT IN ('xorbs_named', 'files_named')
     ORDER BY t.tgname;
END;
$$;


-- Who may do what with a table and its columns, as statements; the owner may
-- what an owner may.  For whom: the table whose rights they are to be.

CREATE OR REPLACE FUNCTION pg_temp.partition_rights(name text, whom text)
    RETURNS SETOF text
    LANGUAGE sql
AS $$
    SELECT format('GRANT %s%s ON xet.%I TO %s%s', r.privilege_type,
                  ' (' || quote_ident(r.attname) || ')', whom,
                  CASE r.grantee WHEN 0 THEN 'PUBLIC'
                       ELSE quote_ident(pg_get_userbyid(r.grantee)) END,
                  CASE WHEN r.is_grantable THEN ' WITH GRANT OPTION'
                       ELSE '' END)
      FROM (SELECT a.privilege_type, NULL::name AS attname, a.grantee,
                   a.is_grantable
              FROM pg_class c, aclexplode(c.relacl) a
             WHERE c.oid = format('xet.%I', name)::regclass
               AND a.grantee <> c.relowner
            UNION ALL
            SELECT a.privilege_type, t.attname, a.grantee, a.is_grantable
              FROM pg_attribute t, aclexplode(t.attacl) a
             WHERE t.attrelid = format('xet.%I', name)::regclass
               AND whom = name) r;
$$;


-- What the ids of a table come from; NULL where it has none of its own.

CREATE OR REPLACE FUNCTION pg_temp.partition_sequence(rel regclass)
    RETURNS regclass
    LANGUAGE sql
AS $$
    SELECT d.objid::regclass
      FROM pg_depend d
      JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
     WHERE d.refobjid = rel AND d.refobjsubid > 0 AND d.deptype = 'i'
       AND d.classid = 'pg_class'::regclass
       AND d.refclassid = 'pg_class'::regclass;
$$;


-- A new form of a table, with its rows, in its place, and nothing else of what
-- it had: see pg_temp.partition_parts().

CREATE OR REPLACE FUNCTION pg_temp.partition_table(name text, key text,
    n integer)
    RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    old     regclass := format('xet.%I', name);
    seq     regclass := pg_temp.partition_sequence(old);
    names   text;
    options text;
BEGIN
    -- what was set for one partition is for all of them

    SELECT string_agg(o, ', ') INTO options
      FROM (SELECT DISTINCT unnest(c.reloptions) AS o
              FROM pg_class c
             WHERE c.relkind = 'r'
               AND (c.oid = old
                    OR c.oid IN (SELECT i.inhrelid FROM pg_inherits i
                                  WHERE i.inhparent = old))) r;

    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
      INTO names
      FROM pg_attribute a
     WHERE a.attrelid = old AND a.attnum > 0 AND NOT a.attisdropped
       AND a.attgenerated = '';

    EXECUTE format('CREATE TABLE xet.%I (LIKE %s INCLUDING ALL EXCLUDING'
                   ' INDEXES)%s%s', name || '_new', old,
                   CASE WHEN n > 1 THEN format(' PARTITION BY HASH (%I)', key)
                   END, CASE WHEN n = 1 THEN ' WITH (' || options || ')' END);

    IF n > 1 THEN
        PERFORM pg_temp.partition_leaves(name || '_new', name, n, options);
    END IF;

    EXECUTE format('INSERT INTO xet.%I (%s) OVERRIDING SYSTEM VALUE SELECT %2$s'
                   ' FROM %s', name || '_new', names, old);

    IF seq IS NOT NULL THEN
        EXECUTE format('SELECT setval(pg_temp.partition_sequence(%L),'
                       ' s.last_value, s.is_called) FROM %s s',
                       format('xet.%I', name || '_new'), seq);
    END IF;

    EXECUTE format('DROP TABLE %s', old);
    EXECUTE format('ALTER TABLE xet.%I RENAME TO %I', name || '_new', name);

    IF seq IS NOT NULL THEN
        EXECUTE format('ALTER SEQUENCE %s RENAME TO %I',
                       pg_temp.partition_sequence(format('xet.%I', name)),
                       name || '_id_seq');
    END IF;

    IF n > 1 THEN
        FOR i IN 0 .. n - 1 LOOP
            EXECUTE format('ALTER TABLE xet.%I RENAME TO %I',
                           name || '_new_' || i, name || '_' || i);
        END LOOP;
    END IF;
END;
$$;


CREATE OR REPLACE FUNCTION pg_temp.partition_leaves(parent text, name text,
    n integer, options text)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    FOR i IN 0 .. n - 1 LOOP
        EXECUTE format('CREATE TABLE xet.%I PARTITION OF xet.%I FOR VALUES'
                       ' WITH (MODULUS %s, REMAINDER %s)%s',
                       parent || '_' || i, parent, n, i,
                       ' WITH (' || options || ')');
    END LOOP;
END;
$$;


-- The names of xorbs or of files: hash and id, kept by triggers.  A name that
-- is taken makes the row one that is left out, as ON CONFLICT DO NOTHING does,
-- which is how rows are put; whoever is about to take it is waited for.  They
-- act with the rights of the owner: who may write a row may have it named.
--
-- A hash that has no row has the id -1, which is looked for like others: else
-- time tells what there is.

CREATE OR REPLACE FUNCTION pg_temp.partition_names(name text, n integer)
    RETURNS void
    LANGUAGE plpgsql
AS $all$
DECLARE
    one   text := left(name, -1);
    names text := left(name, -1) || '_names';
    act   text;
BEGIN
    EXECUTE format('CREATE TABLE xet.%I (hash bytea NOT NULL,'
                   ' id bigint NOT NULL) PARTITION BY HASH (hash)', names);

    PERFORM pg_temp.partition_leaves(names, names, n, NULL);

    EXECUTE format('INSERT INTO xet.%I SELECT r.hash, r.id FROM xet.%I r'
                   ' WHERE r.hash IS NOT NULL', names, name);

    EXECUTE format('ALTER TABLE xet.%I ADD PRIMARY KEY (hash)', names);

    FOR act IN SELECT r FROM pg_temp.partition_rights(name, names) r
                WHERE r LIKE 'GRANT SELECT %' LOOP
        EXECUTE act;
    END LOOP;

    EXECUTE replace(replace(replace($sql$
        CREATE OR REPLACE FUNCTION xet.{one}_row(hash bytea)
            RETURNS bigint
            LANGUAGE plpgsql STABLE PARALLEL SAFE
        AS $$
        #variable_conflict use_column
        BEGIN
            RETURN coalesce((SELECT n.id FROM xet.{names} n
                              WHERE n.hash = $1), -1);
        END;
        $$;

        CREATE OR REPLACE FUNCTION xet.{one}_at(id bigint, hash bytea)
            RETURNS boolean
            LANGUAGE sql STABLE PARALLEL SAFE
        AS $$
            SELECT id = xet.{one}_row(hash);
        $$;

        CREATE OR REPLACE FUNCTION xet.{all}_named()
            RETURNS trigger
            LANGUAGE plpgsql
            SECURITY DEFINER
            SET search_path = pg_catalog, pg_temp
        AS $$
        BEGIN
            IF TG_OP = 'TRUNCATE' THEN
                TRUNCATE xet.{names};
                RETURN NULL;
            END IF;

            IF TG_OP <> 'INSERT' AND OLD.hash IS NOT NULL THEN
                DELETE FROM xet.{names} n
                 WHERE n.hash = OLD.hash AND n.id = OLD.id;
            END IF;

            IF TG_OP <> 'DELETE' AND NEW.hash IS NOT NULL THEN
                INSERT INTO xet.{names} AS n (hash, id)
                VALUES (NEW.hash, NEW.id)
                ON CONFLICT DO NOTHING;

                IF NOT FOUND AND TG_OP = 'INSERT' THEN
                    RETURN NULL;

                ELSIF NOT FOUND THEN
                    RAISE EXCEPTION 'the hash has a row'
                          USING ERRCODE = 'unique_violation';
                END IF;
            END IF;

            RETURN NEW;
        END;
        $$;

        CREATE TRIGGER named BEFORE INSERT ON xet.{all}
            FOR EACH ROW EXECUTE FUNCTION xet.{all}_named();

        CREATE TRIGGER renamed AFTER DELETE OR UPDATE OF hash ON xet.{all}
            FOR EACH ROW EXECUTE FUNCTION xet.{all}_named();

        CREATE TRIGGER emptied AFTER TRUNCATE ON xet.{all}
            FOR EACH STATEMENT EXECUTE FUNCTION xet.{all}_named();
    $sql$, '{one}', one), '{names}', names), '{all}', name);
END;
$all$;


-- And for one table what 0016 has made.

CREATE OR REPLACE FUNCTION pg_temp.partition_nameless(name text)
    RETURNS void
    LANGUAGE plpgsql
AS $all$
DECLARE
    one text := left(name, -1);
BEGIN
    EXECUTE replace(replace($sql$
        DROP TABLE IF EXISTS xet.{one}_names;
        DROP FUNCTION IF EXISTS xet.{all}_named;

        CREATE OR REPLACE FUNCTION xet.{one}_at(id bigint, hash bytea)
            RETURNS boolean
            LANGUAGE sql IMMUTABLE PARALLEL SAFE
        AS $$
    SELECT true;
$$;

        DROP FUNCTION IF EXISTS xet.{one}_row;
    $sql$, '{one}', one), '{all}', name);
END;
$all$;


-- Locks the tables and those that refer to them.  Whoever comes while this
-- waits waits behind it, and with whoever has some of the tables and wants
-- others it is a deadlock.  So it gives back what it has after less than
-- deadlock_timeout, by the end of the subtransaction, and tries again, for a
-- minute.

CREATE OR REPLACE FUNCTION pg_temp.partition_lock()
    RETURNS void
    LANGUAGE plpgsql
    SET lock_timeout = '80ms'
AS $$
DECLARE
    names text;
BEGIN
    SELECT string_agg(DISTINCT l.name, ', ') INTO names
      FROM (SELECT format('xet.%I', p.name) AS name
              FROM pg_temp.partition_tables() p
            UNION ALL
            SELECT c.conrelid::regclass::text
              FROM pg_constraint c
              JOIN pg_temp.partition_tables() p
                ON c.confrelid = format('xet.%I', p.name)::regclass
             WHERE c.contype = 'f' AND c.conparentid = 0) l;

    LOOP
        BEGIN
            EXECUTE 'LOCK TABLE ' || names;

            RETURN;

        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF clock_timestamp() > now() + interval '1 minute' THEN
                RAISE EXCEPTION 'the tables are in use: %', SQLERRM
                      USING ERRCODE = 'lock_not_available';
            END IF;
        END;

        PERFORM pg_sleep(0.1 + 0.3 * random());
    END LOOP;
END;
$$;


-- True: the tables are cut anew; false: there are N partitions already.

CREATE OR REPLACE FUNCTION pg_temp.partition(n integer)
    RETURNS boolean
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t     record;
    f     record;
    act   text;
    parts text[] := '{}';
    keys  text[] := '{}';
    known boolean;
BEGIN
    IF n = pg_temp.partitions() THEN
        RETURN false;
    END IF;

    -- the new tables are of who makes them

    SELECT string_agg(DISTINCT pg_get_userbyid(c.relowner), ', ') INTO act
      FROM pg_class c
      JOIN pg_temp.partition_tables() p
        ON c.oid = format('xet.%I', p.name)::regclass;

    IF act <> current_user THEN
        RAISE EXCEPTION 'the tables belong to %, who has to do this', act;
    END IF;

    PERFORM pg_temp.partition_lock();

    SELECT string_agg(DISTINCT p.name, ', ') INTO act
      FROM pg_temp.partition_tables() p
     WHERE format('xet.%I', p.name)::regclass
           IN (SELECT o.polrelid FROM pg_policy o
               UNION ALL
               SELECT r.prrelid FROM pg_publication_rel r
               UNION ALL
               SELECT w.ev_class FROM pg_rewrite w);

    IF act <> '' THEN
        RAISE EXCEPTION 'policies, rules or publications of % would be lost: '
                        'drop them before, and make them again', act;
    END IF;

    SELECT s.tables = xet.store_tables() INTO known FROM xet.store s;

    -- keys that lead to these tables, or from them

    FOR f IN SELECT c.conrelid::regclass AS rel, c.conname AS name,
                    pg_get_constraintdef(c.oid) AS def
               FROM pg_constraint c
              WHERE c.contype = 'f' AND c.conparentid = 0
                AND EXISTS (SELECT FROM pg_temp.partition_tables() p
                             WHERE format('xet.%I', p.name)::regclass
                                   IN (c.conrelid, c.confrelid))
              ORDER BY 1, 2
    LOOP
        EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', f.rel, f.name);
        keys := keys || format('ALTER TABLE %s ADD CONSTRAINT %I %s', f.rel,
                               f.name, f.def);
    END LOOP;

    FOR t IN SELECT p.name, p.key FROM pg_temp.partition_tables() p LOOP
        parts := ARRAY(SELECT pg_temp.partition_parts(t.name, t.key, n));
        parts := parts || ARRAY(SELECT pg_temp.partition_rights(t.name,
                                                                t.name));

        PERFORM pg_temp.partition_table(t.name, t.key, n);

        FOREACH act IN ARRAY parts LOOP
            EXECUTE act;
        END LOOP;
    END LOOP;

    FOREACH act IN ARRAY keys LOOP
        EXECUTE act;
    END LOOP;

    FOREACH act IN ARRAY ARRAY['xorbs', 'files'] LOOP
        PERFORM pg_temp.partition_nameless(act);

        IF n > 1 THEN
            PERFORM pg_temp.partition_names(act, n);
        END IF;
    END LOOP;

    -- they are other tables, and know what they have known

    IF known THEN
        UPDATE xet.store s SET tables = xet.store_tables();
    END IF;

    RETURN true;
END;
$$;
