# Copyright (C) the ngx_http_xet_module authors

"""Uploads the repo me/field for clients that only download, such as
hub_rust/read.rs and hub_go.go, and gives it the second name me/before.

    hub_prepare.py FOLDER
"""

from huggingface_hub import CommitOperationAdd, HfApi

from hub_row import end, row

api = HfApi()


def prepare():
    api.create_repo("me/before")
    api.create_commit("me/before", [
        CommitOperationAdd("config.json", b'{"field": 1}'),
        CommitOperationAdd("empty", b""),
        CommitOperationAdd("d/data.bin", bytes(range(256)) * 8192),
        CommitOperationAdd("tiny-Q4_K_M.gguf", b"GGUF" + b"x" * 1000)],
        commit_message="files")
    api.move_repo("me/before", "me/field")
    api.create_branch("me/field", branch="dev/1")

    return sorted(api.list_repo_files("me/field"))


row("prepare", prepare,
    ["config.json", "d/data.bin", "empty", "tiny-Q4_K_M.gguf"])
end()
