"""Runs huggingface_hub in one process, with pauses between the files.

    hub_paced.py REPO SECONDS FOLDER FILE...

The caller must set HF_ENDPOINT and HF_TOKEN.  Uploads the files one by one to
REPO, with a pause of SECONDS after each, then downloads them in the same way
into FOLDER.  Prints the SHA-256 of the downloaded files as a line of JSON.
"""

import hashlib
import json
import os
import sys
import time

from huggingface_hub import HfApi, hf_hub_download

repo, pause, folder, *files = sys.argv[1:]
api = HfApi()
found = []

for file in files:
    api.upload_file(path_or_fileobj=file, path_in_repo=os.path.basename(file),
                    repo_id=repo)
    time.sleep(float(pause))

for file in files:
    path = hf_hub_download(repo, os.path.basename(file), local_dir=folder)

    with open(path, "rb") as stream:
        found.append(hashlib.sha256(stream.read()).hexdigest())

    time.sleep(float(pause))

print(json.dumps(found))
