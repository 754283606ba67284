#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Brings a database to the schema of this tree:
#
#   sh sql/migrate.sh 'host=/run/xet/postgresql dbname=xet user=xet'
#
# Each NNNN_name.sql is applied once, in the order of its number, in one
# transaction together with its row in xet.migrations: it is there whole or
# not at all.  functions.sql is applied again whenever its text has changed,
# and has the row of number 0.  A migration that was applied must never be
# edited, which the kept SHA-256 tells.  A database that has a migration which
# this tree does not is left as it is: its functions are newer, too.
#
# All of it is one session under one advisory lock, so several nodes may
# start at the same time.

set -eu

if [ $# -ne 1 ]; then
    echo "usage: sh $0 CONNINFO" >&2
    exit 2
fi

conninfo=$1

cd "$(dirname "$0")"


sum()
{
    sha256sum "$1" | cut -d ' ' -f 1
}


# number, file, statement that decides; psql then knows :todo

step()
{
    cat << END
select $3 as todo \\gset
\\if :todo
\\echo 'migrate: $2'
begin;
\\i $2
insert into xet.migrations (version, name, sha256)
    values ($1, '$2', '$(sum "$2")')
    on conflict (version) do update
    set name = excluded.name, sha256 = excluded.sha256, applied_at = now();
commit;
\\endif
END
}


# of the last file

newest()
{
    for file in [0-9][0-9][0-9][0-9]_*.sql; do
        echo "$file"
    done | sed -n '$s/^0*\([0-9]*\)_.*/\1/p'
}


script()
{
    last=$(newest)

    cat << END
\\set ON_ERROR_STOP on
\\set QUIET on
set client_min_messages = warning;
\\o /dev/null
select pg_advisory_lock(hashtext('xet.migrations'));
\\o
create schema if not exists xet;
create table if not exists xet.migrations (
    version     integer      primary key,
    name        text         not null,
    applied_at  timestamptz  not null default now()
);
alter table xet.migrations add column if not exists sha256 text;
comment on table xet.migrations is
    'what was applied; 0 is functions.sql, the rest are applied once';
do \$\$ declare
    newer text = (select name from xet.migrations
                  where version > ${last:-0} order by version desc limit 1);
begin
    if newer is not null then
        raise exception 'the database has %, it is newer than this tree', newer;
    end if;
end \$\$;
END

    last=0

    for file in [0-9][0-9][0-9][0-9]_*.sql; do
        [ -f "$file" ] || continue

        number=$(echo "${file%%_*}" | sed 's/^0*//')

        if [ "${number:-0}" -le "$last" ]; then
            echo "$0: $file: number is zero or used twice" >&2
            return 1
        fi

        last=$number

        cat << END
select exists (select from xet.migrations
               where version = $number and sha256 <> '$(sum "$file")')
    as changed \\gset
\\if :changed
do \$\$ begin
    raise exception '$file was changed after it had been applied';
end \$\$;
\\endif
END

        step "$number" "$file" "not exists (select from xet.migrations
    where version = $number)"
    done

    if [ -f functions.sql ]; then
        step 0 functions.sql "not exists (select from xet.migrations
    where version = 0 and sha256 = '$(sum functions.sql)')"
    fi
}


# The script is complete before psql sees the first line of it.

text=$(script)

printf '%s\n' "$text" | psql -X -w -d "$conninfo" -f -
