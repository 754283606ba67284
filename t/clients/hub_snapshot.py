# Copyright (C) the ngx_http_xet_module authors

"""Uploads a folder to a repo of a Hub, or downloads the repo to the folder, for
t/bench/hub_snapshot.pl.

    hub_snapshot.py upload|download|none FOLDER REPO
"""

import sys

from huggingface_hub import HfApi, snapshot_download

verb, folder, repo = sys.argv[1:]

if verb == "upload":
    HfApi().create_repo(repo, exist_ok=True)
    HfApi().upload_folder(repo_id=repo, folder_path=folder)
elif verb == "download":
    snapshot_download(repo, local_dir=folder)
