"""Reads files of the reference writer with the core.

    python t/oracle/ztensor.py XET_ZT

XET_ZT is the tool that "make tools" builds, build/tools/xet_zt.  Python needs
numpy and the package ztensor, of any version that writes container 1.1 or
later.  Tested with 1.0.2, 1.1.1, 1.2.3 and 2.1.2 (1.2.0 and 2.0.0 have other
methods).  Run it once for each version:

    python -m venv /tmp/zt && /tmp/zt/bin/pip install numpy ztensor==1.2.3
    /tmp/zt/bin/python t/oracle/ztensor.py build/tools/xet_zt

Writes files with all dtypes, empty shapes and shapes with zeros, odd names,
zstd at several levels, digests, sparse objects and attributes, if the version
supports them.  The tool must return every component byte for byte as written;
every digest must verify; the listing must be complete, in pages and in pieces
of any size.  Prints the counts; exits with 1 at the first difference.
"""

import json
import os
import subprocess
import sys
import tempfile

# this file has the same name as the package, so skip its folder in imports

sys.path.pop(0)

import importlib.metadata

import numpy as np

import ztensor

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
    "bool": "bool",
}

NAMES = ["", "a/b", "../../etc/passwd", "%2e%2e", "naïve.键", "sp ace",
         "\"quoted\\\"", "line\nfeed", "x" * 1000]

VERSION = importlib.metadata.version("ztensor")
MAJOR = tuple(int(part) for part in VERSION.split(".")[:2])

counts = {"files": 0, "objects": 0, "components": 0, "bytes": 0}


class Oracle:
    def __init__(self, tool, folder):
        self.tool = tool
        self.folder = folder
        self.rng = np.random.default_rng(1)

    def path(self, name):
        return os.path.join(self.folder, name + ".zt")

    def run(self, *args):
        done = subprocess.run([self.tool, *args], stdout=subprocess.PIPE)
        return done.returncode, done.stdout

    def array(self, dtype, shape):
        n = int(np.prod(shape, dtype=np.int64))

        if dtype == "bool":
            return self.rng.integers(0, 2, n).astype(bool).reshape(shape)

        raw = self.rng.bytes(n * np.dtype(dtype).itemsize)
        return np.frombuffer(raw, dtype=dtype).reshape(shape)

    def listing(self, path):
        """Lists all objects, in pages of 7, and with reads of 13 bytes."""

        rc, out = self.run("-b", "13", "list", path, "-", "100000")
        fail(rc != 0, path, out)
        whole = json.loads(out)

        fail(whole["next"] is not None, path, "more than one page")
        fail(whole["count"] != len(whole["objects"]), path, "count")

        paged, after = [], "-"

        while after is not None:
            rc, out = self.run("list", path, str(after), "7")
            fail(rc != 0, path, out)
            page = json.loads(out)
            paged += page["objects"]
            after = page["next"]

        fail(paged != whole["objects"], path, "pages differ")

        return whole

    def check(self, name, expected, container, digests=None, attributes=None):
        """expected: {object: {role: bytes}}."""

        path = self.path(name)
        whole = self.listing(path)

        fail(whole["container"] != container, path, whole["container"])
        fail(whole["warnings"] != [], path, whole["warnings"])
        fail(sorted(o["name"] for o in whole["objects"])
             != sorted(expected), path, "names")
        fail(attributes is not None and whole["attributes"] != attributes,
             path, whole["attributes"])

        for o in whole["objects"]:
            want = expected[o["name"]]

            fail(o["errors"] != [] or o["status"] != "ok", path, o)
            fail(set(o["components"]) != set(want), path, o)

            for role, data in want.items():
                c = o["components"][role]
                fail(c["decoded_length"] not in (len(data), None), path, o)

                rc, out = self.run("get", path, "#%d" % o["i"], role)
                fail(rc != 0 or out != data, path, (o["name"], role, out[:80]))

                counts["components"] += 1
                counts["bytes"] += len(data)

        rc, out = self.run("-w", "27", "-b", "4099", "verify", path)
        report = json.loads(out)
        fail(rc != 0 or not report["ok"], path, report)

        results = {result for o in report["objects"]
                   for result in o["components"].values()}
        fail(digests is not None and results != digests, path, results)

        # objects are found by name, unless the tool parses the name as "#N"

        for o in whole["objects"]:
            if o["name"][:1] != "#":
                rc, out = self.run("object", path, o["name"])
                fail(rc != 0 or json.loads(out) != o, path, o["name"])

        counts["files"] += 1
        counts["objects"] += len(expected)

    def damage(self, name):
        """A changed data byte is detected if the component has a digest.

        The last bytes are not changed: they may be the table of seekable
        frames, which is not data.
        """

        path = self.path(name)
        whole = self.listing(path)
        c = next(c for o in whole["objects"]
                 for c in o["components"].values() if c["length"] > 16)

        with open(path, "r+b") as f:
            f.seek(c["offset"] + 12)
            byte = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([byte[0] ^ 0x10]))

        rc, out = self.run("verify", path)
        fail(rc != 1 or json.loads(out)["ok"], path, "damage not found")


