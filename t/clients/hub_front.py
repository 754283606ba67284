# Copyright (C) the ngx_http_xet_module authors

"""The life of a repo, with huggingface_hub 0.16 or newer, at one URL of a Hub.
Prints a row for each step (hub_row.py).

    hub_front.py FOLDER REPO

With HUB_HTTP2 in the environment, huggingface_hub uses HTTP/2.
"""

import os
import sys

import huggingface_hub
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.utils import RepositoryNotFoundError

from hub_row import end, raises, row

api = HfApi(token=os.environ["HF_TOKEN"])
folder, repo = sys.argv[1:]
moved = repo + "-moved"

NAMES = {"d e/big.bin": os.urandom(3_000_000), "config.json": b"{}"}


def http2():
    import httpx2
    from huggingface_hub.utils._http import hf_request_event_hook

    huggingface_hub.set_client_factory(lambda: httpx2.Client(
        event_hooks={"request": [hf_request_event_hook]},
        follow_redirects=True, timeout=None, http2=True))


def same(root):
    found = {}

    for name in NAMES:
        with open(os.path.join(root, name), "rb") as f:
            found[name] = f.read()

    return found == NAMES


def life():
    for name, data in NAMES.items():
        path = os.path.join(folder, "src", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)

        with open(path, "wb") as f:
            f.write(data)

    row("create_repo", lambda: str(api.create_repo(repo)),
        os.environ["HF_ENDPOINT"] + "/" + repo)
    row("upload_folder", lambda: api.upload_folder(
        folder_path=folder + "/src", repo_id=repo))
    row("snapshot_download", lambda: same(snapshot_download(
        repo, cache_dir=folder + "/1")), True)
    row("create_branch", lambda: api.create_branch(repo, branch="a/b"))
    row("move_repo", lambda: api.move_repo(repo, moved))
    row("snapshot_download: by the old name", lambda: same(
        snapshot_download(repo, cache_dir=folder + "/2")), True)
    row("snapshot_download: of a branch, by the old name", lambda: same(
        snapshot_download(repo, revision="a/b", cache_dir=folder + "/3")),
        True)
    row("hf_hub_download: by the old name", lambda: os.path.getsize(
        hf_hub_download(repo, "d e/big.bin", cache_dir=folder + "/4")),
        3_000_000)
    row("upload_file: by the old name", lambda: api.upload_file(
        path_or_fileobj=os.urandom(200_000), path_in_repo="n.bin",
        repo_id=repo))
    row("delete_repo", lambda: api.delete_repo(moved))
    row("delete_repo: it is gone", lambda: api.model_info(repo),
        raises(RepositoryNotFoundError))


if os.environ.get("HUB_HTTP2"):
    http2()

life()
end()
