# Reads a parquet file over HTTP: the whole file, and one column by ranges.
#
#     pandas_read.py make FILE    writes a parquet file
#     pandas_read.py read URL     prints its contents as JSON

import json
import sys

import fsspec
import numpy
import pandas


def make(path):
    n = 400000
    rng = numpy.random.default_rng(1)

    pandas.DataFrame({
        "i": numpy.arange(n),
        "noise": rng.random(n),
        "more": rng.random(n),
        "text": ["row %d" % (i % 1000) for i in range(n)],
    }).to_parquet(path, row_group_size=50000)


def read(url):
    whole = pandas.read_parquet(url)

    # with the default block size, it would read 5 MiB ahead

    http = fsspec.filesystem("http", block_size=256 * 1024)
    some = pandas.read_parquet(url, columns=["i"], filesystem=http)

    return {
        "rows": len(whole),
        "sum": int(whole["i"].sum()),
        "noise": float(whole["noise"].sum()),
        "last": whole["text"].iloc[-1],
        "columns": list(some.columns),
        "some": int(some["i"].sum()),
    }


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    print(json.dumps(read(sys.argv[2])))
