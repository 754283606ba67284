# Hooks of schemathesis for t/code/openapi.t: bodies that a schema cannot make.
# XET_BODIES is a folder of files named by hash, and one named "shard".  The
# body for a known hash is its content, and every other shard is the valid one.
# Two more files are lists: of files that have to stay, and of two that may be
# deleted.

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

    # only known names are opened, never a generated one

    if name in os.listdir(BODIES):
        with open(os.path.join(BODIES, name), "rb") as file:
            case.body = file.read()
