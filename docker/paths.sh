#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Prints three paths for the Makefile: the absolute paths of this folder and of
# the build folder, and the name of the build folder for targets:
#
#   sh docker/paths.sh BUILD
#
# make and nginx's configure do not support blanks and some other characters.  A
# path that has such characters is replaced by a link to that folder.  Links
# have the same name each time, so that nothing is built again.  They are in a
# folder of /tmp that belongs to the caller.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
build=$1


link()
{
    links=/tmp/xet-paths-$(id -u)

    # nobody else can replace a folder of ours in /tmp

    mkdir -m 700 "$links" 2>/dev/null || :

    if [ -L "$links" ] || [ ! -O "$links" ]; then
        echo "paths: $links belongs to another user; remove it" >&2
        exit 1
    fi

    name=$links/$(echo "$1" | cksum | tr -d ' ')

    [ "$(readlink "$name" || :)" = "$1" ] || ln -sfn "$1" "$name"
    echo "$name"
}


plain()
{
    case $1 in
    *[!A-Za-z0-9_./+@-]*)
        link "$1"
        ;;

    *)
        echo "$1"
    esac
}


# a path below this folder need not be absolute

case $build in "$root"/*)
    build=${build#"$root/"}
esac

build=${build#./}
root=$(plain "$root")

case $build in
*[!A-Za-z0-9_./+@-]*)
    mkdir -p "$build"
    build=$(link "$(cd "$build" && pwd -P)")
    out=$build
    ;;

/*)
    out=$build
    ;;

*)
    out=$root/$build
esac

echo "$root" "$out" "$build"
