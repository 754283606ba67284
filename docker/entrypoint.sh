#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# The entry point of the containers of docker/Dockerfile: runs nginx in the
# foreground with conf/nginx.conf, adapted by the variables below.  It needs no
# privileges, but /data for persistent data, and /tmp for temporary data.
#
#   URL_BASE     the URL that clients use; without it, URLs have the host of
#                the request, which is acceptable only in closed networks
#   AUTH         token, or off: everyone who can connect may read and write
#   OWNERS       name spaces of users in addition to their own, with AUTH=token:
#                "alice=team robin=team,lab root=*", for xet_hub_owners
#   PUBLIC       on: public repos can be read without a token
#   HOSTS        accepted host names in addition to that of URL_BASE, with
#                AUTH=off and for metrics: xet_hosts
#   ADDR, PORT   address and port to listen on, 0.0.0.0 and 8080 by default
#   POSTGRES     the database, as a libpq connection string; without it, a
#                PostgreSQL is started here, if the image has one
#   POSTGRES_PASSWORD_FILE  file with the password of the database
#   MIGRATE      no: the schema is migrated elsewhere
#   KEYS         folder of url.key, dedup.key and token.key, by default
#                /data/keys; missing keys are created if it is writable
#   LIMITS       on: the limits of conf/xet_limits.conf
#   WORKERS      number of nginx workers, auto by default
#   GRACE        seconds for requests to finish after TERM, 30 by default
#   EDGE         HOST:PORT of an origin: runs conf/edge.conf instead, which
#                needs url.key and neither a store nor a database
#   CACHE_SIZE   size of the cache of an edge, 500g by default
#
# Logs are written to standard output, errors to standard error.  After TERM no
# connection is accepted, uploads in progress finish, and then PostgreSQL
# stops.  If nginx or PostgreSQL exits, the script stops both, so that the
# container runtime restarts the container.

set -eu

umask 027

data=${DATA:-/data}
run=${RUN:-/tmp/xet}
share=${SHARE:-/usr/share/xet/conf}
keys=${KEYS:-$data/keys}
base=${URL_BASE:-${URL:-}}
auth=${AUTH:-token}
owners=${OWNERS:-}
public=${PUBLIC:-off}
hosts=${HOSTS:-}
addr=${ADDR:-0.0.0.0}
port=${PORT:-8080}
conninfo=${POSTGRES:-}
grace=${GRACE:-30}
workers=${WORKERS:-auto}
edge=${EDGE:-}
cache_size=${CACHE_SIZE:-500g}

# a user, or an owner of repos

name='[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?'

module=/usr/lib/nginx/modules/ngx_http_xet_module.so
pg_pid=
nginx_pid=


die()
{
    echo "xet-server: $*" >&2
    stop 1
}


# Checks a value, which is written to a configuration unquoted.

check()
{
    case $2 in *[!][A-Za-z0-9_.:/@%,=\ -]*)
        die "unsupported character in $1; use letters, digits, spaces" \
            "and []_.:/@%,=-"
    esac
}


check_variables()
{
    check URL_BASE "$base"
    check HOSTS "$hosts"
    check ADDR "$addr"
    check EDGE "$edge"
    check KEYS "$keys"
    check POSTGRES "$conninfo"

    case $auth in token | off) ;; *)
        die "AUTH must be token or off, not \"$auth\""
    esac

    case $public in on | off) ;; *)
        die "PUBLIC must be on or off, not \"$public\""
    esac

    check_owners

    case $port$grace in *[!0-9]* | '')
        die "PORT and GRACE must be numbers, not \"$port\" and \"$grace\""
    esac

    case $workers in auto | [1-9] | [1-9][0-9]) ;; *)
        die "WORKERS must be auto or a number from 1 to 99, not \"$workers\""
    esac

    case $cache_size in [1-9]*[kmg]) ;; *)
        die "CACHE_SIZE must be a number with the suffix k, m or g," \
            "not \"$cache_size\""
    esac

    check CACHE_SIZE "$cache_size"

    mkdir -p "$data" "$run" 2>/dev/null || :

    [ -w "$run" ] \
        || die "cannot write to $run; mount a writable folder there or above"

    if [ "$auth" = off ]; then
        echo "xet-server: AUTH=off: everyone who can connect has full access" \
            >&2
    fi
}


