# Copyright (C) the ngx_http_xet_module authors

"""Operations of huggingface_hub on an empty Hub.  Prints a row for each
(hub_row.py).

    hub_table.py repos|buckets FOLDER

HF_ENDPOINT is the Hub; FOLDER is for local files.  Run "repos" with and without
Xet (HF_HUB_DISABLE_XET); "buckets" requires Xet.
"""

import os
import random
import subprocess
import sys
from typing import get_args

from huggingface_hub import (CommitOperationAdd, CommitOperationCopy,
                             CommitOperationDelete, HfApi, HfFileSystem,
                             get_hf_file_metadata, hf_api, hf_hub_download,
                             hf_hub_url, snapshot_download)
from huggingface_hub.errors import (BadRequestError, BucketNotFoundError,
                                    EntryNotFoundError, HfHubHTTPError,
                                    LocalEntryNotFoundError,
                                    RemoteEntryNotFoundError,
                                    RepositoryNotFoundError,
                                    RevisionNotFoundError)

from hub_row import end, raises, row

api = HfApi()
base = os.environ["HF_ENDPOINT"]
command, folder = sys.argv[1:]

ODD = "x/y z#?%41ä.bin"
# with Xet, a folder is uploaded in several commits, otherwise in one

WITHOUT = int(os.environ.get("HF_HUB_DISABLE_XET", "0"))

BYTES = random.Random(1).randbytes(3_000_000)


def is_id(oid):
    return len(oid) == 40 and set(oid) <= set("0123456789abcdef")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def files(repo, **args):
    return sorted(api.list_repo_files(repo, **args))


def local(root):
    """The files below a folder, without the client's own ones in .cache."""

    found = []

    for path, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != ".cache"]
        found += [os.path.relpath(os.path.join(path, n), root) for n in names]

    return sorted(found)


def write(name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)

    with open(path, "wb") as f:
        f.write(data)


def made():
    row("whoami", lambda: api.whoami()["name"], "me")
    row("create_repo", lambda: str(api.create_repo("me/a")), base + "/me/a")
    row("create_repo: twice is 409", lambda: api.create_repo("me/a"),
        raises(HfHubHTTPError, 409))
    row("create_repo: exist_ok",
        lambda: api.create_repo("me/a", exist_ok=True).repo_id, "me/a")
    row("create_repo: of who asks",
        lambda: api.create_repo("bare").repo_id, "me/bare")
    row("create_repo: a private dataset",
        lambda: str(api.create_repo("me/d", repo_type="dataset",
                                    private=True)), base + "/datasets/me/d")
    row("create_repo: a space",
        lambda: str(api.create_repo("me/s", repo_type="space",
                                    space_sdk="static")),
        base + "/spaces/me/s")
    row("repo_info: of three kinds",
        lambda: [api.model_info("me/a").private,
                 api.dataset_info("me/d").private,
                 api.space_info("me/s").id], [False, True, "me/s"])
    row("repo_info: each property that can be expanded",
        lambda: [info(id, expand=list(get_args(names))).id
                 for info, id, names in (
                     (api.model_info, "me/a", hf_api.ExpandModelProperty_T),
                     (api.dataset_info, "me/d",
                      hf_api.ExpandDatasetProperty_T),
                     (api.space_info, "me/s", hf_api.ExpandSpaceProperty_T))],
        ["me/a", "me/d", "me/s"])
    row("list_repo_files: none yet", lambda: files("me/a"), [])


