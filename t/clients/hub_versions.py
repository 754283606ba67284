# Copyright (C) the ngx_http_xet_module authors

"""Everyday operations that every release of huggingface_hub since 0.16 offers,
with an empty Hub.  Prints a row for each (hub_row.py).

    hub_versions.py FOLDER

A row is left out if the release does not have the operation.
"""

import os
import sys

from huggingface_hub import (CommitOperationAdd, CommitOperationDelete, HfApi,
                             HfFileSystem, hf_hub_download,
                             snapshot_download)
from huggingface_hub.utils import (EntryNotFoundError,
                                   RepositoryNotFoundError,
                                   RevisionNotFoundError)

try:
    from huggingface_hub.errors import RemoteEntryNotFoundError
except ImportError:
    RemoteEntryNotFoundError = EntryNotFoundError

from hub_row import end, raises, row

api = HfApi(token=os.environ["HF_TOKEN"])
folder = sys.argv[1]

NAMES = {"config.json": b"{}", "d/one.bin": os.urandom(1_500_000),
         "d/empty": b"", "d/two.txt": b"two"}


def has(name, function, want=None):
    if hasattr(api, name):
        return row(name, function, want)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def same(root):
    return [n for n, data in NAMES.items()
            if read(os.path.join(root, n)) != data]


def files(repo="me/v", **args):
    return sorted(api.list_repo_files(repo, **args))


def uploads():
    for name, data in NAMES.items():
        path = os.path.join(folder, "src", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)

        with open(path, "wb") as f:
            f.write(data)

    row("whoami", lambda: api.whoami()["name"], "me")
    row("create_repo", lambda: str(api.create_repo("me/v")),
        os.environ["HF_ENDPOINT"] + "/me/v")
    row("create_repo: exist_ok",
        lambda: api.create_repo("me/v", exist_ok=True))
    row("create_repo: a private dataset",
        lambda: api.create_repo("me/v", repo_type="dataset", private=True))
    row("upload_folder", lambda: api.upload_folder(
        folder_path=folder + "/src", repo_id="me/v"))
    row("list_repo_files", files, sorted(NAMES))
    row("upload_file", lambda: api.upload_file(
        path_or_fileobj=b"x" * 70_000, path_in_repo="a/x y.txt",
        repo_id="me/v"))
    row("upload_file: to a dataset", lambda: api.upload_file(
        path_or_fileobj=b"1,2", path_in_repo="t.csv", repo_id="me/v",
        repo_type="dataset"))
    row("create_commit: add and delete", lambda: api.create_commit(
        "me/v", [CommitOperationAdd("b.txt", b"bbb"),
                 CommitOperationDelete("d/two.txt")],
        commit_message="two").oid, lambda oid: len(oid) == 40)
    del NAMES["d/two.txt"]


def downloads():
    row("hf_hub_download",
        lambda: read(hf_hub_download("me/v", "a/x y.txt")), b"x" * 70_000)
    row("hf_hub_download: of a private dataset",
        lambda: read(hf_hub_download("me/v", "t.csv", repo_type="dataset",
                                     token=api.token)), b"1,2")
    row("hf_hub_download: a folder of the caller",
        lambda: read(hf_hub_download("me/v", "b.txt",
                                     local_dir=folder + "/local")), b"bbb")
    row("snapshot_download", lambda: same(snapshot_download("me/v")), [])
    row("snapshot_download: again", lambda: same(snapshot_download("me/v")),
        [])
    row("snapshot_download: allow_patterns", lambda: os.listdir(
        snapshot_download("me/v", allow_patterns="b.*",
                          cache_dir=folder + "/other")), ["b.txt"])
    row("HfFileSystem: ls and cat", lambda: (
        len(HfFileSystem(token=api.token).ls("me/v")),
        HfFileSystem(token=api.token).cat("me/v/b.txt")), (4, b"bbb"))


