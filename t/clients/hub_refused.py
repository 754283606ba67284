# Copyright (C) the ngx_http_xet_module authors

"""Tests which operations of huggingface_hub a Hub with tokens refuses, and the
exception that each raises.  Prints a row for each operation (hub_row.py).

    hub_refused.py made|refused|closed|kept FOLDER

HF_ENDPOINT is the Hub.  The environment has tokens of alice, named by scope:
ADMIN, DELETE, WRITE and READ; OTHER is a token of bob; EXPIRED and FORGED are
invalid.  "made" creates the repos of alice and bob.  "refused" sends requests
that must be refused, with Xet or without.  "closed" tests a Hub that requires
a token for reads.  "kept" runs last, and checks that nothing has changed.
"""

import hashlib
import os
import sys

from huggingface_hub import (CommitOperationAdd, HfApi, HfFileSystem,
                             get_session)
from huggingface_hub.errors import (BucketBatchError, BucketNotFoundError,
                                    HfHubHTTPError, RemoteEntryNotFoundError,
                                    RepositoryNotFoundError,
                                    RevisionNotFoundError)

from hub_row import end, raises, row

command, folder = sys.argv[1:]
base = os.environ["HF_ENDPOINT"]


def api_of(name):
    return HfApi(token=os.environ[name] if name else False)


admin, deleter, writer, reader = map(api_of, ("ADMIN", "DELETE", "WRITE",
                                              "READ"))
bob, nobody = api_of("OTHER"), api_of(None)
bad = {"junk": HfApi(token="hf_junk"), "expired": api_of("EXPIRED"),
       "of another key": api_of("FORGED")}

SECRET = b"the bytes of a secret"
KINDS = ("model", "dataset", "space")

no_repo = raises(RepositoryNotFoundError, 404)
no_bucket = raises(BucketNotFoundError, 404)
forbidden = raises(HfHubHTTPError, 403)
unknown = raises(HfHubHTTPError, 401)
no_such = raises(FileNotFoundError)

# hf_xet reports this while it fetches the token for an upload to a bucket


def not_sent(status):
    return raises(ConnectionError, text="(%s)" % status)



def text(path):
    with open(path, "rb") as f:
        return f.read()


def fresh():
    """Returns a new cache folder."""

    fresh.count += 1
    return os.path.join(folder, "cache-%d" % fresh.count)


fresh.count = 0


def add(data=b"x", path="x"):
    return [CommitOperationAdd(path, data)]


def put(api, repo, path="x", **args):
    return api.upload_file(path_or_fileobj=b"x", path_in_repo=path,
                           repo_id=repo, **args)


def made():
    row("whoami", lambda: [a.whoami()["name"] for a in
                           (deleter, writer, reader, bob)],
        ["alice", "alice", "alice", "bob"])
    row("create_repo: by alice",
        lambda: writer.create_repo("alice/open").repo_id, "alice/open")
    row("create_repo: \"me\" is alice",
        lambda: writer.create_repo("me/alias").repo_id, "alice/alias")

    for kind in KINDS:
        row("create_repo: private, a " + kind,
            lambda: writer.create_repo(
                "alice/secret", private=True, repo_type=kind,
                space_sdk="static" if kind == "space" else None).repo_id,
            "alice/secret")
        row("upload_file: into it, a " + kind,
            lambda: writer.upload_file(
                path_or_fileobj=SECRET, path_in_repo="f.txt",
                repo_id="alice/secret", repo_type=kind).oid,
            lambda oid: len(oid) == 40)

    row("upload_file: into an open one",
        lambda: writer.upload_file(path_or_fileobj=b"open",
                                   path_in_repo="f.txt",
                                   repo_id="alice/open").oid,
        lambda oid: len(oid) == 40)
    row("create_bucket: private",
        lambda: (writer.create_bucket("alice/bk", private=True),
                 writer.batch_bucket_files("alice/bk", add=[
                     (SECRET, "f.txt")]))[1])
    row("create_bucket: open",
        lambda: (writer.create_bucket("alice/bo"),
                 writer.batch_bucket_files("alice/bo", add=[
                     (b"open", "f.txt")]))[1])
    row("create_repo: by bob",
        lambda: bob.create_repo("bob/own").repo_id, "bob/own")
    row("create_bucket: by bob",
        lambda: bob.create_bucket("bob/bk").bucket_id, "bob/bk")


