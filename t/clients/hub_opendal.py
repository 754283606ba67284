# Copyright (C) the ngx_http_xet_module authors

"""Operations of Apache OpenDAL, service "hf", with a model and a dataset.
Prints a row for each (hub_row.py).

    hub_opendal.py FOLDER
"""

import os
import urllib.request

import opendal

from hub_row import end, raises, row

DATA = bytes(range(256)) * 8192


def created(kind):
    body = '{"name": "dal", "type": "%s"}' % kind

    urllib.request.urlopen(urllib.request.Request(
        os.environ["HF_ENDPOINT"] + "/api/repos/create", body.encode(),
        {"Content-Type": "application/json",
         "Authorization": "Bearer " + os.environ["HF_TOKEN"]}))


def names(op, path="/", **args):
    return sorted(e.path for e in op.list(path, **args))


def operations(kind):
    created(kind)

    op = opendal.Operator("hf", repo_type=kind, repo_id="me/dal",
                          endpoint=os.environ["HF_ENDPOINT"],
                          token=os.environ["HF_TOKEN"], revision="main")

    row(kind + ": check", op.check)
    row(kind + ": write", lambda: op.write("od.txt", b"hello"))
    row(kind + ": write: in a folder",
        lambda: op.write("d/data.bin", DATA))
    row(kind + ": read", lambda: bytes(op.read("d/data.bin")), DATA)
    row(kind + ": read: a range",
        lambda: bytes(op.read("d/data.bin", offset=1000, size=50)),
        DATA[1000:1050])
    row(kind + ": stat", lambda: op.stat("d/data.bin").content_length,
        len(DATA))
    row(kind + ": exists", lambda: [op.exists(p) for p in
                                    ("od.txt", "no")], [True, False])
    row(kind + ": scan", lambda: [p for p in names(op, recursive=True)
                                  if p[-1] != "/"], ["d/data.bin", "od.txt"])
    row(kind + ": write: again", lambda: op.write("od.txt", b"other"))
    row(kind + ": read: the new bytes", lambda: bytes(op.read("od.txt")),
        b"other")
    row(kind + ": delete", lambda: op.delete("od.txt"))
    row(kind + ": read: no such file", lambda: op.read("od.txt"),
        raises(opendal.exceptions.NotFound))


for each in ("model", "dataset"):
    operations(each)

end()
