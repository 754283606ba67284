"""Runs the real hf_xet for the tests, and prints one line of JSON.

    hf_xet_run.py upload  API ENDPOINT FILE...
    hf_xet_run.py serve   ENDPOINT
    hf_xet_run.py download API ENDPOINT HASH SIZE DESTINATION
    hf_xet_run.py range   ENDPOINT HASH SIZE START:END...
    hf_xet_run.py version

API is "session" (XetSession) or "legacy" (upload_files, download_files).
"range" prints the SHA-256 of each range that download_stream() returns.
"serve" is one process with one session.  Each line of its input is the path
of a file to upload.  For each file it prints a line: the result of the upload,
or {"error": text}.  With XET_TELL, "upload" also prints an error like this.

The caller must set HF_XET_CACHE: each cache folder simulates another machine.
XET_PAUSE is the number of seconds between files or ranges of a session.
"""

import hashlib
import importlib.metadata
import json
import os
import sys
import time
import warnings

warnings.simplefilter("ignore", DeprecationWarning)

import hf_xet  # noqa: E402


def group_args(endpoint):
    """Arguments from XET_TOKEN, XET_TOKEN_EXPIRY and XET_REFRESH_URL, if set.

    Without an endpoint, the client gets endpoint and token from the URL.
    """

    if not endpoint:
        return {"token_refresh_url": os.environ["XET_REFRESH_URL"]}

    args = {"endpoint": endpoint,
            "token": os.environ.get("XET_TOKEN", "none"),
            "token_expiry_unix_secs":
                int(os.environ.get("XET_TOKEN_EXPIRY", "4102444800"))}

    if "XET_REFRESH_URL" in os.environ:
        args["token_refresh_url"] = os.environ["XET_REFRESH_URL"]

    return args


def paced(items):
    """Yields the items one by one, with pauses in between."""

    for i, item in enumerate(items):
        if i:
            time.sleep(float(os.environ.get("XET_PAUSE", "0")))

        yield item


def upload(api, endpoint, *files):
    try:
        if api == "legacy":
            done = hf_xet.upload_files(list(files), endpoint, None, None,
                                       None, None)
            return [{"hash": f.hash, "size": f.file_size} for f in done]

        return commit_files(hf_xet.XetSession(), endpoint, *files)

    except Exception as e:
        if "XET_TELL" not in os.environ:
            raise

        return {"error": "%s: %s" % (type(e).__name__, e)}


def commit_files(session, endpoint, *files):
    with session.new_upload_commit(**group_args(endpoint)) as commit:
        handles = [commit.start_upload_file(f) for f in paced(files)]

    infos = [h.result().xet_info for h in handles]

    return [{"hash": i.hash, "size": i.file_size} for i in infos]


def serve(endpoint):
    session = hf_xet.XetSession()

    for line in sys.stdin:
        try:
            done = commit_files(session, endpoint, line.rstrip("\n"))

        except Exception as e:
            done = {"error": "%s: %s" % (type(e).__name__, e)}

        print(json.dumps(done), flush=True)

    return {}


def download(api, endpoint, file_hash, size, destination):
    if api == "legacy":
        hf_xet.download_files(
            [hf_xet.PyXetDownloadInfo(destination, file_hash, int(size))],
            endpoint, None, None, None)
        return {}

    session = hf_xet.XetSession()

    with session.new_file_download_group(**group_args(endpoint)) as group:
        group.start_download_file(hf_xet.XetFileInfo(file_hash, int(size)),
                                  destination)
    return {}


def ranges(endpoint, file_hash, size, *wanted):
    session = hf_xet.XetSession()
    group = session.new_download_stream_group(**group_args(endpoint))
    info = hf_xet.XetFileInfo(file_hash, int(size))
    found = []

    for item in paced(wanted):
        start, end = (int(n) for n in item.split(":"))
        digest = hashlib.sha256()
        length = 0

        for piece in group.download_stream(info, start, end):
            digest.update(piece)
            length += len(piece)

        found.append({"length": length, "sha256": digest.hexdigest()})

    return found


def version():
    return {"version": importlib.metadata.version("hf_xet")}


commands = {"upload": upload, "download": download, "range": ranges,
            "serve": serve, "version": version}

print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))