def reads():
    """For all callers but alice, her private repos do not exist."""

    for name, api in (("bob", bob), ("nobody", nobody)):
        for kind in KINDS:
            row("%s: info of a private %s" % (name, kind),
                lambda: api.repo_info("alice/secret", repo_type=kind),
                no_repo)
            row("%s: download from a private %s" % (name, kind),
                lambda: api.hf_hub_download("alice/secret", "f.txt",
                                            repo_type=kind,
                                            cache_dir=fresh()), no_repo)

        def of(call, *args, **kwargs):
            return lambda: list(getattr(api, call)("alice/secret", *args,
                                                   **kwargs))

        for call, args in (("list_repo_files", ()), ("list_repo_tree", ()),
                           ("list_repo_commits", ()),
                           ("get_paths_info", (["f.txt"],))):
            row("%s: %s" % (name, call), of(call, *args), no_repo)

        row(name + ": list_repo_refs",
            lambda: api.list_repo_refs("alice/secret"), no_repo)
        row(name + ": snapshot_download",
            lambda: api.snapshot_download("alice/secret",
                                          cache_dir=fresh()), no_repo)
        row(name + ": auth_check", lambda: api.auth_check("alice/secret"),
            no_repo)
        row(name + ": repo_exists, file_exists",
            lambda: [api.repo_exists("alice/secret"),
                     api.file_exists("alice/secret", "f.txt"),
                     api.repo_exists("alice/open")], [False, False, True])
        row(name + ": list_models",
            lambda: sorted(m.id for m in api.list_models(author="alice")),
            ["alice/alias", "alice/open"])
        row(name + ": list_datasets, list_spaces",
            lambda: [list(api.list_datasets(author="alice")),
                     list(api.list_spaces(author="alice"))], [[], []])

        fs = HfFileSystem(token=api.token)

        row(name + ": HfFileSystem.ls",
            lambda: fs.ls("alice/secret"), no_such)
        row(name + ": HfFileSystem.open",
            lambda: fs.open("alice/secret/f.txt").read(), no_such)

        row(name + ": bucket_info", lambda: api.bucket_info("alice/bk"),
            no_bucket)
        row(name + ": list_bucket_tree",
            lambda: list(api.list_bucket_tree("alice/bk")), no_bucket)
        row(name + ": get_bucket_file_metadata",
            lambda: api.get_bucket_file_metadata("alice/bk", "f.txt"),
            no_repo)
        row(name + ": list_buckets",
            lambda: [b.id for b in api.list_buckets("alice")], ["alice/bo"])

        # public repos are readable

        row(name + ": hf_hub_download of an open one",
            lambda: text(api.hf_hub_download("alice/open", "f.txt",
                                             cache_dir=fresh())), b"open")
        row(name + ": snapshot_download of an open one",
            lambda: os.listdir(api.snapshot_download(
                "alice/open", cache_dir=fresh())), ["f.txt"])
        row(name + ": no such revision",
            lambda: api.repo_info("alice/open", revision="no"),
            raises(RevisionNotFoundError, 404))
        row(name + ": no such file",
            lambda: api.hf_hub_download("alice/open", "no",
                                        cache_dir=fresh()),
            raises(RemoteEntryNotFoundError, 404))

    row("alice: hf_hub_download of the private one",
        lambda: text(reader.hf_hub_download("alice/secret", "f.txt",
                                            cache_dir=fresh())), SECRET)
    row("alice: list_models",
        lambda: sorted(m.id for m in reader.list_models(author="alice")),
        ["alice/alias", "alice/open", "alice/secret"])