def sent():
    row("upload_file: bytes, an odd name",
        lambda: api.upload_file(path_or_fileobj=b"abc" * 1000,
                                path_in_repo=ODD, repo_id="me/a").oid, is_id)
    row("list_repo_files", lambda: files("me/a"), [ODD])
    row("upload_file: the same bytes to another repo",
        lambda: api.upload_file(path_or_fileobj=b"abc" * 1000,
                                path_in_repo="same", repo_id="me/bare").oid,
        is_id)
    row("hf_hub_download: it comes back",
        lambda: read(hf_hub_download("me/a", ODD)), b"abc" * 1000)
    row("create_commit: add, copy, delete a folder",
        lambda: api.create_commit("me/a", [
            CommitOperationAdd("b.txt", b"bbb"), CommitOperationAdd("e", b""),
            CommitOperationCopy(ODD, "c.bin"),
            CommitOperationDelete("x/", is_folder=True)],
            commit_message="two", commit_description="more of it").oid, is_id)
    row("list_repo_files: after it", lambda: files("me/a"),
        ["b.txt", "c.bin", "e"])
    row("list_repo_tree: expand",
        lambda: [(t.path, t.size, t.last_commit.title)
                 for t in api.list_repo_tree("me/a", expand=True)],
        [("b.txt", 3, "two"), ("c.bin", 3000, "two"), ("e", 0, "two")])
    row("get_paths_info",
        lambda: [(p.path, p.size) for p in
                 api.get_paths_info("me/a", ["b.txt", "nope"])],
        [("b.txt", 3)])
    row("list_repo_commits",
        lambda: [(c.title, c.message) for c in api.list_repo_commits("me/a")],
        lambda v: v[0] == ("two", "more of it")
        and v[-1][0] == "initial commit" and len(v) == 3)
    row("create_commit: nothing to do",
        lambda: api.create_commit("me/a", [CommitOperationAdd(
            "b.txt", b"bbb")], commit_message="again").oid
        == api.repo_info("me/a").sha, True)


def folders():
    names = {"big.bin": BYTES, "d/one.txt": b"one", "d/two.txt": b"two",
             "d/e/empty": b"", "skip.log": b"not this"}

    for name, data in names.items():
        write("src/" + name, data)

    def up(**args):
        return api.upload_folder(repo_id="me/f",
                                 folder_path=folder + "/src", **args).oid

    api.create_repo("me/f")

    row("upload_folder: ignore_patterns", lambda: up(ignore_patterns="*.log"),
        is_id)
    row("upload_folder: what is there", lambda: files("me/f"),
        ["big.bin", "d/e/empty", "d/one.txt", "d/two.txt"])
    row("snapshot_download",
        lambda: local(snapshot_download("me/f")),
        ["big.bin", "d/e/empty", "d/one.txt", "d/two.txt"])
    row("snapshot_download: the bytes",
        lambda: all(read(os.path.join(snapshot_download("me/f"), n)) == d
                    for n, d in names.items() if n != "skip.log"), True)
    row("snapshot_download: allow_patterns, local_dir",
        lambda: local(snapshot_download("me/f", allow_patterns="d/*.txt",
                                        local_dir=folder + "/part")),
        ["d/one.txt", "d/two.txt"])

    os.remove(folder + "/src/d/two.txt")
    write("src/d/three.txt", b"three")

    row("upload_folder: delete_patterns",
        lambda: up(delete_patterns="d/*", allow_patterns="d/*"), is_id)
    row("upload_folder: one gone, one new", lambda: files("me/f"),
        ["big.bin", "d/e/empty", "d/one.txt", "d/three.txt"])
    row("verify_repo_checksums",
        lambda: api.verify_repo_checksums(
            "me/f", local_dir=snapshot_download(
                "me/f", local_dir=folder + "/all")).mismatches, [])
    row("delete_files: a pattern",
        lambda: api.delete_files("me/f", ["d/*.txt"]).oid, is_id)
    row("delete_folder", lambda: api.delete_folder("d", "me/f").oid, is_id)
    row("delete_file: one that is not there",
        lambda: api.delete_file("nope", "me/f"),
        raises(RemoteEntryNotFoundError, 404))
    row("delete_*: what is left", lambda: files("me/f"), ["big.bin"])

    for i in range(300):
        write("many/%d/%d.txt" % (i % 7, i), b"file %d" % i)

    before = len(api.list_repo_commits("me/f"))

    row("upload_folder: 300 files",
        lambda: api.upload_folder(repo_id="me/f", path_in_repo="many",
                                  folder_path=folder + "/many").oid, is_id)
    row("upload_folder: 300 files, %d commits" % (WITHOUT or 2),
        lambda: (len(api.list_repo_files("me/f")),
                 len(api.list_repo_commits("me/f")) - before),
        (301, WITHOUT or 2))
    row("snapshot_download: 300 files",
        lambda: [read(snapshot_download("me/f", allow_patterns="many/*")
                      + "/many/%d/%d.txt" % (i % 7, i)) for i in
                 (0, 150, 299)], [b"file 0", b"file 150", b"file 299"])


