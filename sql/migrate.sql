
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
--
-- Servers run meanwhile.  A worker works with the schema of its version, and
-- with a later one when each migration in between says that it is compatible
-- with that version, by a line of its own, "-- compatible from N": what the
-- module of schema N, and of each later one, sends still means the same, also
-- before functions.sql is applied and after.  A migration without that line
-- needs all servers to be stopped or replaced.

set client_min_messages = warning;

do $$ begin
    perform pg_advisory_lock(hashtext('xet.migrations'));
end $$;

create schema if not exists xet;

create table if not exists xet.migrations (
    version          integer      primary key,
    name             text         not null,
    applied_at       timestamptz  not null default now(),
    sha256           text,
    compatible_from  integer
);

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
    sum text, body text)
returns void language sql as $$
    insert into xet.migrations (version, name, sha256, compatible_from)
    values (n, file, sum,
            (regexp_match(body, '^-- compatible from (\d+)$', 'n'))[1]::integer)
    on conflict (version) do update
    set name = excluded.name, sha256 = excluded.sha256, applied_at = now()
$$;


-- The functions of functions.sql: all that the schema has but those of
-- triggers, which belong to their tables and so to the migrations.  called:
-- what makes two of them the same to callers; whole: all of one.

create or replace function pg_temp.migration_known()
returns table (name text, called text, whole text) language sql as $$
    select p.oid::regprocedure::text,
           p.oid::regprocedure || ' ' || pg_get_function_arguments(p.oid)
               || ' ' || pg_get_function_result(p.oid),
           pg_get_functiondef(p.oid)
    from pg_proc p
    where p.pronamespace = 'xet'::regnamespace and p.prokind = 'f'
      and p.prorettype <> 'trigger'::regtype
$$;


create or replace function pg_temp.migration_execute(statements text[])
returns void language plpgsql as $$
declare
    statement  text;
begin
    foreach statement in array statements loop
        execute statement;
    end loop;
end;
$$;


-- functions.sql makes all functions, as if there were none.  A statement that
-- another session has prepared would fail where one is dropped and made again,
-- and one that is being executed would not find its function.  So the file is
-- tried out in a subtransaction that is rolled back; then only those functions
-- are dropped that the file does not have, or that are called in another way,
-- and only those are replaced, in their place, whose text has changed.

create or replace function pg_temp.migration_functions(body text)
returns void language plpgsql as $$
declare
    names  text[];
    texts  text[];
begin
    perform set_config('check_function_bodies', 'off', true);

    begin
        perform pg_temp.migration_execute(array(
            select 'drop function ' || k.name
            from pg_temp.migration_known() k));

        execute body;

        select array_agg(k.called), array_agg(k.whole) into names, texts
        from pg_temp.migration_known() k;

        -- all are there: whatever their order, each one finds what it calls

        perform set_config('check_function_bodies', 'on', true);
        perform pg_temp.migration_execute(texts);

        raise exception 'tried out' using errcode = 'XT000';

    exception when sqlstate 'XT000' then
        null;
    end;

    perform pg_temp.migration_execute(array(
        select 'drop function ' || k.name
        from pg_temp.migration_known() k
        where k.called <> all (names)));

    perform pg_temp.migration_execute(array(
        select t.whole from unnest(texts) t(whole)
        except
        select k.whole from pg_temp.migration_known() k));
end;
$$;