def writes(name, api, refusal, xet_refusal):
    """Tries to change public repos of alice, which anyone may read."""

    row(name + ": upload_file", lambda: put(api, "alice/open"), refusal)
    row(name + ": upload_folder",
        lambda: api.upload_folder(repo_id="alice/open",
                                  folder_path=folder + "/up"), refusal)
    row(name + ": create_commit",
        lambda: api.create_commit("alice/open", add(b""),
                                  commit_message="m"), refusal)
    row(name + ": delete_file",
        lambda: api.delete_file("f.txt", "alice/open"), refusal)
    row(name + ": create_branch",
        lambda: api.create_branch("alice/open", branch="b"), refusal)
    row(name + ": create_tag",
        lambda: api.create_tag("alice/open", tag="t"), refusal)
    row(name + ": update_repo_settings",
        lambda: api.update_repo_settings("alice/open", private=True),
        refusal)
    row(name + ": move_repo",
        lambda: api.move_repo("alice/open", "bob/open"), refusal)
    row(name + ": create_repo in the name space",
        lambda: api.create_repo("alice/new"), refusal)
    row(name + ": create_bucket in the name space",
        lambda: api.create_bucket("alice/new"), refusal)
    row(name + ": batch_bucket_files",
        lambda: api.batch_bucket_files("alice/bo", add=[(b"x", "x")]),
        xet_refusal)
    row(name + ": batch_bucket_files, a deletion",
        lambda: api.batch_bucket_files("alice/bo", delete=["f.txt"]),
        refusal)
    row(name + ": delete_repo", lambda: api.delete_repo("alice/open"),
        refusal)
    row(name + ": delete_bucket", lambda: api.delete_bucket("alice/bo"),
        refusal)


def refused():
    os.makedirs(folder + "/up", exist_ok=True)

    with open(folder + "/up/x", "wb") as f:
        f.write(b"x")

    reads()
    writes("bob", bob, forbidden, not_sent("403 Forbidden"))
    writes("nobody", nobody, unknown, not_sent("401 Unauthorized"))
    writes("alice, to read", reader, forbidden, not_sent("403 Forbidden"))

    for name, api in bad.items():
        row(name + ": whoami", lambda: api.whoami(), unknown)
        row(name + ": info of an open repo",
            lambda: api.repo_info("alice/open"), unknown)
        row(name + ": download", lambda: api.hf_hub_download(
            "alice/open", "f.txt", cache_dir=fresh()), unknown)
        row(name + ": upload_file", lambda: put(api, "alice/open"), unknown)

    row("bob: upload_file into a private repo",
        lambda: put(bob, "alice/secret"), no_repo)
    row("bob: delete_repo, a private one",
        lambda: bob.delete_repo("alice/secret"), no_repo)
    row("bob: batch_bucket_files, a private one",
        lambda: bob.batch_bucket_files("alice/bk", add=[(b"x", "x")]),
        not_sent("404 Not Found"))
    row("bob: copy_files from a private bucket",
        lambda: bob.copy_files("hf://buckets/alice/bk/f.txt",
                               "hf://buckets/bob/bk/f.txt"), no_bucket)
    row("bob: copy_files from a private repo",
        lambda: bob.copy_files("hf://alice/secret/f.txt",
                               "hf://buckets/bob/bk/f.txt"), no_repo)
    row("alice, to write: delete_repo",
        lambda: writer.delete_repo("alice/open"), forbidden)
    row("alice, to write: delete_bucket",
        lambda: writer.delete_bucket("alice/bo"), forbidden)
    row("alice: move_repo to somebody else",
        lambda: deleter.move_repo("alice/open", "bob/open"), forbidden)

    claims()
    tokens()


def send(api, path, **args):
    return get_session().request(
        args.pop("method", "POST"), base + path,
        headers={"authorization": "Bearer " + api.token,
                 "content-type": args.pop("kind", "application/json")},
        **args)


def claims():
    """bob knows only the hash of alice's data, and tries to use the data."""

    body = ('{"key":"header","value":{"summary":"x"}}\n{"key":"lfsFile",'
            '"value":{"path":"s","algo":"sha256","oid":"%s","size":%d}}\n'
            % (hashlib.sha256(SECRET).hexdigest(), len(SECRET)))
    xet = reader.get_paths_info("alice/secret", "f.txt")[0].xet_hash

    row("bob: a commit of alice's SHA-256",
        lambda: send(bob, "/api/models/bob/own/commit/main", content=body,
                     kind="application/x-ndjson").status_code, 400)
    row("bob: a batch of alice's hash",
        lambda: bob.batch_bucket_files("bob/bk", copy=[
            ("bucket", "bob/bk", xet, "s")]), raises(BucketBatchError, 422))
    row("bob: a batch that says where it is",
        lambda: bob.batch_bucket_files("bob/bk", copy=[
            ("bucket", "alice/bk", xet, "s")]), raises(BucketBatchError, 422))


