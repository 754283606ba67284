#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Sets up and starts a complete server in one command:
#
#   [DIR=./.run] [PORT=8080] [ADDR=127.0.0.1] [URL=...] sh docker/run.sh
#   sh docker/run.sh [--port PORT] [--help]
#
# Installs missing packages, builds the module, and starts in DIR a PostgreSQL
# that listens on a Unix socket only and an nginx with conf/nginx.conf at
# ADDR:PORT; then uploads a file and downloads it, also with hf_xet if the
# module or the URL is new.  A second run reuses the data in DIR with the newly
# built module, even after a crash.  Servers with
# another DIR and PORT are not affected.  "sh docker/stop.sh" stops the servers
# in DIR.
#
# With STORE_URL=s3://bucket[/prefix] the xorbs are in an existing bucket of
# the object store at S3_ENDPOINT (http[s]://host:port), with S3_KEY and
# S3_SECRET, and optionally S3_REGION (us-east-1).  With S3_MODE=presigned
# clients exchange xorbs directly with the object store, with S3_MODE=proxy, the
# default, through nginx.
#
# URL is the URL that clients use, if it is not http://ADDR:PORT, for example
# behind a proxy.  With a wildcard ADDR (0.0.0.0) and no URL, URLs use the host
# of the request, and the server accepts its addresses and HOSTS as hosts.
# HOSTS are names separated by spaces, by default the names of this machine.
#
#   DIR/pg       database cluster    DIR/nginx/conf  generated configuration
#   DIR/store    xorbs               DIR/nginx/xet   keys, included files
#   DIR/env      for the client xet  DIR/nginx/logs
#
# Users, if root runs this script: the cluster belongs to the user postgres,
# since PostgreSQL does not run as root.  The nginx master runs as root, and
# only root can read the keys; the workers run as www-data, which owns the
# store.  Connections to PostgreSQL are trusted, because the folder of the
# socket restricts access: postgres owns it, and only the group www-data may
# enter it.  If another user runs this script, everything belongs to that user,
# and the folder is closed to others.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
dir=${DIR:-$root/.run}
port=${PORT:-8080}
addr=${ADDR:-127.0.0.1}
nginx=${NGINX:-/usr/sbin/nginx}
build=${BUILD:-$root/build}
base=${URL:-}
bucket=${STORE_URL:-}
case $build in /*) ;; *)
    build=$PWD/$build
esac

PATH=$PATH:/usr/sbin:/sbin


. "$root/docker/processes.sh"


die()
{
    echo "run: $*" >&2
    exit 1
}


help()
{
    cat << END
usage: sh docker/run.sh [--port PORT] [--help]

Builds the module, and starts a server with its own PostgreSQL in one folder.
"sh docker/stop.sh" stops the server.

  --port PORT  port to listen on, 8080 by default; PORT=... does the same
  --help       show this help

Environment variables:

  DIR    folder of data, configuration and logs, ./.run by default
  ADDR   address to listen on, 127.0.0.1 by default; 0.0.0.0 for all addresses
  PORT   port to listen on
  URL    URL that clients use, if it is not http://ADDR:PORT
  HOSTS  names of the server, with ADDR=0.0.0.0 and without URL
  STORE_URL, S3_ENDPOINT, S3_KEY, S3_SECRET, S3_REGION, S3_MODE
         a bucket of an object store for the data: see the head of this script
END
}


# Exit code 2: the command line is wrong.

usage()
{
    echo "run: $*" >&2
    echo "Run \"sh docker/run.sh --help\" for help." >&2
    exit 2
}


parse()
{
    while [ $# -gt 0 ]; do
        case $1 in
        --help | -h)
            help
            exit
            ;;

        --port)
            [ $# -ge 2 ] || usage "option --port requires an argument"
            port=$2
            shift
            ;;

        --port=*)
            port=${1#*=}
            ;;

        -*)
            usage "unknown option $1"
            ;;

        *)
            usage "unexpected argument \"$1\""
        esac

        shift
    done
}


# Quotes a word for a shell, if the word needs that.

quote()
{
    case $1 in
    *[!A-Za-z0-9_./:@=+-]*)
        echo "'$(echo "$1" | sed "s/'/'\\\\''/g")'"
        ;;

    *)
        echo "$1"
    esac
}


# Sets the address to listen on, the URL for local requests, and the base of
# xorb URLs.  With a wildcard address the base is not known: URLs then use the
# host of the request.

find_urls()
{
    case $port in *[!0-9]* | '')
        die "PORT must be a number, not \"$port\""
    esac

    [ ${#port} -le 5 ] && [ "$port" -ge 1 ] && [ "$port" -le 65535 ] \
        || die "PORT must be a number from 1 to 65535, not $port"

    case $addr$base in *[!][A-Za-z0-9_.:/%@-]*)
        die "unsupported character in ADDR \"$addr\" or URL \"$base\";" \
            "use letters, digits and []_.:/%@-"
    esac

    case ${HOSTS:-} in *[!A-Za-z0-9_.\ -]*)
        die "unsupported character in HOSTS \"$HOSTS\"; use names separated" \
            "by spaces"
    esac

    host=${addr#'['}
    host=${host%']'}
    allow=
    hosts=${HOSTS:+ $HOSTS}

    # without URL and HOSTS, accept the names that other machines use for this
    # machine

    if [ -z "$base$hosts" ]; then
        for name in $(hostname 2>/dev/null) $(hostname -f 2>/dev/null); do
            case $name in *[!A-Za-z0-9_.-]* | '' | *.) ;;
            *)
                hosts="$hosts $name"
            esac
        done
    fi

    case $host in
    0.0.0.0)
        url=http://127.0.0.1:$port
        ;;

    ::)
        addr='[::]'
        url=http://[::1]:$port
        ;;

    *:*)
        addr=[$host]
        url=http://$addr:$port
        base=${base:-$url}
        ;;

    *)
        url=http://$addr:$port
        base=${base:-$url}
    esac

    # requests from this machine to one of its own addresses come from that
    # address

    case $host in 0.0.0.0 | :: | 127.0.0.1 | ::1 | *[!0-9a-fA-F.:]*) ;;
    *[.:]*)
        allow=" allow $host;"
    esac
}


# Checks the settings of the object store, if there is one.  Values written to
# configuration files must not contain special characters.

find_store()
{
    [ -n "$bucket" ] || return 0

    case $bucket in s3://*) ;; *)
        die "STORE_URL must be s3://bucket[/prefix], not \"$bucket\""
    esac

    for name in S3_ENDPOINT S3_KEY S3_SECRET; do
        eval "value=\${$name:-}"
        [ -n "$value" ] || die "STORE_URL requires $name; set $name"
    done

    s3_region=${S3_REGION:-us-east-1}
    s3_mode=${S3_MODE:-proxy}
    s3_scheme=${S3_ENDPOINT%%://*}
    s3_host=${S3_ENDPOINT#*://}
    s3_host=${s3_host%/}

    case $s3_scheme in http | https) ;; *)
        die "S3_ENDPOINT must be http[s]://host:port, not \"$S3_ENDPOINT\""
    esac

    case $bucket$s3_host$s3_region in *[!][A-Za-z0-9_.:/-]*)
        die "unsupported character in STORE_URL, S3_ENDPOINT or S3_REGION;" \
            "use letters, digits and []_.:/-"
    esac

    case $s3_mode in proxy | presigned) ;; *)
        die "S3_MODE must be proxy or presigned, not \"$s3_mode\""
    esac
}


# Checks that ADDR:PORT is free, before anything is built.  A server in DIR may
# use it, since that server will be stopped in time.

check_port()
{
    error=$(try_port "$port")

    case $error in
    '')
        return
        ;;

    *"in use"*)
        ! is_ours || return 0
        die "port $port of $addr is in use; set PORT=$(free_port)"
    esac

    die "cannot listen on $addr:$port: $error; change ADDR or PORT"
}


# Prints why $host:$1 cannot be used, if so.

try_port()
{
    LC_ALL=C perl -MIO::Socket::IP -e '
        IO::Socket::IP->new(LocalHost => $ARGV[0], LocalPort => $ARGV[1],
            Listen => 1, ReuseAddr => 1) or print $@ || $!' "$host" "$1"
}


# Prints a port that is free, to be suggested.

free_port()
{
    for try in 8080 8081 8090 8181 8888 18080; do
        if [ -z "$(try_port "$try")" ]; then
            echo "$try"
            return
        fi
    done

    echo NUMBER
}


is_ours()
{
    [ -d "$dir" ] || return 1

    running=$(dir=$(cd "$dir" && pwd -P) && nginx_pids)

    [ -n "$running" ] \
        && grep -q "listen .*:$port;" "$dir/nginx/conf/nginx.conf"
}


# Checks whether postgres and www-data can reach a folder; below /root, for
# example, they can't.

reachable()
{
    for user in postgres www-data; do
        runuser -u "$user" -- test -x "$1" || return 1
    done
}


# Makes DIR absolute.  If postgres and www-data can't reach it, or if its name
# can't be written unquoted to configuration files, it becomes a link to another
# folder.

make_dir()
{
    mkdir -p "$dir"

    dir=$(cd "$dir" && pwd -P)

    case $dir in
    *[!A-Za-z0-9_./+@=-]*)
        move_dir "$dir has characters that configuration files do not support"
        ;;

    *)
        if is_root && ! reachable "$dir"; then
            move_dir "the users postgres and www-data cannot enter $dir"
        fi
    esac
}


# $1: reason

move_dir()
{
    parent=/var/lib

    if ! is_root; then
        parent=${HOME:-}

        case $parent in *[!A-Za-z0-9_./+@=-]* | '')
            die "$1; set DIR to another folder"
        esac
    fi

    rmdir "$dir" 2>/dev/null || die "$1; set DIR to another folder"

    other=$(mktemp -d "$parent/ngx-xet.XXXXXX")
    ! is_root || chmod 755 "$other"
    ln -s "$other" "$dir"

    echo "run: $1; the folder is now a link to $other"

    dir=$other
}


# Finds the PostgreSQL programs of the version that created the cluster, or the
# newest version if there is no cluster.

find_postgresql()
{
    if [ -f "$dir/pg/PG_VERSION" ]; then
        version=$(cat "$dir/pg/PG_VERSION")
    else
        version=$(for bin in /usr/lib/postgresql/*/bin/initdb; do
                      echo "$bin"
                  done | sed 's!.*/postgresql/\([0-9]*\)/.*!\1!' \
                  | sort -n | tail -n 1)
    fi

    pgbin=/usr/lib/postgresql/$version/bin

    [ -x "$pgbin/postgres" ] \
        || die "there is no PostgreSQL server in $pgbin; install PostgreSQL" \
               "$version, or set DIR to another folder"
}