OFFLINE = """
import sys
from huggingface_hub import hf_hub_download, snapshot_download
for rev in sys.argv[1:]:
    print(open(hf_hub_download("me/a", "b.txt", revision=rev)).read())
print(snapshot_download("me/a"))
try:
    hf_hub_download("me/a", "c.bin", revision="no")
except Exception as e:
    print(type(e).__name__)
"""


def revisions():
    first = api.list_repo_commits("me/a")[-2].commit_id

    row("create_branch", lambda: api.create_branch("me/a", branch="dev/x"))
    row("create_branch: twice is 409",
        lambda: api.create_branch("me/a", branch="dev/x"),
        raises(HfHubHTTPError, 409))
    row("create_branch: exist_ok",
        lambda: api.create_branch("me/a", branch="dev/x", exist_ok=True))
    row("upload_file: to a branch",
        lambda: api.upload_file(path_or_fileobj=b"on branch", repo_id="me/a",
                                path_in_repo="d/br.txt",
                                revision="dev/x").oid, is_id)
    row("list_repo_files: of a branch",
        lambda: [files("me/a", revision=r) for r in ("dev/x", "main")],
        [["b.txt", "c.bin", "d/br.txt", "e"], ["b.txt", "c.bin", "e"]])
    row("create_tag",
        lambda: api.create_tag("me/a", tag="v1", revision="dev/x",
                               tag_message="t"))
    row("list_repo_refs",
        lambda: [r.name for refs in [api.list_repo_refs("me/a")]
                 for r in refs.branches + refs.tags],
        ["dev/x", "main", "v1"])
    row("hf_hub_download: of a tag",
        lambda: read(hf_hub_download("me/a", "d/br.txt", revision="v1")),
        b"on branch")
    row("hf_hub_download: of a commit",
        lambda: read(hf_hub_download("me/a", ODD, revision=first)),
        b"abc" * 1000)
    row("hf_hub_download: as it is now",
        lambda: read(hf_hub_download("me/a", "b.txt")), b"bbb")
    row("snapshot_download: a small repo",
        lambda: local(snapshot_download("me/a")), ["b.txt", "c.bin", "e"])

    head = api.repo_info("me/a").sha

    row("HF_HUB_OFFLINE: what the cache has, by branch and by commit",
        lambda: subprocess.run([sys.executable, "-c", OFFLINE, "main", head],
                               env={**os.environ, "HF_HUB_OFFLINE": "1",
                                    "HF_ENDPOINT": "http://127.0.0.1:9"},
                               capture_output=True, text=True,
                               check=True).stdout.split(),
        lambda v: v[0:2] == ["bbb", "bbb"] and v[2].endswith(head)
        and v[3] == "LocalEntryNotFoundError")
    row("local_files_only: what the cache does not have",
        lambda: hf_hub_download("me/f", "nope", local_files_only=True),
        raises(LocalEntryNotFoundError))
    row("delete_tag", lambda: api.delete_tag("me/a", tag="v1"))
    row("delete_branch", lambda: api.delete_branch("me/a", branch="dev/x"))
    row("delete_branch: the main one stays",
        lambda: api.delete_branch("me/a", branch="main"),
        raises(HfHubHTTPError, 403))


