#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Installs missing packages of Debian 12 or 13:
#
#   sh docker/setup.sh         to build the module
#   sh docker/setup.sh package also to build packages of the module (make deb)
#   sh docker/setup.sh run     also to run a server (make run)
#   sh docker/setup.sh test    also to run all tests (make test)
#
# If nothing is missing, the script changes nothing; it never asks questions.
# So other scripts can run it first.
#
# The packages of nginx and PostgreSQL start and enable services when they are
# installed.  Only their programs are needed here, and port 80 and the cluster
# of the system must not be affected.  So during the installation a policy-rc.d
# forbids starting services, no "main" cluster is created, and services that
# the packages have enabled are disabled again.  Services that existed before
# are not changed.

set -eu

what=${1:-build}
missing=
services=
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/ngx-xet-setup.conf
made_policy=
made_cluster=
log=


# All packages are queried at once, since the usual call of this script only
# finds that nothing is missing.

known=" $(dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null \
              | sed -n 's/ installed$//p' | tr '\n' ' ') "


installed()
{
    case $known in
    *" $1 "*)
        ;;

    *)
        return 1
    esac
}


# $1: package, $2: what it is needed for

need()
{
    installed "$1" && return

    missing="$missing $1"
    printf '  %-22s %s\n' "$1" "$2"
}


# $1: program, $2: packages that have it, $3: what it is needed for.  The
# program may have been installed without these packages.

need_program()
{
    command -v "$1" > /dev/null 2>&1 && return

    for package in $2; do
        need "$package" "$3"
    done
}


list()
{
    need gcc                'C compiler'
    need libc6-dev          'headers of the C library'
    need make               'to run the build'
    need pkg-config         'to find libpq and BLAKE3'
    need nginx              'the server that loads the module'
    need nginx-dev          'its headers, build scripts and flags'
    need libpq-dev          'PostgreSQL client library'
    need liblz4-dev         'LZ4 compression'
    need libjansson-dev     'JSON of tokens and telemetry'
    need libexpat1-dev      'XML responses of S3 stores'
    need libyaml-dev        'metadata of README.md'
    need libzstd-dev        'Zstandard, for compressed tensors'
    need libxxhash-dev      'XXH3 checksums of tensors'
    need libisal-dev        'CRC-32C checksums of tensors'
    need libssl-dev         'HMAC and SHA-256'
    need libcurl4-openssl-dev 'HTTP requests to peers and of the client'

    # Debian 12 has BLAKE3 only as C sources inside a Rust package

    installed librust-blake3-dev || need "$blake3" 'BLAKE3'

    case $what in run | test)
        need postgresql         'the database server'
        need ca-certificates    'TLS, to download the test client'
        need_program openssl openssl            'to create keys'
        need_program curl    curl               'to send requests to the server'
        need_program python3 python3            'to run the test client'
        need python3-venv       'a Python environment for the test client'
        need libjs-marked       'Markdown in web pages'
        need node-dompurify     'safe HTML in web pages'
        need libjs-highlight.js 'colours of source code in web pages'
    esac

    case $what in package | test)
        need debhelper          'to build packages'
        need build-essential    'standard tools to build packages'
    esac

    case $what in test)
        need clang              'fuzzers, and a second compiler'
        need libclang-rt-dev    'sanitizers of clang'
        need libcbor-dev        'reference for the CBOR reader, in tests'
        need perl               'prove, to run the tests'
        need binutils           'nm, to check symbols'
        need iproute2           'networks of several nodes, in tests'
        need libfuse-perl       'a folder that behaves like NFS, in tests'
        need wrk                'load of the benchmarks'
        need apache2-utils      'ab, HEAD requests of the benchmarks'
        need_program debootstrap debootstrap    'a Debian for tests of packages'
        need_program jq      jq                 'to read JSON, in tests'
        need_program wget    wget               'downloads, in tests'
        need_program aria2c  aria2              'parallel downloads, in tests'
        need_program git-lfs 'git git-lfs'      'Git LFS client, in tests'
        need_program node    'nodejs npm'       'JavaScript client, in tests'
        need_program chromium chromium          'browser client, in tests'
        need_program zsh     zsh                'completion, in tests'
        need_program fish    fish               'completion, in tests'
        need_program promtool prometheus        'to check metrics and alerts'
    esac

    # an nginx that is built from source, for example by "make asan", is linked
    # with libraries that nginx-dev depends on
}


blake3_package()
{
    if installed libblake3-dev || installed librust-blake3-dev; then
        echo libblake3-dev

    elif apt-cache show libblake3-dev 2>/dev/null | grep -q '^Package:'; then
        echo libblake3-dev

    else
        echo librust-blake3-dev
    fi
}


cleanup()
{
    status=$?

    trap '' HUP INT TERM

    if [ -n "$log" ]; then
        rm -f "$log"
    fi

    if [ -n "$made_policy" ]; then
        rm -f "$policy"
    fi

    if [ -n "$made_cluster" ]; then
        rm -f "$cluster"
    fi

    # the packages have enabled these services, although policy-rc.d kept them
    # from starting

    for service in $services; do
        if [ -e "/etc/init.d/$service" ]; then
            update-rc.d "$service" disable > /dev/null 2>&1 || :
        fi

        deb-systemd-helper disable "$service.service" > /dev/null 2>&1 || :
    done

    exit $status
}


case $what in
build | package | run | test)
    ;;
*)
    echo "usage: sh $0 [build|package|run|test]" >&2
    exit 2
esac

if ! command -v apt-get > /dev/null; then
    echo "$0: apt-get not found; install the equivalents of these Debian" \
        "packages:" >&2
    blake3=libblake3-dev
    list >&2
    exit 1
fi

blake3=$(blake3_package)

# The first check is silent, and must be quick: usually nothing is missing.

list > /dev/null

if [ -z "$missing" ]; then
    echo "setup: all packages for $what are installed"
    exit 0
fi

if [ "$(id -u)" -ne 0 ]; then

    if sudo -n true 2>/dev/null; then
        exec sudo -n sh "$0" "$what"
    fi

    echo "$0: packages are missing; run as root: apt-get install$missing" >&2
    exit 1
fi

echo "setup: installing missing packages for $what"

DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND

trap cleanup EXIT
trap 'exit 1' HUP INT TERM

apt-get update -qq < /dev/null

# The package that has BLAKE3 may be known only after the update of the package
# lists.

blake3=$(blake3_package)
missing=
list

if [ ! -e "$policy" ]; then
    made_policy=1
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
fi

if ! installed nginx; then
    services="$services nginx"
fi

if ! installed postgresql-common; then
    services="$services postgresql"
    made_cluster=1
    mkdir -p "${cluster%/*}"
    echo 'create_main_cluster = false' > "$cluster"
fi

log=$(mktemp)

# shellcheck disable=SC2086
if ! apt-get install -y -qq --no-install-recommends $missing \
         < /dev/null > "$log" 2>&1
then
    tail -n 30 "$log" >&2
    exit 1
fi

echo "setup: done"
