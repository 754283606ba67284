#!/bin/sh

# Installs the real clients into BUILD (build): hf_xet for Python into venv,
# @huggingface/hub for Node into npm, with a newer Node where the system's is
# too old, and below clients huggingface_hub, what stands on it into datasets
# (570 MB), of hf_xet one older release for t/clients/matrix.t, and the ztensor
# package in three releases; what validates docker/kubernetes into kubernetes;
# and by s3_setup.sh one of the stores of the tests of S3 into s3/moto.  With
# "all" as the second argument the older releases of "make clients", too, and
# xtool where there is a cargo.  Done once; "newest" is what there is when it is
# done.
# Needs python3-venv, node and npm.

set -eu

build=${1:-build}
what=${2:-test}

# One release for each way that clients have found through the routes.

older="1.1.9"
all="1.1.3 1.1.5 1.1.10 1.2.0 1.3.2 1.4.3 1.5.2 1.6.0 1.7.1"

mkdir -p "$build/clients"


# $1 folder, $2 what to install (words), $3 module that shows that it is there

install_python()
{
    "$1/bin/python" -c "import $3" 2> /dev/null && return

    rm -rf "$1"
    python3 -m venv "$1"

    # shellcheck disable=SC2086
    "$1/bin/pip" install -q --disable-pip-version-check $2
}


install_node()
{
    [ -d "$build/npm/node_modules/@huggingface/hub" ] && return

    rm -rf "$build/npm"
    mkdir -p "$build/npm"
    (cd "$build/npm" && npm init -y > /dev/null \
        && npm install --silent --no-fund --no-audit @huggingface/hub)
}


# Node 18, of Debian 12, aborts inside of Blob when a file is edited.  A newer
# one comes as a package like the others, its binary inside.

install_newer_node()
{
    [ -x "$build/npm/node_modules/.bin/node" ] && return

    [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] && return

    (cd "$build/npm" && npm install --silent --no-fund --no-audit \
        --ignore-scripts "node-linux-$(node -p process.arch)@22")
}


exec < /dev/null

install_python "$build/venv" hf_xet hf_xet

# of README.md

"$build/venv/bin/python" -c 'import huggingface_hub' 2> /dev/null \
    || "$build/venv/bin/pip" install -q --disable-pip-version-check \
        huggingface_hub

# of t/code/openapi.t

"$build/venv/bin/python" -c 'import schemathesis' 2> /dev/null \
    || "$build/venv/bin/pip" install -q --disable-pip-version-check \
        schemathesis

# of t/ops/deploy.t

install_python "$build/kubernetes" kubernetes-validate kubernetes_validate \
    || echo "kubernetes-validate: not installed" >&2

# of Test::Xet::S3

sh "$(dirname "$0")/s3_setup.sh" "$build" moto

install_python "$build/clients/huggingface_hub" huggingface_hub \
    huggingface_hub

# of t/hub/data.t, what stands on huggingface_hub, and with it what
# t/clients/file_get.t needs; no torch

install_python "$build/clients/datasets" \
    "datasets transformers safetensors Jinja2 pandas pyarrow fsspec aiohttp" \
    datasets,transformers,safetensors,jinja2,pandas,pyarrow,fsspec,aiohttp
install_node
install_newer_node

# of t/clients/ztensor.t: one writer for each container, with one numpy

install_python "$build/clients/ztensor" "numpy cffi" numpy

for version in 1.1.1 1.2.3 2.1.2; do
    [ -d "$build/clients/ztensor-$version/ztensor" ] \
        || "$build/clients/ztensor/bin/pip" install -q --no-deps \
            --disable-pip-version-check \
            --target "$build/clients/ztensor-$version" "ztensor==$version" \
        || echo "ztensor $version: not installed" >&2
done

for version in $older; do
    install_python "$build/clients/hf_xet-$version" "hf_xet==$version" \
        hf_xet
done

[ "$what" = all ] || exit 0

# The command of the Rust sources, where there is a cargo that is new enough;
# not optimised, or it would take the better part of an hour.

if [ ! -x "$build/clients/xtool/bin/xtool" ] && command -v cargo > /dev/null
then
    cargo install -q hf-xet --bin xtool --features internal-tools \
        --locked --debug \
        --root "$build/clients/xtool" \
        --target-dir "$build/clients/xtool/target" \
        && rm -rf "$build/clients/xtool/target" \
        || echo "xtool: not built" >&2
fi

# of hub_matrix.pl: releases that still had the upload of a large folder

for version in 0.36.2 1.33.0; do
    install_python "$build/clients/huggingface_hub-$version" \
        "huggingface_hub==$version" huggingface_hub \
        || echo "huggingface_hub $version: not installed" >&2
done

# An old release that a new Python has no wheel for is no row.

for version in $all; do
    install_python "$build/clients/hf_xet-$version" "hf_xet==$version" \
        hf_xet || echo "hf_xet $version: not installed" >&2
done