def tokens():
    """A token from a repo's token route is also valid for one repo here."""

    def got(path):
        r = send(writer, path, method="GET")

        return HfApi(token=r.json()["accessToken"])

    one = got("/api/models/alice/open/xet-write-token/main")

    row("a token for one repo: another one of the same owner",
        lambda: one.repo_info("alice/secret"), no_repo)
    row("a token for one repo: another one, to write",
        lambda: put(one, "alice/alias"), forbidden)
    row("a token for one repo: it",
        lambda: one.repo_info("alice/open").id, "alice/open")

    read = got("/api/models/alice/secret/xet-read-token/main")

    row("a token to read one repo: it",
        lambda: read.repo_info("alice/secret").id, "alice/secret")
    row("a token to read one repo: to write",
        lambda: put(read, "alice/secret"), forbidden)


def closed():
    """No reads without a token; HF_ENDPOINT has a path."""

    row("closed: nobody: info", lambda: nobody.repo_info("alice/open"),
        unknown)
    row("closed: nobody: download",
        lambda: nobody.hf_hub_download("alice/open", "f.txt",
                                       cache_dir=fresh()), unknown)
    row("closed: nobody: snapshot",
        lambda: nobody.snapshot_download("alice/open", cache_dir=fresh()),
        unknown)
    row("closed: nobody: list_models",
        lambda: list(nobody.list_models(author="alice")), unknown)
    row("closed: nobody: list_bucket_tree",
        lambda: list(nobody.list_bucket_tree("alice/bo")), unknown)
    row("closed: bob: download",
        lambda: text(bob.hf_hub_download("alice/open", "f.txt",
                                         cache_dir=fresh())), b"open")
    row("closed: bob: what is private",
        lambda: bob.repo_info("alice/secret"), no_repo)
    row("closed: alice: what is private",
        lambda: text(reader.hf_hub_download("alice/secret", "f.txt",
                                            cache_dir=fresh())), SECRET)


def kept():
    row("nothing has changed: files",
        lambda: [sorted(deleter.list_repo_files("alice/" + n)) for n in
                 ("open", "secret", "alias")], [["f.txt"], ["f.txt"], []])
    row("nothing has changed: commits",
        lambda: [len(deleter.list_repo_commits("alice/" + n)) for n in
                 ("open", "secret")], [2, 2])
    row("nothing has changed: refs",
        lambda: [r.name for refs in [deleter.list_repo_refs("alice/open")]
                 for r in refs.branches + refs.tags], ["main"])
    row("nothing has changed: what is private",
        lambda: [deleter.repo_info("alice/open").private,
                 deleter.repo_info("alice/secret").private], [False, True])
    row("nothing has changed: buckets",
        lambda: [sorted(e.path for e in deleter.list_bucket_tree(b)) for b in
                 ("alice/bk", "alice/bo")], [["f.txt"], ["f.txt"]])
    row("nothing has changed: nobody else has something new",
        lambda: [list(bob.list_repo_files("bob/own")),
                 list(bob.list_bucket_tree("bob/bk")),
                 [m.id for m in bob.list_models(author="bob")]],
        [[], [], ["bob/own"]])

    # after a repo becomes private, other users can't read it any more; after a
    # repo is deleted, nobody can

    row("update_repo_settings: by alice, to delete",
        lambda: deleter.update_repo_settings("alice/open", private=True),
        forbidden)
    row("update_repo_settings: by alice, to admin",
        lambda: admin.update_repo_settings("alice/open", private=True))
    row("update_repo_settings: gone for bob",
        lambda: bob.hf_hub_download("alice/open", "f.txt",
                                    cache_dir=fresh()), no_repo)
    row("delete_repo: by alice, to delete",
        lambda: deleter.delete_repo("alice/open"))
    row("delete_repo: gone for alice",
        lambda: deleter.repo_info("alice/open"), no_repo)
    row("delete_bucket: by alice, to delete",
        lambda: deleter.delete_bucket("alice/bk"))


{"made": made, "refused": refused, "closed": closed, "kept": kept}[command]()
end()
