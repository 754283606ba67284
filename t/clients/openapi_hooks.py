# Schemathesis hooks for t/code/openapi.t: request bodies that can't be
# generated from a schema.  XET_BODIES is a folder with a file for each known
# hash: its content becomes the body of requests for this hash.  The file
# "shard" becomes the body of every other shard upload.  Two more files contain
# lists: files that must not be deleted, and two files that may be deleted.

import os

import schemathesis

BODIES = os.environ["XET_BODIES"]


def words(name):
    with open(os.path.join(BODIES, name), encoding="ascii") as file:
        return file.read().split()


@schemathesis.hook
def before_call(context, case, kwargs):
    parameters = case.path_parameters or {}

    if case.method.upper() == "DELETE":
        if str(parameters.get("file", "")).lower() in words("stay"):
            parameters["file"] = words("goes")["/v1/" in case.operation.path]

        return

    if case.method.upper() not in ("POST", "PUT"):
        return

    name = str(parameters.get("xorb", ""))

    if "/shard" in case.operation.path:
        name = "shard"

        if isinstance(case.body, (bytes, str)) and len(case.body) % 2:
            return

    # opens only names in the folder, never generated names

    if name in os.listdir(BODIES):
        with open(os.path.join(BODIES, name), "rb") as file:
            case.body = file.read()
