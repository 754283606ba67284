#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Builds packages for the Debian release of this machine:
#
#   [OUT=build/deb] [REVISION=1] [KEEP=1] sh docker/package.sh
#   [OUT=build/deb] [TAG=1] sh docker/package.sh dist
#
# The first form writes libnginx-mod-http-xet and xet-tools to OUT.  KEEP
# reuses the objects of the previous build.
#
# "dist" only packs the sources, as a tar file with one top-level folder.  The
# packages can be built from this file.  With TAG it makes a release: it tags
# the commit with the version, and packs that commit.  It fails if the tree has
# changes, if the version has no release notes, and if the tag exists for
# another commit.
#
# The version is that of src/core/base/xet_base.h; docker/debian/changelog must
# have an entry for it.  The Debian release is appended to the version, so that
# dpkg considers a package for 12 older than the same package for 13.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
out=${OUT:-$root/build/deb}
revision=${REVISION:-1}
name=libnginx-mod-http-xet

version=$(sed -n 's/^#define XET_VERSION *"\(.*\)"$/\1/p' \
              "$root/src/core/base/xet_base.h")


die()
{
    echo "package: $*" >&2
    exit 1
}


# The sources, without files that builds or runs create.

files="config LICENSE Makefile README.md conf docker docs sql src t .ci
    .editorconfig .github .gitignore"


pack()
{
    (cd "$root" && tar --sort=name --owner=0 --group=0 --numeric-owner \
        --exclude='__pycache__' --exclude='*.pyc' --exclude=docker/secrets \
        --transform "s!^!$1/!" -c -f - $files)
}


# Tags the commit for a release.  A repeated call changes nothing.

tag()
{
    [ -z "$(git -C "$root" status --porcelain)" ] \
        || die "the working tree has changes; commit or discard them"
    grep -q "^## $version\$" "$root/docs/releases.md" \
        || die "docs/releases.md has no section $version; add the release notes"
    grep -qF "($version-1)" "$root/docker/debian/changelog" \
        || die "docker/debian/changelog has no entry for $version; add one"

    head=$(git -C "$root" rev-parse HEAD)
    tagged=$(git -C "$root" rev-parse -q --verify "v$version^{commit}") || true

    [ -n "$tagged" ] \
        || git -C "$root" tag -a -m "Version $version" "v$version"
    [ "${tagged:-$head}" = "$head" ] \
        || die "the tag v$version points to another commit;" \
               "raise XET_VERSION in src/core/base/xet_base.h"
}


[ -n "$version" ] || die "src/core/base/xet_base.h does not define XET_VERSION"

mkdir -p "$out"
out=$(cd "$out" && pwd -P)

if [ "${1:-}" = dist ]; then
    [ -z "${TAG:-}" ] || tag
    dist=ngx_http_xet_module-$version
    pack "$dist" | gzip -9n > "$out/$dist.tar.gz"
    echo "$out/$dist.tar.gz"
    exit
fi

command -v dpkg-buildpackage > /dev/null && command -v dh > /dev/null \
    || sh "$root/docker/setup.sh" package >&2

command -v dpkg-buildpackage > /dev/null && command -v dh > /dev/null \
    || die "dh or dpkg-buildpackage is not installed;" \
           "install the packages debhelper and dpkg-dev"

head -n 1 "$root/docker/debian/changelog" | grep -qF "($version-1)" \
    || die "docker/debian/changelog has no entry for $version at its top;" \
           "add one"

. /etc/os-release

case $VERSION_ID in 12 | 13) ;; *)
    echo "package: warning: $PRETTY_NAME is unsupported;" \
        "supported are Debian 12 and 13" >&2
esac

tree=$out/$name-$version

# Objects that were built with other flags or rules cannot be reused, but make
# checks only whether sources have changed.

way=$( (cd "$root" && cat Makefile config docker/debian/rules \
        && dpkg-buildflags) | cksum)

if [ -z "${KEEP:-}" ] || [ "$way" != "$(cat "$out/objects.way" 2>/dev/null)" ]
then
    rm -rf "$out/objects"
fi

echo "$way" > "$out/objects.way"
rm -rf "$tree"
pack "$name-$version" | tar -x -f - -C "$out"
cp -R "$tree/docker/debian" "$tree/debian"

# a changelog entry for this Debian release, one second later than the entry in
# the sources

first=$(sed -n '/^ -- /{p;q}' "$root/docker/debian/changelog")
seconds=$(($(date -d "${first#*>  }" +%s) + revision))

{
    echo "$name ($version-$revision~deb$VERSION_ID) $VERSION_CODENAME;" \
        "urgency=medium"
    printf '\n  * Built for Debian %s.\n\n' "$VERSION_ID"
    echo "${first%>  *}>  $(LC_ALL=C date -R -u -d "@$seconds")"
    echo
    cat "$root/docker/debian/changelog"
} > "$tree/debian/changelog"

# Prints every few seconds how many files are compiled.  Most are compiled for
# the module; the core and the store also for the client.

progress()
{
    all=$( (cd "$tree/src" && find http core store ztensor -name '*.c' \
            && find core store cli ztensor/core -name '*.c') | wc -l)

    while sleep 5 > /dev/null 2>&1; do
        echo "package: $(find "$out/objects" -name '*.o' | wc -l) of about" \
            "$all files are compiled"
    done
}


# -nc: the tree is a fresh copy and needs no clean.

cd "$tree"
mkdir -p "$out/objects"
echo "package: building for Debian $VERSION_ID; the log is $out/log" >&2

progress >&2 &
pid=$!
trap 'kill "$pid" 2>/dev/null || :' EXIT

XET_DEB_BUILD=$out/objects dpkg-buildpackage -b -us -uc -nc > "$out/log" 2>&1 \
    || { tail -n 40 "$out/log" >&2
         echo >&2
         grep -E ': (fatal )?error:|\*\*\* \[' "$out/log" | head -n 5 >&2
         die "the build failed; see $out/log"; }

cd "$out"
ls "$out"/*_"$version-$revision~deb$VERSION_ID"_*.deb
