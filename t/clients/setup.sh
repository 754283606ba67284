#!/bin/sh

# Installs the real clients into BUILD ("build" by default): hf_xet for Python
# into venv, and @huggingface/hub for Node into npm, with a newer Node if the
# system's Node is too old.  The folder "clients" gets huggingface_hub, packages
# built on it (datasets, 570 MB), an older hf_xet for t/clients/matrix.t, and
# three releases of the ztensor package.  "kubernetes" gets the validator for
# docker/kubernetes, and s3/moto gets one of the S3 test stores, by s3_setup.sh.
#
# If the second argument is "all", the script also installs what "make clients"
# needs: older releases, OpenDAL, RamaLama, node-llama-cpp, with cargo xtool and
# two releases of hf-hub, and with go a package in Go.  git-xet, which no
# registry has, is built for t/clients/git_xet.t if XET_CORE is a folder with
# the sources of xet-core.  If OLLAMA or LLAMA_CPP is 1 or a folder with
# sources, Ollama is built for t/clients/ollama.t, and llama.cpp for
# llama_cpp.t.  An installed client is not installed again: "newest" is the
# newest release at that time.
#
# Needs python3-venv, node and npm.

set -eu

here=$(dirname "$0")
build=${1:-build}
what=${2:-test}

# One release for each set of routes that clients have used.

older="1.1.9"
all="1.1.3 1.1.5 1.1.10 1.2.0 1.3.2 1.4.3 1.5.2 1.6.0 1.7.1"

mkdir -p "$build/clients"


# $1: folder; $2: packages to install (words); $3: a module to import as a check
# that they are installed

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


# In Debian 12, Node 18 aborts in Blob when a file is edited.  A newer Node is
# available as an npm package that contains the binary.

install_newer_node()
{
    [ -x "$build/npm/node_modules/.bin/node" ] && return

    [ "$(node -p 'parseInt(process.versions.node)')" -ge 20 ] && return

    (cd "$build/npm" && npm install --silent --no-fund --no-audit \
        --ignore-scripts "node-linux-$(node -p process.arch)@22")
}


# Builds t/clients/hub_rust/$2.rs with release $1 of the crate hf-hub and its
# options $3.

install_rust()
{
    crate=$build/clients/hf-hub-$1

    [ ! -x "$crate/client" ] && command -v cargo > /dev/null || return 0

    mkdir -p "$crate/src"
    cp "$here/hub_rust/$2.rs" "$crate/src/main.rs"

    cat > "$crate/Cargo.toml" << END
[package]
name = "client"
version = "0.0.0"
edition = "2021"

[dependencies.hf-hub]
version = "=$1"
$3

[profile.dev]
debug = false
END

    (cd "$crate" && cargo build -q && mv target/debug/client . \
        && rm -rf target) || echo "hf-hub $1: not built" >&2
}


install_go()
{
    module=$build/clients/hub_go

    [ ! -x "$module/client" ] && command -v go > /dev/null || return 0

    rm -rf "$module"
    mkdir -p "$module"
    cp "$here/hub_go.go" "$module/main.go"

    (cd "$module" && go mod init client \
        && go get github.com/gomlx/go-huggingface/hub@v0.3.1 \
        && go build -o client .) > "$module.log" 2>&1 \
        || echo "go-huggingface: not built, see $module.log" >&2
}


# git-xet is in no registry.  XET_CORE is a folder with the sources of xet-core,
# which have its crate; the build takes about 10 minutes.

install_git_xet()
{
    folder=$build/clients/git_xet

    [ -n "${XET_CORE:-}" ] && [ ! -x "$folder/git-xet" ] || return 0

    mkdir -p "$folder"
    CARGO_TARGET_DIR=$(cd "$folder" && pwd)/target cargo build -q \
        --manifest-path "$XET_CORE/Cargo.toml" -p git_xet \
        && mv "$folder/target/debug/git-xet" "$folder" \
        && rm -rf "$folder/target" \
        || echo "git-xet: not built" >&2
}


# Builds Ollama: the sources in the folder OLLAMA, or with OLLAMA=1 a release
# from the proxy for Go modules, whose newer ones lack headers in folders named
# "vendor".  Its C++ takes about 5 minutes of one core.

install_ollama()
{
    folder=$build/clients/ollama

    [ -n "${OLLAMA:-}" ] && [ ! -x "$folder/ollama" ] \
        && command -v go > /dev/null || return 0

    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)

    if [ -d "$OLLAMA" ]; then
        (cd "$OLLAMA" && go build -p 2 -o "$folder/ollama" .)
    else
        GOBIN=$folder go install -p 2 github.com/ollama/ollama@v0.6.5
    fi > "$folder.log" 2>&1 || echo "Ollama: not built, see $folder.log" >&2
}


# Builds the program "llama" of llama.cpp: the sources in the folder LLAMA_CPP,
# or with LLAMA_CPP=1 those in a source package for Python.  It only downloads
# in the test, so it is not optimized, and has no web page.  The build takes
# about 12 minutes of one core.

