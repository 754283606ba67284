
-- Copyright (C) the ngx_http_xet_module authors

-- What decides about migrations, for "xet migrate", which runs this file first,
-- in the session in which it then applies the others.
--
-- Each NNNN_name.sql is applied once, in the order of its number, in one
-- transaction together with its row in xet.migrations: it is there whole or
-- not at all.  functions.sql is applied again whenever its text has changed,
-- and has the row of number 0.  A migration that was applied must never be
-- edited, which the kept SHA-256 tells.  A database that has a migration which
-- the folder does not is left as it is: its functions are newer, too.
--
-- All of it is one session under one advisory lock, so several nodes may
-- start at the same time.

set client_min_messages = warning;

do $$ begin
    perform pg_advisory_lock(hashtext('xet.migrations'));
end $$;

create schema if not exists xet;

create table if not exists xet.migrations (
    version     integer      primary key,
    name        text         not null,
    applied_at  timestamptz  not null default now()
);

alter table xet.migrations add column if not exists sha256 text;

comment on table xet.migrations is
    'what was applied; 0 is functions.sql, the rest are applied once';


-- The name of a migration behind the last one of the folder, or null.

create or replace function pg_temp.migration_newer(newest integer)
returns text language sql as $$
    select name from xet.migrations where version > newest
    order by version desc limit 1
$$;


-- 'new': to be applied; 'done'; or 'changed', which it must not be.

create or replace function pg_temp.migration_state(n integer, sum text)
returns text language sql as $$
    select case when m.version is null
                    or (n = 0 and m.sha256 is distinct from sum)
                    then 'new'
                when m.sha256 <> sum then 'changed'
                else 'done' end
    from (select n) as file left join xet.migrations m on m.version = n
$$;


-- In the transaction that applies it.

create or replace function pg_temp.migration_applied(n integer, file text,
    sum text)
returns void language sql as $$
    insert into xet.migrations (version, name, sha256) values (n, file, sum)
    on conflict (version) do update
    set name = excluded.name, sha256 = excluded.sha256, applied_at = now()
$$;
