#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Installs the stores for Test::Xet::S3 into BUILD/s3 ("build" by default):
#
#     sh t/clients/s3_setup.sh BUILD moto               for CI, by setup.sh
#     sh t/clients/s3_setup.sh BUILD                    all
#     sh t/clients/s3_setup.sh BUILD garage radosgw     some
#
# moto needs python3-venv.  The other stores are too heavy for every test run:
# s3proxy needs java and mvn; garage and s3s need a newer cargo than Debian 12
# and 13 have.  radosgw is unpacked from Debian packages into BUILD/s3, without
# changes to the system, and needs the package lists (apt-get update).  An
# unavailable store is reported, but is not an error.  An installed store is not
# installed again.

set -eu

build=${1:-build}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- moto s3proxy s3s garage radosgw

moto=5.2.5
garage=2.5.0
s3s=0.14.0
s3proxy=4.1.0

mkdir -p "$build/s3"
build=$(cd "$build" && pwd)


have()
{
    for program; do
        command -v "$program" > /dev/null && continue

        echo "$name: not installed, there is no $program" >&2
        return 1
    done
}


# moto, configured for S3 only; awscrt computes checksums; boto3 is a client for
# the tests.

install_moto()
{
    dir=$build/s3/moto

    "$dir/bin/python" -c 'import moto, flask_cors, awscrt, boto3' \
        2> /dev/null && return

    rm -rf "$dir"
    python3 -m venv "$dir"
    "$dir/bin/pip" install -q --disable-pip-version-check \
        "moto[s3]==$moto" flask flask-cors awscrt boto3
}


# A debug build takes a third of the build time of an optimized build, and is
# fast enough for tests.

install_crate()
{
    dir=$build/s3/$name

    have cargo || return 0

    CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_INCREMENTAL=false \
        nice -n 19 cargo install -q --locked --debug "$@" --root "$dir" \
        --target-dir "$dir/target" \
        || echo "$name: not built" >&2

    rm -rf "$dir/target"
}


install_garage()
{
    [ -x "$build/s3/garage/bin/garage" ] && return

    install_crate garage --version "$garage" --no-default-features \
        --features bundled-libs,lmdb
}


install_s3s()
{
    [ -x "$build/s3/s3s/bin/s3s-fs" ] && return

    install_crate s3s-fs --version "$s3s" --features binary
}


install_s3proxy()
{
    dir=$build/s3/s3proxy

    [ -f "$dir/s3proxy.jar" ] && return
    have java mvn || return 0

    mkdir -p "$dir"
    mvn -q -B dependency:get -Dtransitive=false \
        -Dmaven.repo.local="$dir/repository" \
        -Dartifact="org.gaul:s3proxy:$s3proxy:jar:jar-with-dependencies" \
        && find "$dir/repository" -name 's3proxy-*-dependencies.jar' \
            -exec mv {} "$dir/s3proxy.jar" \; \
        || echo "s3proxy: not installed" >&2
    rm -rf "$dir/repository"
}


# Unpacks the packages that mon, osd and the gateway need and the system does
# not have, except for packages that manage disks.

install_radosgw()
{
    dir=$build/s3/radosgw

    [ -x "$dir/usr/bin/radosgw" ] && return
    have apt-get dpkg-deb || return 0

    packages=$(apt-get install -s --no-install-recommends ceph-mon ceph-osd \
        radosgw 2> /dev/null | sed -n 's/^Inst \([^ ]*\) .*/\1/p' \
        | grep -Ev '^(python3-|lib(devmapper|lvm|nvme|parted))' \
        | grep -E '^(lib|ceph|radosgw)') || :

    rm -rf "$dir.new"
    mkdir -p "$dir.new/packages"

    # shellcheck disable=SC2086
    if (cd "$dir.new/packages" && apt-get download -qq $packages \
        python3-ceph-argparse python3-ceph-common python3-rados \
        python3-prettytable python3-wcwidth)
    then
        for package in "$dir.new"/packages/*.deb; do
            dpkg-deb -x "$package" "$dir.new"
        done

        rm -rf "$dir.new/packages" "$dir"
    fi

    if [ -x "$dir.new/usr/bin/radosgw" ]; then
        mv "$dir.new" "$dir"
    else
        echo "radosgw: not installed" >&2
        rm -rf "$dir.new"
    fi
}


exec < /dev/null

for name; do
    case $name in
    garage | moto | radosgw | s3proxy | s3s)
        "install_$name"
        ;;
    *)
        echo "$0: no store $name" >&2
        exit 2
    esac
done