# Creates the folder of the PostgreSQL socket.  The path of a socket is limited
# to 107 bytes.  If the path in DIR is longer, the folder is in /tmp and has an
# unpredictable name.

make_socket_dir()
{
    socket=$dir/socket

    if [ ${#socket} -gt 90 ]; then
        socket=$(mktemp -d /tmp/xet-pg.XXXXXX)
    fi

    mkdir -p "$socket"

    if is_root; then
        chown postgres:www-data "$socket"
        chmod 750 "$socket"
    else
        chmod 700 "$socket"
    fi

    echo "$socket" > "$dir/socket.path"
}


start_postgresql()
{
    if [ ! -f "$dir/pg/PG_VERSION" ]; then

        # do not touch a folder that was not created here

        if [ -e "$dir/pg" ]; then
            rmdir "$dir/pg" 2>/dev/null \
                || die "$dir/pg exists and is not a PostgreSQL cluster;" \
                       "move the folder away"
        fi

        rm -rf "$dir/pg.new"
        mkdir -m 700 "$dir/pg.new"

        if is_root; then
            chown postgres: "$dir/pg.new"
        fi

        as_pg "$pgbin/initdb" -D "$dir/pg.new" -U postgres -A trust -E UTF8 \
            --locale=C.UTF-8 --data-checksums > "$dir/initdb.log" 2>&1 \
            || { cat "$dir/initdb.log" >&2; die "initdb failed; see above"; }

        as_pg tee -a "$dir/pg.new/postgresql.conf" \
            < "$root/conf/xet_postgresql.settings" > /dev/null
        mv "$dir/pg.new" "$dir/pg"
    fi

    if [ -n "$(pg_master)" ]; then
        socket=$(cat "$dir/socket.path")

    else
        DIR=$dir sh "$root/docker/stop.sh" postgresql > /dev/null
        make_socket_dir

        as_pg "$pgbin/pg_ctl" -D "$dir/pg" -w -t 120 -s \
            -l "$dir/pg/server.log" \
            -o "-c listen_addresses= -c unix_socket_directories=$socket" \
            start < /dev/null \
            || { as_pg tail -n 20 "$dir/pg/server.log" >&2
                 die "PostgreSQL did not start; see its log above"; }
    fi

    psql="psql -X -q -w -v ON_ERROR_STOP=1 -h $socket -U postgres"

    $psql -d postgres << END
set client_min_messages = warning;
select 'create role xet login'
    where not exists (select from pg_roles where rolname = 'xet') \\gexec
select 'create database xet owner xet'
    where not exists (select from pg_database where datname = 'xet') \\gexec
END

    "$build/xet" migrate \
        --postgres "host=$socket dbname=xet user=xet"
}


# Secrets are created once, so that issued URLs stay valid.

make_secrets()
{
    keys=$dir/nginx/xet

    if [ ! -s "$keys/url.key" ]; then
        (umask 077; echo "url:k1:$(openssl rand -hex 32)" > "$keys/url.key")
    fi

    if [ ! -s "$keys/dedup.key" ]; then
        (umask 077; echo "dedup:$(openssl rand -hex 32)" > "$keys/dedup.key")
    fi

    if [ ! -s "$keys/token.key" ]; then
        (umask 077; echo "token:t1:$(openssl rand -hex 32)" > "$keys/token.key")
    fi

    if [ -n "$bucket" ]; then
        (umask 077; cat > "$keys/s3.credentials.new" << END
[default]
aws_access_key_id = $S3_KEY
aws_secret_access_key = $S3_SECRET
END
        )

        # workers reread the file when the store denies a request

        if is_root; then
            chown root:www-data "$keys/s3.credentials.new"
            chmod 640 "$keys/s3.credentials.new"
        fi

        mv "$keys/s3.credentials.new" "$keys/s3.credentials"
    fi
}


# Prints sed commands that set xet_store and add the configuration of a bucket.

store_lines()
{
    if [ -z "$bucket" ]; then
        return
    fi

    store="$bucket endpoint=$s3_scheme://$s3_host"
    store="$store credentials=$dir/nginx/xet/s3.credentials"
    store="$store region=$s3_region path_style"

    cat << END
s|xet_store /var/lib/xet;|xet_store $store\\
              temp_path=$dir/nginx/tmp/store;\\
\\
    upstream xet_bucket {\\
        server $s3_host;\\
        keepalive 64;\\
    }\\
\\
    proxy_cache_path $dir/nginx/cache keys_zone=xet_bucket:16m\\
                     max_size=10g inactive=90d use_temp_path=off;|
s|include /etc/nginx/xet/xet_location.conf;|&\\
        include /etc/nginx/xet/xet_bucket.conf;|
END

    if [ "$s3_mode" = presigned ]; then
        echo 's|xet_auth off;|&\'
        echo '        xet_data_mode presigned;\'
        echo '        xet_grants on;|'
    fi

    if [ "$s3_scheme" = https ]; then
        echo 's|proxy_pass http://xet_bucket|proxy_ssl_verify on;\'
        echo '    proxy_ssl_server_name on;\'
        echo "    proxy_ssl_name ${s3_host%:*};\\"
        echo '    proxy_ssl_trusted_certificate \'
        echo '        /etc/ssl/certs/ca-certificates.crt;\'
        echo '    proxy_pass https://xet_bucket|'
    fi
}


# conf/nginx.conf is a configuration for an installed server; its paths are
# replaced by those of DIR.  Required text is checked first; otherwise the
# server could use a store outside of DIR.

write_conf()
{
    from=$root/conf/nginx.conf

    for text in "listen 127.0.0.1:8080;" \
        "xet_url_base http://127.0.0.1:8080;" /var/lib/xet /run/xet/postgresql \
        /usr/lib/nginx/modules/ngx_http_xet_module.so
    do
        grep -qF "$text" "$from" \
            || die "$from does not contain \"$text\"; restore that text"
    done

    user='s|^user www-data;||'

    if is_root; then
        user=
    fi

    if grep -q client_body_temp_path "$from"; then
        temp=
    else
        temp="/^http {/a\\
    client_body_temp_path  $dir/nginx/tmp/body;\\
    proxy_temp_path        $dir/nginx/tmp/proxy;\\
    fastcgi_temp_path      $dir/nginx/tmp/fastcgi;\\
    uwsgi_temp_path        $dir/nginx/tmp/uwsgi;\\
    scgi_temp_path         $dir/nginx/tmp/scgi;"
    fi

    # the name of the module, within double quotes, in a sed command

    quoted=$(echo "$module" | sed 's/["\\]/\\&/g; s/[&|\\]/\\&/g')

    store_lines > "$dir/nginx/store.sed"

    for file in "$root"/conf/*.conf; do
        to=$dir/nginx/xet/${file##*/}

        if [ "$file" = "$from" ]; then
            to=$dir/nginx/conf/nginx.conf
        fi

        # first replace the text by placeholders, since a value may contain text
        # that a later command replaces

        sed -f "$dir/nginx/store.sed" "$file" \
            | sed -e "s|listen 127\.0\.0\.1:8080;|listen @ADDR@:@PORT@;|" \
            -e "s|xet_url_base http://127\.0\.0\.1:8080;|@BASE@|" \
            -e "s|127\.0\.0\.1:8080|127.0.0.1:@PORT@|g" \
            -e "s|localhost:8080|localhost:@PORT@|g" \
            -e "s|allow 127\.0\.0\.1;|&$allow|" \
            -e 's|/usr/lib/nginx/modules/ngx_http_xet_module\.so|"@MODULE@"|g' \
            -e "s|/run/xet/postgresql|@SOCKET@|g" \
            -e "s|/run/nginx\.pid|@NGINX@/nginx.pid|g" \
            -e "s|/var/log/nginx|@NGINX@/logs|g" \
            -e "s|/var/lib/nginx|@NGINX@/tmp|g" \
            -e "s|/var/lib/xet|@STORE@|g" \
            -e "s|/usr/share/xet/web/|@NGINX@/web/|g" \
            -e "s|/etc/nginx/xet|@NGINX@/xet|g" \
            -e "$user" \
            -e "$temp" \
            -e "s|@ADDR@|$addr|" \
            -e "s|@BASE@|${base:+xet_url_base $base;}@HOSTS@|" \
            -e "s|@HOSTS@|${hosts:+xet_hosts$hosts;}|" \
            -e "s|@PORT@|$port|g" \
            -e "s|@MODULE@|$quoted|g" \
            -e "s|@SOCKET@|$socket|g" \
            -e "s|@STORE@|$dir/store|g" \
            -e "s|@NGINX@|$dir/nginx|g" \
            > "$to"
    done
}


start_nginx()
{
    for sub in conf logs tmp xet cache; do
        mkdir -p "$dir/nginx/$sub"
    done

    mkdir -p "$dir/store"

    if is_root; then
        chown www-data: "$dir/store" "$dir/nginx/cache"
    fi

    chmod 750 "$dir/store"

    make_secrets
    write_conf
    sh "$root/docker/web.sh" "$dir/nginx/web"

    set -- -e "$dir/nginx/logs/error.log" -p "$dir/nginx" -c conf/nginx.conf

    (cd / && "$nginx" "$@" -t -q) \
        || die "nginx rejects the configuration; see the error above"

    # The running server may have loaded an older module.

    DIR=$dir sh "$root/docker/stop.sh" nginx > /dev/null

    (cd / && "$nginx" "$@") < /dev/null \
        || die "nginx did not start; see $dir/nginx/logs/error.log"
}


# Writes DIR/env, which sets variables for clients in a shell that sources it.
# Values need no escaping within the quotes: see find_urls() and make_dir().

write_env()
{
    cat > "$dir/env.new" << END
export HF_ENDPOINT='$url'
export XET_ENDPOINT='$url/api'
export XET_STORE='${store:-$dir/store}'
export XET_POSTGRES='host=$socket dbname=xet user=xet'
END

    mv "$dir/env.new" "$dir/env"
}


wait_healthy()
{
    tries=0

    until curl -sf -o /dev/null -m 5 "$url/api/health"; do
        tries=$((tries + 1))

        if [ $tries -ge 300 ]; then
            tail -n 20 "$dir/nginx/logs/error.log" >&2
            die "the server is not healthy: $url/api/health does not return" \
                "200; see the log above"
        fi

        sleep 0.1
    done
}


# Installs the usual Xet client, separate from the system's Python.  If there is
# no network, the server is started without a client.

make_client()
{
    venv=$build/venv

    "$venv/bin/python" -c 'import hf_xet, huggingface_hub' 2>/dev/null \
        && return

    if ! "$venv/bin/pip" --version > "$build/venv.log" 2>&1; then
        rm -rf "$venv"
        python3 -m venv "$venv" >> "$build/venv.log" 2>&1 || return
    fi

    "$venv/bin/pip" install -q --disable-pip-version-check hf_xet \
        huggingface_hub < /dev/null >> "$build/venv.log" 2>&1
}


# Uploads and downloads the file with the Xet client.

try_client()
{
    if [ -n "$base" ] && ! curl -sf -o /dev/null -m 10 "$base/api/health"; then
        echo "run: $base does not respond to this machine;" \
             "the server was tested with curl only"
        return
    fi

    if ! "$lock" "$build/.lock" sh "$0" client; then
        echo "run: cannot install hf_xet, see $build/venv.log;" \
             "the server was tested with curl only"
        return
    fi

    out=$("$build/venv/bin/python" "$root/t/tools/roundtrip.py" \
              "$url/api" "$file") \
        || die "the test with hf_xet failed; see the error above"

    echo "$out"

    [ "$hash" = "$(echo "$out" | sed -n 's/^hash //p')" ] \
        || die "hf_xet reports another hash for $file than $hash"

    tested > "$dir/tested"
}


# Prints what the test with the Xet client depends on.

tested()
{
    stat -c "$url $base %n %i %Y" "$module"
}


# Uploads and downloads a file by plain HTTP, then with the Xet client, and
# downloads a part of the file like that client.

round_trip()
{
    file=${FILE:-$pgbin/postgres}

    out=$(curl -sSf -m 600 -T "$file" "$url/api/v1/files") \
        || die "cannot upload $file to $url/api/v1/files"
    hash=$(echo "$out" | sed 's/.*"hash":"\([0-9a-f]*\)".*/\1/')

    curl -sSf -m 600 "$url/api/v1/files/$hash" | cmp - "$file" \
        || die "the downloaded copy of $file differs from the original"

    echo "PUT and GET $url/api/v1/files: the contents are equal"

    if [ "$(tested)" != "$(cat "$dir/tested" 2>/dev/null)" ]; then
        try_client
    fi

    # any HTTP client can fetch a part of a xorb with a signed URL

    if [ "${s3_mode:-proxy}" = presigned ]; then
        return
    fi

    part=$(curl -sf -m 60 "$url/api/v1/reconstructions/$hash" \
               | sed 's/.*"url":"\([^"]*\)".*/\1/')
    range=$(echo "$part" | sed 's/.*?r=\([0-9]*-[0-9]*\)&.*/\1/')
    want=$((${range#*-} - ${range%-*} + 1))
    got=$(curl -sf -m 60 -r "$range" "$url/xorbs/${part#*/xorbs/}" | wc -c)

    [ "$got" -eq "$want" ] || die "GET $part: received $got bytes, not $want"

    echo "GET $url/xorbs/...: $got bytes, the signed range"
}


# If a parallel build fails, the other commands still print after its error.
# Then the build continues with one command at a time, and ends with the error.

build()
{
    # The lock serializes the builds of concurrent runs.

    mkdir -p "$build"

    for jobs in $(nproc) 1; do
        "$lock" "$build/.lock" make -s -C "$root" -j "$jobs" BUILD="$build" \
            build cli && return

        [ "$jobs" = 1 ] || echo "run: the build failed; repeating the" \
            "command that failed" >&2
    done

    die "the build failed; see the error above"
}


lock=flock

# try_client() calls "run.sh client" under the lock of the build folder, to
# install the client

if [ "${1:-}" = client ]; then
    make_client
    exit
fi

parse "$@"
find_urls
find_store
check_port

sh "$root/docker/setup.sh" run

build

module=$build/nginx/ngx_http_xet_module.so

make_dir
find_postgresql
start_postgresql
start_nginx
wait_healthy
write_env
round_trip

stop="sh docker/stop.sh"

if [ "$dir" != "$(cd "$root/.run" 2>/dev/null && pwd -P)" ]; then
    stop="DIR=$dir $stop"
fi

at=$(quote "$build")

cat << END

The server runs at ${base:-$url}/api, with its data in $dir

  curl -s $url/api/health
  curl -s $url/api/v1/reconstructions/$hash
  $at/venv/bin/python t/tools/roundtrip.py $url/api FILE

  psql -h $socket -U xet xet

  . $dir/env
  HF_TOKEN=hf_any $at/venv/bin/hf upload me/model FOLDER
  $at/xet verify --store
  $at/xet backup FOLDER

Open in a browser:    ${base:-$url}/
Set for hf clients:   export HF_ENDPOINT=${base:-$url}
Stop the server with: $stop
END
