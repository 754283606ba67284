#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Brings a database to the schema of this tree:
#
#   sh sql/migrate.sh 'host=/run/xet/postgresql dbname=xet user=xet'
#
# What is applied, and when, is said and decided in migrate.sql.  "xet migrate"
# does the same where there is no psql.

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


# number, file

step()
{
    sum=$(sum "$2")

    cat << END
select state = 'new' as new, state = 'changed' as changed
    from pg_temp.migration_state($1, '$sum') as state \\gset
\\if :changed
do \$\$ begin
    raise exception '$2 was changed after it had been applied';
end \$\$;
\\endif
\\if :new
\\echo 'migrate: $2'
begin;
\\i $2
select pg_temp.migration_applied($1, '$2', '$sum') \\g /dev/null
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
\\i migrate.sql
do \$\$ declare
    newer text = pg_temp.migration_newer(${last:-0});
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

        step "$number" "$file"
    done

    if [ -f functions.sql ]; then
        step 0 functions.sql
    fi
}


# The script is complete before psql sees the first line of it.

text=$(script)

printf '%s\n' "$text" | psql -X -w -d "$conninfo" -f -
