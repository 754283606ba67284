-- compatible from 14

-- Whether this database knows all copies of the store, but for what a crash
-- has left: else a copy without a row may be the only one of a xorb, and is no
-- orphan, however old it is.
--
-- tables: which tables knew all of them, and of which cluster.  It is another
-- text where a dump was restored, which knows nothing of what came after it.
-- NULL: "xet rebuild" has begun, and not come to its end.  since: what came to
-- the folder before that, came before this database.

ALTER TABLE xet.store
    ADD COLUMN tables text,
    ADD COLUMN since timestamptz NOT NULL DEFAULT now();


-- Not every role may ask for the number of the cluster.

CREATE FUNCTION xet.store_tables()
    RETURNS text
    LANGUAGE plpgsql STABLE
AS $$
DECLARE
    cluster bigint;
BEGIN
    BEGIN
        SELECT c.system_identifier INTO cluster FROM pg_control_system() c;

    EXCEPTION WHEN insufficient_privilege THEN
        NULL;
    END;

    RETURN concat_ws(' ', cluster, 'xet.store'::regclass::oid,
                     'xet.xorbs'::regclass::oid, 'xet.files'::regclass::oid);
END;
$$;

-- Whether this one came from a dump nobody can tell any more, so what was there
-- before this migration is left until somebody says more.

UPDATE xet.store SET tables = xet.store_tables();