# Checks that OWNERS is a list of USER=OWNER[,OWNER...].  Names that no token
# and no repo can have are errors.

check_owners()
{
    [ -z "$owners" ] || [ "$auth" = token ] \
        || die "OWNERS requires AUTH=token: without tokens there are no users"

    seen=" "
    set -f

    for entry in $owners; do
        user=${entry%%=*}

        echo "$entry" | grep -Eqx "$name=([*]|$name(,$name)*)" \
            || die "OWNERS must be a list of USER=OWNER[,OWNER] or USER=*," \
                   "with names in lower case, not \"$entry\""

        case $seen in *" $user "*)
            die "OWNERS has the user $user twice; join the names by commas"
        esac

        seen="$seen$user "
    done

    set +f
}


# Copies the secrets, which are mounted or created at the first start.  Only
# this user can read the copies, whatever the modes of the mounted files.

take_keys()
{
    mkdir -p -m 700 "$run/keys"

    for name in "$@"; do
        if [ ! -s "$keys/$name.key" ]; then
            make_key "$name" \
                || die "$keys/$name.key is missing and cannot be created;" \
                       "mount the key, or make $keys writable"
        fi

        (umask 077; cat "$keys/$name.key" > "$run/keys/$name.key") \
            || die "cannot copy $keys/$name.key to $run/keys; make the key" \
                   "readable for user $(id -u)"
    done
}


make_key()
{
    mkdir -p -m 700 "$keys" 2>/dev/null && [ -w "$keys" ] || return 1

    case $1 in
    url)
        id=url:k1:
        ;;

    token)
        id=token:t1:
        ;;

    *)
        id=dedup:
    esac

    # if two containers start concurrently, both use the key of the first

    new=$(mktemp "$keys/.new.XXXXXX") || return 1
    echo "$id$(od -An -v -tx1 -N 32 /dev/urandom | tr -d ' \n')" > "$new"
    ln "$new" "$keys/$1.key" 2>/dev/null || :
    rm -f "$new"
    [ -s "$keys/$1.key" ]
}


# Starts a PostgreSQL in this container, on a socket that only its user can use.

