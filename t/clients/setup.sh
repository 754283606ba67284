#!/bin/sh

# Installs the real clients into BUILD (build): hf_xet for Python into venv,
# @huggingface/hub for Node into npm.  Done once; "newest" is what there is
# when it is done.  Called by "make test"; needs python3-venv, node and npm.

set -eu

build=${1:-build}

mkdir -p "$build"


install_python()
{
    "$build/venv/bin/python" -c 'import hf_xet' 2> /dev/null && return

    rm -rf "$build/venv"
    python3 -m venv "$build/venv"
    "$build/venv/bin/pip" install -q --disable-pip-version-check hf_xet
}


install_node()
{
    [ -d "$build/npm/node_modules/@huggingface/hub" ] && return

    rm -rf "$build/npm"
    mkdir -p "$build/npm"
    (cd "$build/npm" && npm init -y > /dev/null \
        && npm install --silent --no-fund --no-audit @huggingface/hub)
}


install_python < /dev/null
install_node < /dev/null
