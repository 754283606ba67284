#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Fetches the complete sources of the packaged nginx into the given folder:
#
#   sh docker/nginx-source.sh build/nginx-src
#
# nginx-dev has the headers and build scripts, but no C sources, which are
# needed to compile an nginx with a sanitizer.  apt knows the origin of the
# installed package; the source package is downloaded from there.  Separate
# package lists are used, so that the lists of the system are not changed.

set -eu

to=${1:?usage: sh $0 FOLDER}
version=$(dpkg-query -W -f='${source:Version}' nginx)

if [ "$(cat "$to/.version" 2>/dev/null)" = "$version" ]; then
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the user that apt downloads as must be able to read this folder

chmod 755 "$work"
mkdir -p "$work/sources.list.d" "$work/lists/partial" "$work/src"

if [ "$(id -u)" -eq 0 ]; then
    chown -R _apt "$work/lists" "$work/src"
fi

for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /etc/apt/sources.list.d/*.sources
do
    [ -f "$file" ] || continue

    sed -e 's/^deb[[:blank:]]/deb-src /' \
        -e 's/^Types:.*/Types: deb-src/' \
        "$file" > "$work/sources.list.d/${file##*/}"
done

set -- -qq -o Dir::Etc::SourceList=/dev/null \
    -o Dir::Etc::SourceParts="$work/sources.list.d" \
    -o Dir::State::Lists="$work/lists" \
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=

# The packaged version is tried first.  A mirror may lack the source of a
# security update; then another revision of the same nginx version is used,
# which is sufficient, since nginx is compiled from these sources, and need not
# match the packaged binary.  The last choice is the source archive of nginx
# itself (*.orig.tar): mirrors keep it longest, and apt has already downloaded
# and verified it by then.

original()
{
    set -- nginx_*.orig.tar.*

    [ -f "$1" ] || return 1

    mkdir nginx-original
    tar -xf "$1" -C nginx-original --strip-components=1
    echo "${version%%-*}, without the patches of Debian" > "$work/found"
}


fetch()
{
    apt-get "$@" update

    apt-cache "$@" showsrc nginx | sed -n 's/^Version: //p' \
        | grep "^${version%%-*}-" > "$work/versions" || :

    { echo "$version"; grep -vxF "$version" "$work/versions"; } \
        | while read -r try
    do
        if apt-get "$@" source "nginx=$try"; then
            echo "$try" > "$work/found"
            break
        fi
    done

    [ -s "$work/found" ] || original
}

(cd "$work/src" && fetch "$@") > "$work/log" 2>&1 < /dev/null \
    || { tail -n 20 "$work/log" >&2; exit 1; }

echo "nginx-source: fetched the sources of nginx $(cat "$work/found")"

rm -rf "$to"
mkdir -p "$to"
cp -R "$work"/src/nginx-*/. "$to/"
echo "$version" > "$to/.version"