def missing():
    row("no such revision: info",
        lambda: api.repo_info("me/a", revision="dev/x"),
        raises(RevisionNotFoundError, 404))
    row("no such revision: download",
        lambda: hf_hub_download("me/a", "b.txt", revision="no"),
        raises(RevisionNotFoundError, 404))
    row("no such revision: snapshot",
        lambda: snapshot_download("me/a", revision="no"),
        raises(RevisionNotFoundError, 404))
    row("no such repo: info", lambda: api.repo_info("me/zz"),
        raises(RepositoryNotFoundError, 404))
    row("no such repo: download", lambda: hf_hub_download("me/zz", "b.txt"),
        raises(RepositoryNotFoundError, 404))
    row("no such repo: upload",
        lambda: api.upload_file(path_or_fileobj=b"x", path_in_repo="x",
                                repo_id="me/zz"),
        raises(RepositoryNotFoundError, 404))
    row("no such file: download", lambda: hf_hub_download("me/a", "nope"),
        raises(RemoteEntryNotFoundError, 404))
    row("no such folder: tree",
        lambda: list(api.list_repo_tree("me/a", "nope")),
        raises(RemoteEntryNotFoundError, 404))
    row("file_exists, repo_exists, revision_exists",
        lambda: [api.file_exists("me/a", "b.txt"),
                 api.file_exists("me/a", "nope"), api.repo_exists("me/q"),
                 api.revision_exists("me/a", "main"),
                 api.revision_exists("me/a", "no")],
        [True, False, False, True, False])
    row("a path that climbs",
        lambda: api.create_commit("me/a", [CommitOperationAdd(
            "a/../../x", b"x")], commit_message="s"), raises(ValueError))


def changed():
    first = api.list_repo_commits("me/a")[-2].commit_id

    row("parent_commit: of long ago, the same path",
        lambda: api.create_commit(
            "me/a", [CommitOperationAdd("b.txt", b"stale")],
            commit_message="s", parent_commit=first),
        raises(HfHubHTTPError, 412))
    row("parent_commit: of long ago, another path",
        lambda: api.create_commit(
            "me/a", [CommitOperationAdd("other.txt", b"ok")],
            commit_message="s", parent_commit=first).oid, is_id)
    row("get_hf_file_metadata",
        lambda: get_hf_file_metadata(hf_hub_url("me/a", "c.bin")),
        lambda m: m.size == 3000 and m.commit_hash
        == api.repo_info("me/a").sha and len(m.etag) == 64)
    row("repo_info: files_metadata",
        lambda: {s.rfilename: s.size for s in api.repo_info(
            "me/a", files_metadata=True).siblings},
        {"b.txt": 3, "c.bin": 3000, "e": 0, "other.txt": 2})
    row("update_repo_settings: private",
        lambda: api.update_repo_settings("me/a", private=True))
    row("update_repo_settings: it is",
        lambda: api.repo_info("me/a").private, True)
    row("auth_check", lambda: api.auth_check("me/a"))
    row("move_repo", lambda: api.move_repo("me/a", "me/a2"))
    row("move_repo: the old name leads to it",
        lambda: api.repo_info("me/a").id, "me/a2")
    row("move_repo: download by the old name",
        lambda: read(hf_hub_download("me/a", "b.txt", force_download=True)),
        b"bbb")
    row("move_repo: upload by the old name",
        lambda: api.upload_file(path_or_fileobj=b"new", path_in_repo="n.txt",
                                repo_id="me/a").oid, is_id)
    row("list_models, list_datasets, list_spaces",
        lambda: [sorted(r.id for r in f(author="me")) for f in
                 (api.list_models, api.list_datasets, api.list_spaces)],
        [["me/a2", "me/bare", "me/f"], ["me/d"], ["me/s"]])
    row("list_models: search",
        lambda: [m.id for m in api.list_models(search="bar")], ["me/bare"])