def fail(failed, path, what):
    if failed:
        sys.exit("%s, ztensor %s: %s" % (path, VERSION, what))


def raw(array):
    return np.ascontiguousarray(array).tobytes()


def csr(oracle, index):
    return (oracle.array("float32", (5,)),
            np.array([0, 3, 1, 2, 3], dtype=index),
            np.array([0, 2, 2, 5], dtype=index), (3, 4))


def write_1_1(o):
    """Through the C interface: no digests, no attributes."""

    for compress in (False, True, 1, 19, 22):
        name = "dense-%s" % compress
        expected = {}

        with ztensor.Writer(o.path(name)) as w:
            for zt, dtype in DTYPES.items():
                for shape in ((3, 5), (0,), (2, 0, 4), (), (1000,)):
                    a = o.array(dtype, shape)
                    w.add_tensor("%s%s" % (zt, shape), a, compress=compress)
                    expected["%s%s" % (zt, shape)] = {"data": raw(a)}

        o.check(name, expected, "1.1", {"absent"})

    expected = {}

    with ztensor.Writer(o.path("names")) as w:
        for n in NAMES:
            a = o.array("float32", (4,))
            w.add_tensor(n, a)
            expected[n] = {"data": raw(a)}

        values, indices, indptr, shape = csr(o, np.uint64)
        w.add_sparse_csr("csr", values, indices, indptr, shape)
        expected["csr"] = {"values": raw(values), "indices": raw(indices),
                           "indptr": raw(indptr)}

        values = o.array("float64", (2,))
        coords = np.array([[0, 2], [1, 3]], dtype=np.uint64)
        w.add_sparse_coo("coo", values, coords, (3, 4))
        expected["coo"] = {"values": raw(values), "coords": raw(coords)}

    o.check("names", expected, "1.1", {"absent"})


def write_1_2(o):
    for compress in (False, True, 19, 22):
        for checksum in ("none", "crc32c", "sha256"):
            name = "dense-%s-%s" % (compress, checksum)
            expected = {}

            with ztensor.Writer(o.path(name)) as w:
                for zt, dtype in DTYPES.items():
                    for shape in ((3, 5), (0,), (), (1000,)):
                        a = o.array(dtype, shape)
                        w.write_numpy("%s%s" % (zt, shape), a,
                                      compress=compress, checksum=checksum)
                        expected["%s%s" % (zt, shape)] = {"data": raw(a)}

            o.check(name, expected, "1.1",
                    {"absent" if checksum == "none" else "verified"})

            if checksum != "none":
                o.damage(name)

    expected = {}
    path = o.path("objects")

    with ztensor.Writer(path) as w:
        for n in NAMES:
            a = o.array("float32", (4,))
            w.write_numpy(n, a, checksum="sha256")
            expected[n] = {"data": raw(a)}

        values, indices, indptr, shape = csr(o, np.uint64)
        w.write("csr", ztensor.Tensor(
            {"values": values, "indices": indices, "indptr": indptr},
            shape=shape, format="sparse_csr"), checksum="crc32c")
        expected["csr"] = {"values": raw(values), "indices": raw(indices),
                           "indptr": raw(indptr)}

        parts = {"packed_weight": o.array("int32", (16,)),
                 "scales": o.array("float16", (4,)),
                 "zeros": o.array("float16", (4,))}
        w.write("quantized", ztensor.Tensor(
            parts, shape=[8, 16], dtype="i32", format="quantized_group",
            attributes={"bits": 4, "packing": "8_per_i32"}),
            checksum="sha256")
        expected["quantized"] = {role: raw(a) for role, a in parts.items()}

    # appended data overwrites the old manifest

    with ztensor.Writer.append(path) as w:
        a = o.array("int64", (7,))
        w.write_numpy("later", a, checksum="sha256")
        expected["later"] = {"data": raw(a)}

    o.check("objects", expected, "1.1", {"verified"})


