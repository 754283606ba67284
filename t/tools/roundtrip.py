"""Uploads a file with hf_xet, downloads it again, compares.

    python t/tools/roundtrip.py ENDPOINT FILE [TOKEN]

ENDPOINT is the base of the Xet API, as http://127.0.0.1:8080/api.  Prints
the file's Xet hash and its size; exits with 1 if the bytes differ.  Each run
has an empty cache folder: with an older cache, the client would read the file
from there instead of downloading it.
"""

import filecmp
import os
import sys
import tempfile
import time


def upload(hf_xet, endpoint, token, path):
    """Returns (hash, size) of the uploaded file."""

    if not hasattr(hf_xet, "XetSession"):
        info = hf_xet.upload_files([path], endpoint, token, None, None, None)
        return info[0].hash, info[0].file_size

    with hf_xet.XetSession().new_upload_commit(
        endpoint=endpoint, **access(token)
    ) as commit:
        handle = commit.start_upload_file(path)

    info = handle.result().xet_info

    return info.hash, info.file_size


def download(hf_xet, endpoint, token, file_hash, size, path):
    if not hasattr(hf_xet, "XetSession"):
        info = hf_xet.PyXetDownloadInfo(path, file_hash, size)
        hf_xet.download_files([info], endpoint, token, None, None)
        return

    with hf_xet.XetSession().new_file_download_group(
        endpoint=endpoint, **access(token)
    ) as group:
        group.start_download_file(hf_xet.XetFileInfo(file_hash, size), path)


def access(token):
    return {"token": token[0], "token_expiry_unix_secs": token[1]}


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)

    endpoint, path = sys.argv[1:3]
    token = (sys.argv[3] if len(sys.argv) == 4 else "none",
             int(time.time()) + 3600)

    with tempfile.TemporaryDirectory() as work:

        # hf_xet reads these variables when it is imported

        os.environ["HF_XET_CACHE"] = os.path.join(work, "cache")
        os.environ["HF_XET_CHUNK_CACHE_SIZE_BYTES"] = "0"
        os.environ.setdefault("HF_XET_CLIENT_RETRY_MAX_ATTEMPTS", "2")

        import hf_xet

        begin = time.monotonic()
        file_hash, size = upload(hf_xet, endpoint, token, path)
        middle = time.monotonic()

        copy = os.path.join(work, "copy")
        download(hf_xet, endpoint, token, file_hash, size, copy)
        end = time.monotonic()

        if not filecmp.cmp(path, copy, shallow=False):
            sys.exit("what came back is not what was sent")

        print("file %s" % path)
        print("hash %s" % file_hash)
        print("size %d" % size)
        print("sent in %.2f s, got back in %.2f s, the same bytes"
              % (middle - begin, end - middle))


if __name__ == "__main__":
    main()
