#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Stops the servers that docker/run.sh has started in DIR, and nothing else:
#
#   [DIR=./.run] [GRACE=30] sh docker/stop.sh [nginx|postgresql]
#   sh docker/stop.sh --help
#
# nginx has GRACE seconds to finish its requests; then PostgreSQL is shut down.
# With an argument, the script stops only that server.  It also stops the
# remaining children of a killed master.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
dir=${DIR:-$root/.run}
grace=${GRACE:-30}

stopped=

. "$root/docker/processes.sh"


# $1: command that lists pids, $2: seconds to wait.  Returns 0 as soon as the
# list is empty.

wait_gone()
{
    tenths=$(($2 * 10))

    while [ -n "$($1)" ]; do
        [ $tenths -gt 0 ] || return 1
        tenths=$((tenths - 2))
        sleep 0.2
    done
}


# $1: signal, $2: command that lists pids.  A process may exit before the signal
# is sent.

signal()
{
    for pid in $($2); do
        kill "-$1" "$pid" 2>/dev/null || :
    done
}


still()
{
    echo "stop: processes still running after SIGKILL:" $($1) >&2
    exit 1
}


# $1: server, $2: command that lists its pids.  Remembers which servers ran.

note()
{
    [ -z "$($2)" ] || stopped="$stopped${stopped:+ and }$1"
}


stop_nginx()
{
    all=nginx_pids
    note nginx $all

    # signal only the master, which stops its workers; it would replace workers
    # that exit

    if [ -n "$(nginx_master)" ]; then
        signal QUIT nginx_master
    else
        signal QUIT $all
    fi

    wait_gone $all "$grace" && return

    echo "stop: aborting requests that are still running after $grace s" >&2

    signal TERM $all
    wait_gone $all 10 && return

    signal KILL $all
    wait_gone $all 5 || still $all
}


stop_postgresql()
{
    socket=$(cat "$dir/socket.path" 2>/dev/null || echo "$dir/socket")
    note PostgreSQL pg_pids

    if [ -n "$(pg_master)" ]; then
        as_pg "/usr/lib/postgresql/$(cat "$dir/pg/PG_VERSION")/bin/pg_ctl" \
            -D "$dir/pg" -m fast -w -t 60 -s stop

    else

        # Children of a killed postmaster exit by themselves, except those that
        # are busy.  No other postmaster can start while children use the shared
        # memory.

        wait_gone pg_pids 2 || signal QUIT pg_pids
        wait_gone pg_pids 5 || signal KILL pg_pids
        wait_gone pg_pids 5 || still pg_pids

        # these files would prevent a start if the pid in them now belongs to
        # another program

        rm -f "$dir/pg/postmaster.pid" "$socket"/.s.PGSQL.*
    fi

    # remove only a folder that docker/run.sh created, and only if it is empty

    case $socket in /tmp/xet-pg.*)
        rmdir "$socket" 2>/dev/null || :
    esac
}


help()
{
    cat << END
usage: [DIR=./.run] [GRACE=30] sh docker/stop.sh [nginx|postgresql]

Stops the servers that docker/run.sh has started in the folder DIR, or only the
given one.  nginx has GRACE seconds to finish its requests.
END
}


if [ $# -gt 1 ]; then
    echo "stop: unexpected argument \"$2\"" >&2
    exit 2
fi

case ${1:-all} in
--help | -h)
    help
    exit
    ;;

all | nginx | postgresql)
    ;;

-*)
    echo "stop: unknown option $1" >&2
    exit 2
    ;;

*)
    echo "stop: unknown server \"$1\"; expected nginx or postgresql" >&2
    exit 2
esac

if [ -d "$dir" ]; then
    dir=$(cd "$dir" && pwd -P)

    [ "${1:-nginx}" != nginx ] || stop_nginx
    [ "${1:-postgresql}" != postgresql ] || stop_postgresql
fi

if [ -n "$stopped" ]; then
    echo "stop: stopped $stopped in $dir"
else
    echo "stop: no server was running in $dir"
fi
