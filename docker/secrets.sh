#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Creates the secrets of docker/compose.yaml and of docker/kubernetes as files;
# existing files are kept:
#
#   sh docker/secrets.sh [FOLDER]
#
# FOLDER, docker/secrets by default, is closed to others.  Its files are
# world-readable, since the users of the containers have to read them.

set -eu

to=${1:-$(dirname "$0")/secrets}


secret()
{
    [ ! -s "$to/$1" ] || return 0

    text=$2$(od -An -v -tx1 -N 32 /dev/urandom | tr -d ' \n')
    echo "$text" > "$to/$1.new"
    chmod 444 "$to/$1.new"
    mv "$to/$1.new" "$to/$1"
    echo "$to/$1"
}


mkdir -p "$to"
chmod 700 "$to"

secret url.key url:k1:
secret dedup.key dedup:
secret token.key token:t1:
secret postgres_password ''