def file_system():
    fs = HfFileSystem()

    def part():
        with fs.open("me/f/big.bin", block_size=4096) as f:
            f.seek(1_234_567)
            one = f.read(100)
            f.seek(-10, 2)
            return one + f.read()

    row("HfFileSystem: ls",
        lambda: sorted(x["name"] for x in fs.ls("me/a2")),
        ["me/a2/b.txt", "me/a2/c.bin", "me/a2/e", "me/a2/n.txt",
         "me/a2/other.txt"])
    row("HfFileSystem: open", lambda: fs.open("me/f/big.bin").read(), BYTES)
    row("HfFileSystem: open, as text",
        lambda: fs.open("me/a2/b.txt", "r").read(), "bbb")
    row("HfFileSystem: open, seek, from the end", part,
        BYTES[1_234_567:1_234_667] + BYTES[-10:])
    row("HfFileSystem: cat_file, a range",
        lambda: fs.cat_file("me/f/big.bin", start=65_000, end=66_000),
        BYTES[65_000:66_000])
    row("HfFileSystem: glob", lambda: sorted(fs.glob("me/a2/*.txt")),
        ["me/a2/b.txt", "me/a2/n.txt", "me/a2/other.txt"])
    row("HfFileSystem: find", lambda: len(fs.find("me/f")), 301)
    row("HfFileSystem: walk",
        lambda: [len(names) for _, _, names in fs.walk("me/f/many/3")], [43])
    row("HfFileSystem: info, exists, isdir",
        lambda: [fs.info("me/a2/c.bin")["size"], fs.exists("me/a2/no"),
                 fs.isdir("me/f/many"), fs.isfile("me/f/many")],
        [3000, False, True, False])
    row("HfFileSystem: a revision in the path",
        lambda: fs.cat("me/a2@%s/%s" % (
            api.list_repo_commits("me/a2")[-2].commit_id, ODD)),
        b"abc" * 1000)
    row("HfFileSystem: pipe", lambda: fs.pipe("me/a2/w/new.bin", b"written"))
    row("HfFileSystem: cat", lambda: fs.cat("me/a2/w/new.bin"), b"written")
    row("HfFileSystem: cp_file",
        lambda: fs.cp_file("me/a2/w/new.bin", "me/a2/w/copy.bin"))
    row("HfFileSystem: cp_file: it is there",
        lambda: fs.cat("me/a2/w/copy.bin"), b"written")
    row("HfFileSystem: rm", lambda: fs.rm("me/a2/w", recursive=True))
    row("HfFileSystem: rm: it is gone",
        lambda: [fs.exists("me/a2/w/new.bin"), fs.exists("me/a2/w")],
        [False, False])
    row("HfFileSystem: no such file", lambda: fs.open("me/a2/no").read(),
        raises(FileNotFoundError))


def deleted():
    row("delete_repo", lambda: api.delete_repo("me/a2"))
    row("delete_repo: it is gone", lambda: api.repo_info("me/a2"),
        raises(RepositoryNotFoundError, 404))
    row("delete_repo: twice", lambda: api.delete_repo("me/a2"),
        raises(RepositoryNotFoundError, 404))
    row("delete_repo: missing_ok",
        lambda: api.delete_repo("me/a2", missing_ok=True))
    row("delete_repo: a dataset",
        lambda: api.delete_repo("me/d", repo_type="dataset"))

    for repo, kind in (("me/bare", "model"), ("me/f", "model"),
                       ("me/s", "space")):
        api.delete_repo(repo, repo_type=kind)

    row("delete_repo: none is left",
        lambda: [list(f(author="me")) for f in
                 (api.list_models, api.list_datasets, api.list_spaces)],
        [[], [], []])


