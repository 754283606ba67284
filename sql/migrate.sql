
-- Copyright (C) the ngx_http_xet_module authors

-- Functions that decide about migrations.  "xet migrate" runs this file first,
-- in the session that then applies the other files.
--
-- Each NNNN_name.sql is applied once, in the order of its number, in one
-- transaction that also inserts its row into xet.migrations.  functions.sql is
-- applied again whenever its text has changed; its row has the number 0.  An
-- applied migration must never be edited; the recorded SHA-256 detects an edit.
-- A database with a migration that the folder lacks is not changed: its
-- functions are also newer.
--
-- "xet migrate" does all of this in one session under one advisory lock, so
-- several nodes may start at the same time.
--
-- Servers may run during a migration.  A worker runs with the schema of its
-- version, and with a later schema if each migration in between declares
-- compatibility with that version.  The declaration is a separate line,
-- "-- compatible from N".  It promises that the statements of modules of schema
-- N and later still mean the same, both before and after functions.sql is
-- applied.  A migration without that line requires that all servers are stopped
-- or replaced.

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


-- Returns the name of an applied migration that is newer than the last
-- migration of the folder, or null.

create or replace function pg_temp.migration_newer(newest integer)
returns text language sql as $$
    select name from xet.migrations where version > newest
    order by version desc limit 1
$$;


-- Returns the state of a migration: 'new' if it must be applied, 'done' if it
-- was applied, or 'changed' if its file was edited since, which is an error.

create or replace function pg_temp.migration_state(n integer, sum text)
returns text language sql as $$
    select case when m.version is null
                    or (n = 0 and m.sha256 is distinct from sum)
                    then 'new'
                when m.sha256 <> sum then 'changed'
                else 'done' end
    from (select n) as file left join xet.migrations m on m.version = n
$$;


-- Records a migration, in the transaction that applies it.

create or replace function pg_temp.migration_applied(n integer, file text,
    sum text, body text)
returns void language sql as $$
    insert into xet.migrations (version, name, sha256, compatible_from)
    values (n, file, sum,
            (regexp_match(body, '^-- compatible from (\d+)$', 'n'))[1]::integer)
    on conflict (version) do update
    set name = excluded.name, sha256 = excluded.sha256, applied_at = now()
$$;


-- Returns the functions of functions.sql: all functions of the schema except
-- trigger functions, which belong to their tables and thus to the migrations.
-- called is the signature: name, arguments and result.  whole is the full
-- definition.

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


-- Applies functions.sql, which creates all functions as if the database had no
-- functions.  Dropping a function and creating it again would break the
-- prepared and the running statements of other sessions.  So the file is first
-- run in a subtransaction that is rolled back.  Then a function is dropped
-- only if it is not in the file, or has another signature there.  A function is
-- replaced, in place, only if its text has changed.

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

        -- now all functions exist, so the check of a body finds each function
        -- that the body calls

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