def write_2(o):
    names = [n for n in NAMES if n]
    storage = {zt: dtype for zt, dtype in DTYPES.items() if zt != "bool"}

    for canonical in (False, True):
        for encoding in (None, "zt.zstd-seekable/1"):
            if canonical and encoding:
                continue

            name = "dense-%s-%s" % (canonical, encoding is not None)
            expected = {}

            # the canonical form requires sorted names

            tensors = sorted(("%s%s" % (zt, shape), zt, shape)
                             for zt in storage
                             for shape in ((3, 5), (0,), (), (1000,)))

            with ztensor.Writer(o.path(name), canonical=canonical) as w:
                for n, zt, shape in tensors:
                    a = o.array(storage[zt], shape)
                    w.add(n, raw(a), list(shape), zt, encoding=encoding)
                    expected[n] = {"data": raw(a)}

            o.check(name, expected, "2", {"verified"})
            o.damage(name)

    expected = {}
    attributes = {"license": "MIT", "n": -5, "f": 1.5, "ok": True,
                  "none": None, "list": [1, [2, "x"], {"k": 0.1}]}

    with ztensor.Writer(o.path("objects"), canonical=False) as w:
        w.set_attributes(attributes)

        for n in names:
            a = o.array("float32", (4,))
            w.add(n, raw(a), [4], "f32")
            expected[n] = {"data": raw(a)}

        for logical, dtype, n, size in (
            ("bool", "u8", 5, 5), ("f8_e4m3fn", "u8", 5, 5),
            ("complex64", "f32", 5, 40), ("complex128", "f64", 3, 48),
            ("f4_e2m1", "u8", 6, 3),
        ):
            data = bytes(size)
            w.add("logical." + logical, data, [n], dtype, logical=logical)
            expected["logical." + logical] = {"data": data}

        for index, zt in ((np.uint32, "u32"), (np.uint64, "u64")):
            values, indices, indptr, shape = csr(o, index)
            parts = {"values": (values, "f32"), "indices": (indices, zt),
                     "indptr": (indptr, zt)}
            w.add_object("csr." + zt, list(shape), {
                role: {"data": raw(a), "dtype": d}
                for role, (a, d) in parts.items()
            }, layout="zt.sparse_csr/1", attributes={"note": "csr"})
            expected["csr." + zt] = {role: raw(a)
                                     for role, (a, _) in parts.items()}

    o.check("objects", expected, "2", {"verified"}, attributes)

    # several frames of one megabyte each

    big = np.arange(700000, dtype=np.uint32)

    with ztensor.Writer(o.path("big"), canonical=False) as w:
        w.add("big", raw(big), [700000], "u32", encoding="zt.zstd-seekable/1")

    o.check("big", {"big": {"data": raw(big)}}, "2", {"verified"})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)

    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(os.path.abspath(sys.argv[1]), folder)

        if MAJOR >= (2, 0):
            write_2(oracle)
        elif MAJOR >= (1, 2):
            write_1_2(oracle)
        elif VERSION != "1.0.0" and VERSION != "1.0.1":
            write_1_1(oracle)
        else:
            sys.exit("ztensor %s does not write container 1.1" % VERSION)

    print("ztensor %s:" % VERSION,
          ", ".join("%d %s" % (n, what) for what, n in counts.items()))


if __name__ == "__main__":
    main()
