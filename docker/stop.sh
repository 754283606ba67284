#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Stops what docker/run.sh has started in DIR, and nothing else:
#
#   [DIR=./.run] [GRACE=30] sh docker/stop.sh [nginx]
#
# nginx may finish its requests for GRACE seconds; then PostgreSQL is shut
# down.  With "nginx" PostgreSQL is left running.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
dir=${DIR:-$root/.run}
grace=${GRACE:-30}

[ -d "$dir" ] || exit 0

dir=$(cd "$dir" && pwd -P)


# A pid file may outlive its process, and its number may be another's by now:
# our master has the prefix in DIR among its arguments.

is_ours()
{
    [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] \
        && tr '\0' ' ' < "/proc/$1/cmdline" | grep -qF -- "-p $dir/nginx -c"
}


# seconds; 0 once the process is gone

wait_gone()
{
    tenths=$(($2 * 10))

    while is_ours "$1"; do
        [ $tenths -gt 0 ] || return 1
        tenths=$((tenths - 1))
        sleep 0.1
    done
}


stop_nginx()
{
    pid=$(cat "$dir/nginx/nginx.pid" 2>/dev/null || :)

    is_ours "$pid" || return 0

    kill -QUIT "$pid"
    wait_gone "$pid" "$grace" && return

    echo "stop: requests still running after $grace s are cut off" >&2

    kill -TERM "$pid"
    wait_gone "$pid" 10 && return

    kill -KILL "$pid"
    wait_gone "$pid" 5
}


stop_postgresql()
{
    [ -f "$dir/pg/postmaster.pid" ] || return 0

    set -- "/usr/lib/postgresql/$(cat "$dir/pg/PG_VERSION")/bin/pg_ctl" \
        -D "$dir/pg" -m fast -w -t 60 -s stop

    if [ "$(id -u)" -eq 0 ]; then
        (cd / && runuser -u postgres -- "$@")
    else
        "$@"
    fi

    # only a folder of its own making, and only when it is empty

    case $(cat "$dir/socket.path" 2>/dev/null) in /tmp/xet-pg.*)
        rmdir "$(cat "$dir/socket.path")" 2>/dev/null || :
    esac
}


stop_nginx

if [ "${1:-}" != nginx ]; then
    stop_postgresql
    echo "stop: nothing runs in $dir"
fi
