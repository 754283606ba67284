-- Rights of a Hub.  No "compatible from": functions take their rights in
-- another form, see xet.hub_may(), and workers of before can't call them.

-- The number of what uploads of a repo belong to, see xet.hub_store().  The
-- repo gets another one when it becomes private; none is used twice.

ALTER TABLE xet.hub_repos ADD COLUMN store bigint;

UPDATE xet.hub_repos SET store = id;

ALTER TABLE xet.hub_repos ALTER COLUMN store SET NOT NULL;
ALTER TABLE xet.hub_repos ALTER COLUMN store
    ADD GENERATED ALWAYS AS IDENTITY;

DO $$ BEGIN
    PERFORM setval(pg_get_serial_sequence('xet.hub_repos', 'store'),
                   s.last_value, s.is_called)
       FROM xet.hub_repos_id_seq s;
END $$;

CREATE UNIQUE INDEX hub_repos_store ON xet.hub_repos (store);