start_postgresql()
{
    bin=$(for file in /usr/lib/postgresql/*/bin; do echo "$file"; done \
              | sort -V | tail -n 1)

    if [ -f "$data/pg/PG_VERSION" ]; then
        bin=/usr/lib/postgresql/$(cat "$data/pg/PG_VERSION")/bin
    fi

    [ -x "$bin/postgres" ] \
        || die "there is no PostgreSQL server in $bin; set POSTGRES to use" \
               "another database, or upgrade the data: docs/containers.md"

    mkdir -p -m 700 "$run/pg"

    # The lock keeps other containers from this cluster while this script runs.
    # PostgreSQL itself checks only a process id, which in this container may
    # belong to another process, or to none.

    exec 9> "$data/pg.lock"
    flock -n 9 || die "$data is in use by another container; stop the other" \
        "container, or use another volume"

    if [ ! -f "$data/pg/PG_VERSION" ]; then

        # do not touch a folder that was not created here

        if [ -e "$data/pg" ]; then
            rmdir "$data/pg" 2>/dev/null \
                || die "$data/pg exists and is not a PostgreSQL cluster;" \
                       "move the folder away"
        fi

        rm -rf "$data/pg.new"
        "$bin/initdb" -D "$data/pg.new" -U xet -A trust -E UTF8 \
            --locale=C.UTF-8 --data-checksums > "$run/initdb.log" 2>&1 \
            || { cat "$run/initdb.log" >&2; die "initdb failed; see above"; }

        cat "$share/xet_postgresql.settings" \
            >> "$data/pg.new/postgresql.conf"
        mv "$data/pg.new" "$data/pg"
    fi

    rm -f "$data/pg/postmaster.pid"

    "$bin/postgres" -D "$data/pg" -c listen_addresses= \
        -c "unix_socket_directories=$run/pg" -c unix_socket_permissions=0700 \
        >&2 &
    pg_pid=$!

    tries=0

    until "$bin/psql" -X -q -w -h "$run/pg" -U xet -d postgres -c '' \
              2>/dev/null
    do
        tries=$((tries + 1))
        kill -0 "$pg_pid" 2>/dev/null && [ $tries -lt 600 ] \
            || die "PostgreSQL did not start; see its messages above"
        pause 0.2
    done

    "$bin/psql" -X -q -w -h "$run/pg" -U xet -d postgres << 'END'
SELECT 'CREATE DATABASE xet'
    WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'xet') \gexec
END

    conninfo="host=$run/pg dbname=xet user=xet"
}


# Sleeps until the time is over or a signal arrives.

pause()
{
    sleep "$1" &
    wait $! || :
}


take_password()
{
    file=${POSTGRES_PASSWORD_FILE:-}

    [ -n "$file" ] || return 0

    [ -r "$file" ] \
        || die "cannot read $file; set POSTGRES_PASSWORD_FILE to a file that" \
               "user $(id -u) can read"

    (umask 077
     printf '*:*:*:*:' > "$run/pgpass"
     head -n 1 "$file" | sed 's/[\\:]/\\&/g' >> "$run/pgpass") \
        || die "cannot copy the password from $file to $run/pgpass"

    conninfo="$conninfo passfile=$run/pgpass"
}


# Migrates the schema; retries, since the database may still be starting.

migrate()
{
    tries=0

    until xet migrate --postgres "$conninfo" > "$run/migrate.log" 2>&1; do
        tries=$((tries + 1))

        if [ $tries -ge 60 ]; then
            cat "$run/migrate.log" >&2
            die "cannot migrate the database; check POSTGRES and the error" \
                "above"
        fi

        pause 1
    done

    cat "$run/migrate.log"
}


# Replaces text of a configuration.  The text must exist; otherwise a server
# could use another store, or be open to everyone.

replace()
{
    grep -qF -- "$2" "$1" \
        || die "$1 does not contain \"$2\"; use the file of this version"

    # escape all special characters of the text

    text=$(printf '%s' "$2" | sed 's/[][\.*^$|]/\\&/g')
    with=$(printf '%s' "$3" | sed 's/[\\&|]/\\&/g; $!s/$/\\/')

    sed -i "s|$text|$with|g" "$1"
}


write_common()
{
    replace "$1" 'user www-data;' ''
    replace "$1" 'worker_processes auto;' "worker_processes $workers;"
    replace "$1" '/run/nginx.pid' "$run/nginx.pid"
    replace "$1" 'error_log /var/log/nginx/error.log;' 'error_log stderr;'
    replace "$1" '/var/log/nginx/access.log' /dev/stdout
    replace "$1" '/usr/lib/nginx/modules/ngx_http_xet_module.so' "$module"
    replace "$1" 'listen 127.0.0.1:8080;' "listen $addr:$port;"
    replace "$1" '/etc/nginx/xet/url.key' "$run/keys/url.key"
    replace "$1" 'http {' "http {
    client_body_temp_path $run/temp/body;
    proxy_temp_path $run/temp/proxy;
    fastcgi_temp_path $run/temp/fastcgi;
    uwsgi_temp_path $run/temp/uwsgi;
    scgi_temp_path $run/temp/scgi;"
}


# Prints the directives of OWNERS.

owners_map()
{
    [ -n "$owners" ] || return 0

    echo '    map "=$xet_subject" $xet_owners {'
    echo '        default "";'

    set -f

    for entry in $owners; do
        echo "        \"=${entry%%=*}\" \"${entry#*=}\";"
    done

    set +f

    echo '    }'
    echo '    xet_hub_owners $xet_owners;'
}


write_server()
{
    conf=$run/nginx.conf

    cp "$share/nginx.conf" "$conf"
    cp "$share/xet_location.conf" "$share/xet_hub.conf" \
        "$share/xet_limits.conf" "$run/"
    chmod u+w "$run"/*.conf

    write_common "$conf"

    replace "$conf" 'xet_url_base http://127.0.0.1:8080;' \
        "${base:+xet_url_base $base;}${hosts:+ xet_hosts $hosts;}"
    replace "$conf" 'xet_store /var/lib/xet;' "xet_store $data/store;"
    replace "$run/xet_location.conf" 'root /var/lib/xet;' "root $data/store;"
    replace "$conf" 'host=/run/xet/postgresql dbname=xet user=xet' "$conninfo"
    replace "$conf" '/etc/nginx/xet/dedup.key' "$run/keys/dedup.key"
    replace "$conf" '/etc/nginx/xet/token.key' "$run/keys/token.key"
    replace "$conf" 'include /etc/nginx/xet/xet_location.conf;' \
        "include $run/xet_location.conf;"
    replace "$conf" 'include /etc/nginx/xet/xet_hub.conf;' \
        "include $run/xet_hub.conf;"

    if [ "$auth" = token ]; then
        replace "$conf" 'xet_auth off;' 'xet_auth token;'
        replace "$conf" 'xet_thread_pool xet;' "xet_thread_pool xet;
    xet_token_cache zone=xet_tokens:1m;
    xet_hub_public $public;
$(owners_map)"
    fi

    if [ "${LIMITS:-}" = on ]; then
        replace "$conf" '# include /etc/nginx/xet/xet_limits.conf;' \
            "include $run/xet_limits.conf;"
    fi
}


write_edge()
{
    conf=$run/nginx.conf

    cp "$share/edge.conf" "$conf"
    chmod u+w "$conf"

    write_common "$conf"

    replace "$conf" 'server 127.0.0.1:8081;' "server $edge;"
    replace "$conf" '/var/cache/nginx/xet' "$data/cache"
    replace "$conf" 'max_size=500g' "max_size=$cache_size"
    mkdir -p "$data/cache"
}


# Stops nginx, then PostgreSQL; aborts requests that do not finish in time.

stop()
{
    trap '' TERM INT QUIT
    status=${1:-0}

    if [ -n "$nginx_pid" ]; then
        kill -QUIT "$nginx_pid" 2>/dev/null || :
        wait_gone "$nginx_pid" "$grace" || {
            echo "xet-server: aborting requests that are still running" \
                "after $grace s" >&2
            kill -TERM "$nginx_pid" 2>/dev/null || :
            wait_gone "$nginx_pid" 10 || kill -KILL "$nginx_pid" || :
        }
    fi

    if [ -n "$pg_pid" ]; then
        kill -INT "$pg_pid" 2>/dev/null || :
        wait "$pg_pid" || :
    fi

    exit "$status"
}


# Waits up to $2 seconds for the child $1 to exit.  While the shell waits for
# "sleep", it also reaps this child if it has exited; kill -0 then fails.

wait_gone()
{
    tenths=$(($2 * 10))

    while kill -0 "$1" 2>/dev/null; do
        [ $tenths -gt 0 ] || return 1
        tenths=$((tenths - 2))
        pause 0.2
    done
}


check_variables
trap 'stop 0' TERM INT QUIT

mkdir -p "$run/temp"
[ -w "$data" ] || die "cannot write to $data; make the folder writable for" \
    "user $(id -u), group $(id -g)"

if [ -n "$edge" ]; then
    take_keys url
    write_edge

else
    mkdir -p -m 750 "$data/store"

    take_keys url dedup token

    if [ -n "$conninfo" ]; then
        take_password
    else
        start_postgresql
    fi

    [ "${MIGRATE:-yes}" = no ] || migrate
    write_server
fi

nginx -e stderr -p "$run" -c "$run/nginx.conf" -t -q || stop 1

nginx -e stderr -p "$run" -c "$run/nginx.conf" -g 'daemon off;' &
nginx_pid=$!

while kill -0 "$nginx_pid" 2>/dev/null; do
    if [ -n "$pg_pid" ] && ! kill -0 "$pg_pid" 2>/dev/null; then
        echo "xet-server: PostgreSQL has exited" >&2
        pg_pid=
        break
    fi

    pause 1
done

echo "xet-server: a server has exited; stopping the container" >&2
stop 1