def infos():
    sha = row("model_info", lambda: api.model_info("me/v").sha,
              lambda s: len(s) == 40)

    row("model_info: its files", lambda: sorted(
        s.rfilename for s in api.model_info("me/v").siblings), files())
    row("model_info: of a commit",
        lambda: api.model_info("me/v", revision=sha).sha, sha)
    has("file_exists", lambda: [api.file_exists("me/v", n)
                                for n in ("b.txt", "no")], [True, False])
    has("repo_exists", lambda: [api.repo_exists(n)
                                for n in ("me/v", "me/no", "no")],
        [True, False, False])
    has("get_paths_info", lambda: [p.path for p in api.get_paths_info(
        "me/v", ["b.txt", "no"])], ["b.txt"])
    row("list_repo_commits",
        lambda: api.list_repo_commits("me/v")[0].title, "two")
    row("list_models", lambda: [getattr(m, "id", None) or m.modelId
                                for m in api.list_models(author="me")],
        ["me/v"])
    row("list_datasets", lambda: [d.id for d in
                                  api.list_datasets(author="me")],
        ["me/v"])


def revisions():
    row("create_branch", lambda: api.create_branch("me/v", branch="dev/1"))
    row("upload_file: to a branch", lambda: api.upload_file(
        path_or_fileobj=b"on it", path_in_repo="br.txt", repo_id="me/v",
        revision="dev/1"))
    row("create_tag", lambda: api.create_tag("me/v", tag="v1",
                                             revision="dev/1"))
    row("hf_hub_download: of a tag", lambda: read(
        hf_hub_download("me/v", "br.txt", revision="v1")), b"on it")
    row("snapshot_download: of a branch", lambda: sorted(os.listdir(
        snapshot_download("me/v", revision="dev/1"))),
        ["a", "b.txt", "br.txt", "config.json", "d"])
    row("list_repo_refs", lambda: sorted(
        b.name for b in api.list_repo_refs("me/v").branches),
        ["dev/1", "main"])
    row("delete_tag", lambda: api.delete_tag("me/v", tag="v1"))
    row("delete_branch", lambda: api.delete_branch("me/v", branch="dev/1"))


def large():
    """upload_large_folder exists from 0.25 to 1.33."""

    if not hasattr(api, "upload_large_folder"):
        return

    path = folder + "/large"

    for i in range(30):
        os.makedirs(path + "/%d" % (i % 3), exist_ok=True)

        with open(path + "/%d/%d.bin" % (i % 3, i), "wb") as f:
            f.write(os.urandom(20000))

    row("upload_large_folder", lambda: api.upload_large_folder(
        repo_id="me/large", repo_type="model", folder_path=path))
    row("upload_large_folder: the files", lambda: len(files("me/large")), 30)
    row("upload_large_folder: the bytes",
        lambda: read(snapshot_download("me/large") + "/1/4.bin"),
        read(path + "/1/4.bin"))
    row("delete_repo: a large one", lambda: api.delete_repo("me/large"))


def missing():
    row("no such file", lambda: hf_hub_download("me/v", "no"),
        raises(RemoteEntryNotFoundError, 404))
    row("no such revision", lambda: hf_hub_download("me/v", "b.txt",
                                                    revision="no"),
        raises(RevisionNotFoundError, 404))
    row("no such repo", lambda: hf_hub_download("me/no", "b.txt"),
        raises(RepositoryNotFoundError))
    row("no such repo: a name without an owner",
        lambda: hf_hub_download("no", "b.txt"),
        raises(RepositoryNotFoundError))


def moved():
    row("move_repo", lambda: api.move_repo("me/v", "me/w"))
    row("model_info: by the old name", lambda: api.model_info("me/v").sha,
        lambda s: len(s) == 40)
    row("hf_hub_download: by the old name", lambda: read(hf_hub_download(
        "me/v", "b.txt", cache_dir=folder + "/moved")), b"bbb")
    row("snapshot_download: by the old name", lambda: same(
        snapshot_download("me/v", cache_dir=folder + "/moved2")), [])
    row("upload_file: by the old name", lambda: api.upload_file(
        path_or_fileobj=b"n", path_in_repo="n.txt", repo_id="me/v"))
    row("delete_file", lambda: api.delete_file("n.txt", "me/w"))
    row("delete_folder", lambda: api.delete_folder("d", "me/w"))
    row("list_repo_files: what is left", lambda: files("me/w"),
        ["a/x y.txt", "b.txt", "config.json"])
    row("delete_repo", lambda: api.delete_repo("me/w"))
    row("delete_repo: a dataset",
        lambda: api.delete_repo("me/v", repo_type="dataset"))
    row("no such repo: info", lambda: api.model_info("me/w"),
        raises(RepositoryNotFoundError))


for part in (uploads, downloads, infos, revisions, large,
             missing, moved):
    part()

end()
