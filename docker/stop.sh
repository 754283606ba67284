#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Stops what docker/run.sh has started in DIR, and nothing else:
#
#   [DIR=./.run] [GRACE=30] sh docker/stop.sh [nginx|postgresql]
#
# nginx may finish its requests for GRACE seconds; then PostgreSQL is shut
# down.  With an argument only that one is stopped.  What a master that was
# killed has left is stopped as well.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
dir=${DIR:-$root/.run}
grace=${GRACE:-30}

[ -d "$dir" ] || exit 0

dir=$(cd "$dir" && pwd -P)

. "$root/docker/processes.sh"


# command that lists pids, seconds; 0 once there are none

wait_gone()
{
    tenths=$(($2 * 10))

    while [ -n "$($1)" ]; do
        [ $tenths -gt 0 ] || return 1
        tenths=$((tenths - 2))
        sleep 0.2
    done
}


# signal, command that lists pids; one may be gone before it is sent to

signal()
{
    for pid in $($2); do
        kill "-$1" "$pid" 2>/dev/null || :
    done
}


still()
{
    echo "stop: still running:" $($1) >&2
    exit 1
}


stop_nginx()
{
    all=nginx_pids

    # a master tells its workers, who would be replaced otherwise

    if [ -n "$(nginx_master)" ]; then
        signal QUIT nginx_master
    else
        signal QUIT $all
    fi

    wait_gone $all "$grace" && return

    echo "stop: requests still running after $grace s are cut off" >&2

    signal TERM $all
    wait_gone $all 10 && return

    signal KILL $all
    wait_gone $all 5 || still $all
}


stop_postgresql()
{
    socket=$(cat "$dir/socket.path" 2>/dev/null || echo "$dir/socket")

    if [ -n "$(pg_master)" ]; then
        as_pg "/usr/lib/postgresql/$(cat "$dir/pg/PG_VERSION")/bin/pg_ctl" \
            -D "$dir/pg" -m fast -w -t 60 -s stop

    else

        # What a postmaster that was killed has left ends by itself, but for
        # one that is busy; no other can start as long as it has the memory
        # that they share.

        wait_gone pg_pids 2 || signal QUIT pg_pids
        wait_gone pg_pids 5 || signal KILL pg_pids
        wait_gone pg_pids 5 || still pg_pids

        # nor where the number in these is that of another program by now

        rm -f "$dir/pg/postmaster.pid" "$socket"/.s.PGSQL.*
    fi

    # only a folder of its own making, and only when it is empty

    case $socket in /tmp/xet-pg.*)
        rmdir "$socket" 2>/dev/null || :
    esac
}


case ${1:-all} in
nginx)
    stop_nginx
    ;;

postgresql)
    stop_postgresql
    ;;

*)
    stop_nginx
    stop_postgresql
    echo "stop: nothing runs in $dir"
esac
