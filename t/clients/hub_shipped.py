# Copyright (C) the ngx_http_xet_module authors

"""Operations of huggingface_hub on a repo, for t/hub/shipped.t.  Prints a row
for each (hub_row.py).

    hub_shipped.py rename REPO FROM TO
    hub_shipped.py snapshot REPO FILES
    hub_shipped.py revision REPO COMMIT PATH SIZE
"""

import os
import subprocess
import sys

from huggingface_hub import (CommitOperationCopy, CommitOperationDelete,
                             HfApi, hf_hub_download, snapshot_download)
from huggingface_hub.errors import LocalEntryNotFoundError

from hub_row import end, raises, row

api = HfApi()
command, repo, *args = sys.argv[1:]


def count(root):
    return sum(len(names) for _, _, names in os.walk(root))


def offline(code):
    """Runs the code in a process that can't reach any server."""

    return subprocess.run([sys.executable, "-c", code, repo], check=True,
                          env={**os.environ, "HF_HUB_OFFLINE": "1",
                               "HF_ENDPOINT": "http://127.0.0.1:9"},
                          capture_output=True, text=True).stdout.strip()


def rename(old, new):
    row("create_commit: a file is called something else",
        lambda: api.create_commit(repo, [
            CommitOperationCopy(old, new), CommitOperationDelete(old)],
            commit_message="a name").commit_message, "a name")
    row("get_paths_info: by its new name alone",
        lambda: [p.path for p in api.get_paths_info(repo, [old, new])], [new])


def snapshot(files):
    row("snapshot_download: all files",
        lambda: count(snapshot_download(repo)), int(files))
    row("HF_HUB_OFFLINE: snapshot_download", lambda: count(offline(
        "import sys; from huggingface_hub import snapshot_download as s;"
        "print(s(sys.argv[1]))")), int(files))
    row("local_files_only: a file that is not there",
        lambda: hf_hub_download(repo, "none", local_files_only=True),
        raises(LocalEntryNotFoundError))


def revision(commit, path, size):
    row("hf_hub_download: a former commit", lambda: os.path.getsize(
        hf_hub_download(repo, path, revision=commit)), int(size))


{"rename": rename, "snapshot": snapshot, "revision": revision}[command](*args)
end()
