#!/bin/sh

# Copyright (C) the ngx_http_xet_module authors

# Copies the web pages of the Hub and the status page to a folder:
#
#   sh docker/web.sh FOLDER
#
# FOLDER/lib gets links to the files of the Debian packages libjs-marked,
# node-dompurify and libjs-highlight.js.  A link may dangle: the pages work
# without these libraries, with less colour.

set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
to=${1:?usage: sh docker/web.sh FOLDER}

mkdir -p "$to/lib" "$to/page" "$to/view" "$to/parse"

# nginx reads these files with the rights of its workers

chmod 755 "$to" "$to/lib" "$to/page" "$to/view" "$to/parse"

for from in "$root"/src/web/*.* "$root"/src/web/*/*.js; do
    case $from in *.html | *.css | *.js | *.svg)
        install -m 644 "$from" "$to/${from#"$root"/src/web/}"
    esac
done

# the status page shows the paragraph on a failed check

install -m 644 "$root/docs/trouble.md" "$to/trouble.md"

share=/usr/share

ln -sfn $share/javascript/marked/marked.min.js "$to/lib/marked.js"
ln -sfn $share/nodejs/dompurify/dist/purify.min.js "$to/lib/purify.js"
ln -sfn $share/javascript/highlight.js/highlight.min.js "$to/lib/highlight.js"