install_llama_cpp()
{
    folder=$build/clients/llama_cpp

    [ -n "${LLAMA_CPP:-}" ] && [ ! -x "$folder/llama" ] \
        && command -v cmake > /dev/null || return 0

    rm -rf "$folder"
    mkdir -p "$folder"
    build_llama_cpp > "$folder.log" 2>&1 \
        || echo "llama.cpp: not built, see $folder.log" >&2
}


build_llama_cpp()
{
    sources=$LLAMA_CPP

    if [ ! -d "$sources" ]; then
        "$build/venv/bin/pip" download --disable-pip-version-check --no-deps \
            --no-binary :all: -d "$folder" llama-cpp-python==0.3.36 \
            && tar xzf "$folder"/llama_cpp_python-*.tar.gz -C "$folder" \
            || return 1

        sources=$(echo "$folder"/llama_cpp_python-*/vendor/llama.cpp)
    fi

    cmake -S "$sources" -B "$folder/build" -DCMAKE_BUILD_TYPE=None \
        -DBUILD_SHARED_LIBS=OFF -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF \
        -DLLAMA_ALL_WARNINGS=OFF -DLLAMA_BUILD_TESTS=OFF \
        -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_USE_PREBUILT_UI=OFF \
        && cmake --build "$folder/build" -j 2 --target llama-app \
        && mv "$folder/build/bin/llama" "$folder" \
        && rm -rf "$folder/build" "$folder"/llama_cpp_python-*
}


# Its command "pull" needs none of the programs that its optional packages and
# its scripts install.

install_llama()
{
    llama=$build/clients/node-llama-cpp

    [ -d "$llama/node_modules/node-llama-cpp" ] && return

    mkdir -p "$llama"
    (cd "$llama" && npm init -y > /dev/null \
        && npm install --silent --no-fund --no-audit --ignore-scripts \
            --omit=optional node-llama-cpp) \
        || echo "node-llama-cpp: not installed" >&2
}


exec < /dev/null

install_python "$build/venv" hf_xet hf_xet

# for README.md

"$build/venv/bin/python" -c 'import huggingface_hub' 2> /dev/null \
    || "$build/venv/bin/pip" install -q --disable-pip-version-check \
        huggingface_hub

# for t/code/openapi.t

"$build/venv/bin/python" -c 'import schemathesis' 2> /dev/null \
    || "$build/venv/bin/pip" install -q --disable-pip-version-check \
        schemathesis

# for t/ops/deploy.t

install_python "$build/kubernetes" kubernetes-validate kubernetes_validate \
    || echo "kubernetes-validate: not installed" >&2

# for Test::Xet::S3

sh "$here/s3_setup.sh" "$build" moto

install_python "$build/clients/huggingface_hub" huggingface_hub \
    huggingface_hub

# HTTP/2, for t/clients/fronts.t

"$build/clients/huggingface_hub/bin/python" -c 'import h2' 2> /dev/null \
    || "$build/clients/huggingface_hub/bin/python" -m pip install -q \
        --disable-pip-version-check 'h2<5'

# packages built on huggingface_hub, without torch, for t/hub/data.t and
# t/clients/file_get.t

install_python "$build/clients/datasets" \
    "datasets transformers safetensors Jinja2 pandas pyarrow fsspec aiohttp" \
    datasets,transformers,safetensors,jinja2,pandas,pyarrow,fsspec,aiohttp
install_node
install_newer_node

# for t/hub/web.t: finds faults of pages for screen readers

[ -f "$build/npm/node_modules/axe-core/axe.min.js" ] \
    || (cd "$build/npm" && npm install --silent --no-fund --no-audit axe-core)

# for t/clients/ztensor.t: one writer per container version, and one shared
# numpy

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

# xtool, a command in the Rust sources, if cargo is new enough.  An optimized
# build would take most of an hour, so this is a debug build.

if [ ! -x "$build/clients/xtool/bin/xtool" ] && command -v cargo > /dev/null
then
    cargo install -q hf-xet --bin xtool --features internal-tools \
        --locked --debug \
        --root "$build/clients/xtool" \
        --target-dir "$build/clients/xtool/target" \
        && rm -rf "$build/clients/xtool/target" \
        || echo "xtool: not built" >&2
fi

# for hub_matrix.pl: releases of each year and each major version; those from
# 0.25 to 1.33 have upload_large_folder()

for version in 0.16.4 0.20.3 0.25.2 0.33.4 0.36.2 1.0.1 1.27.0 1.33.0 2.0.0; do
    install_python "$build/clients/huggingface_hub-$version" \
        "huggingface_hub==$version" huggingface_hub \
        || echo "huggingface_hub $version: not installed" >&2
done

install_python "$build/clients/opendal" opendal opendal \
    || echo "opendal: not installed" >&2

install_python "$build/clients/ramalama" ramalama ramalama \
    || echo "ramalama: not installed" >&2

install_rust 0.4.3 read 'default-features = false
features = ["ureq", "rustls-tls"]'
install_rust 1.0.0 write 'features = ["blocking"]'
install_go
install_git_xet
install_ollama
install_llama_cpp
install_llama

# Skips an old release that has no wheel for a new Python.

for version in $all; do
    install_python "$build/clients/hf_xet-$version" "hf_xet==$version" \
        hf_xet || echo "hf_xet $version: not installed" >&2
done