def buckets():
    api.create_repo("me/r", exist_ok=True)
    api.upload_file(path_or_fileobj=b"of a repo", path_in_repo="r.txt",
                    repo_id="me/r")
    write("up/a.txt", b"aaa")

    def got(*names, **args):
        pairs = [(n, os.path.join(folder, "down", n)) for n in names]
        api.download_bucket_files("me/b", pairs, **args)

        return [read(p) for _, p in pairs]

    def paths(**args):
        return sorted(e.path for e in api.list_bucket_tree("me/b", **args))

    row("create_bucket", lambda: api.create_bucket("me/b").bucket_id, "me/b")
    row("create_bucket: twice is 409", lambda: api.create_bucket("me/b"),
        raises(HfHubHTTPError, 409))
    row("create_bucket: exist_ok",
        lambda: api.create_bucket("me/b", exist_ok=True).bucket_id, "me/b")
    row("batch_bucket_files: add",
        lambda: api.batch_bucket_files(
            "me/b", add=[(folder + "/up/a.txt", "d/a.txt"), (b"", "empty"),
                         (BYTES, ODD)]))
    row("list_bucket_tree", paths, ["d/a.txt", "empty", ODD])
    row("list_bucket_tree: folders", lambda: paths(recursive=False),
        ["d", "empty", "x"])
    row("list_bucket_tree: recursive",
        lambda: [p for p in paths(recursive=True) if p not in ("d", "x")],
        ["d/a.txt", "empty", ODD])
    row("list_bucket_tree: prefix", lambda: paths(prefix="d/"), ["d/a.txt"])
    row("get_bucket_paths_info",
        lambda: [(f.path, f.size) for f in
                 api.get_bucket_paths_info("me/b", [ODD, "no"])],
        [(ODD, len(BYTES))])
    row("get_bucket_file_metadata",
        lambda: api.get_bucket_file_metadata("me/b", ODD).size, len(BYTES))
    row("download_bucket_files", lambda: got("d/a.txt", "empty", ODD),
        [b"aaa", b"", BYTES])
    row("download_bucket_files: one is not there",
        lambda: got("no", raise_on_missing_files=True),
        raises(EntryNotFoundError))
    row("batch_bucket_files: delete",
        lambda: api.batch_bucket_files("me/b", delete=["empty"]))
    row("copy_files: from a repo",
        lambda: api.copy_files("hf://me/r/r.txt", "hf://buckets/me/b/r.txt"))
    row("copy_files: its bytes", lambda: got("r.txt"), [b"of a repo"])
    row("copy_files: to a repo",
        lambda: api.copy_files("hf://buckets/me/b/d/a.txt",
                               "hf://me/r/a.txt"), raises(ValueError))

    fs = HfFileSystem()

    row("HfFileSystem of a bucket: ls",
        lambda: sorted(x["name"] for x in fs.ls("buckets/me/b")),
        ["buckets/me/b/d", "buckets/me/b/r.txt", "buckets/me/b/x"])
    row("HfFileSystem of a bucket: pipe, cat, a range",
        lambda: (fs.pipe("buckets/me/b/p", b"0123456789"),
                 fs.cat("buckets/me/b/p"),
                 fs.cat_file("buckets/me/b/p", start=3, end=5))[1:],
        (b"0123456789", b"34"))
    row("HfFileSystem of a bucket: rm",
        lambda: (fs.rm("buckets/me/b/p"), fs.exists("buckets/me/b/p"))[1],
        False)

    row("sync_bucket: dry_run",
        lambda: len(api.sync_bucket(folder + "/up", "hf://buckets/me/b/s",
                                    dry_run=True, quiet=True).operations), 1)
    row("update_bucket_settings",
        lambda: (api.update_bucket_settings("me/b", private=True),
                 api.bucket_info("me/b").private)[1], True)
    row("move_bucket", lambda: api.move_bucket("me/b", "me/b2"))
    row("move_bucket: the new name",
        lambda: api.bucket_info("me/b2").id, "me/b2")
    row("list_buckets", lambda: [b.id for b in api.list_buckets("me")],
        ["me/b2"])
    row("no such bucket: info", lambda: api.bucket_info("me/no"),
        raises(BucketNotFoundError, 404))
    row("no such bucket: tree",
        lambda: list(api.list_bucket_tree("me/no")),
        raises(BucketNotFoundError, 404))
    row("a path in a bucket that climbs",
        lambda: api.batch_bucket_files("me/b2", add=[(b"x", "a/../../x")]),
        raises(BadRequestError))
    row("delete_bucket", lambda: api.delete_bucket("me/b2"))
    row("delete_bucket: missing_ok",
        lambda: api.delete_bucket("me/b2", missing_ok=True))

    api.delete_repo("me/r")


if command == "buckets":
    buckets()

else:
    for part in (made, sent, folders, revisions, missing, changed,
                 file_system, deleted):
        part()

end()
