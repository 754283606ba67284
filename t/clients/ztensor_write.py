#!/usr/bin/env python3

# Copyright (C) the ngx_http_xet_module authors

# Writes a file with the release of the ztensor package in PYTHONPATH, and reads
# it back with the same release.  Prints the tensors as a line of JSON:
# {"tensors": {name: {"shape": [...], "sha256": "..."}}}.
#
#     ztensor_write.py FILE

import hashlib
import json
import sys

import numpy as np
import ztensor

path = sys.argv[1]
rng = np.random.default_rng(11)

tensors = {
    'layers.0.weight': rng.standard_normal((64, 48)).astype(np.float32),
    'layers.0.bias': rng.standard_normal(48).astype(np.float64),
    'layers.1.weight': rng.integers(-100, 100, (7, 5, 3)).astype(np.int16),
    'embedding': rng.integers(0, 255, 300000).astype(np.uint8),
    'half': rng.standard_normal((9, 2)).astype(np.float16),
    'steps': np.array([2 ** 63 - 1, -1], dtype=np.int64),
    'zeros': np.zeros((100, 100), dtype=np.float32),
    'name with spaces/and é%&+': np.arange(12, dtype=np.uint32).reshape(3, 4),
}

compressed = ('zeros', 'layers.1.weight')


def write_1_1():
    with ztensor.Writer(path) as w:
        for name, value in tensors.items():
            w.add_tensor(name, value, compress=name in compressed)


def write_1_2():
    w = ztensor.Writer(path)

    for name, value in tensors.items():
        w.write_numpy(name, value, compress=3 if name in compressed else 0,
                      checksum='crc32c')

    w.finish()


def write_2():
    w = ztensor.Writer(path, canonical=False)

    for name, value in sorted(tensors.items()):
        dtype = {'float32': 'f32', 'float64': 'f64', 'float16': 'f16',
                 'int16': 'i16', 'int64': 'i64', 'uint8': 'u8',
                 'uint32': 'u32'}[value.dtype.name]

        w.add(name, value.tobytes(), list(value.shape), dtype,
              encoding='zt.zstd-seekable/1' if name in compressed else None)

    w.finish()


def read():
    if hasattr(ztensor.Writer, 'add_tensor'):
        with ztensor.Reader(path) as r:
            return {name: r.read_tensor(name).tobytes() for name in tensors}

    if hasattr(ztensor, 'Reader'):
        with ztensor.Reader(path) as r:
            return {name: r.read_numpy(name).tobytes() for name in tensors}

    f = ztensor.open(path)

    return {name: f[name].tobytes() for name in tensors}


if hasattr(ztensor.Writer, 'add_tensor'):
    write_1_1()
elif hasattr(ztensor.Writer, 'write_numpy'):
    write_1_2()
else:
    write_2()

json.dump({'tensors': {
    name: {'shape': list(tensors[name].shape),
           'sha256': hashlib.sha256(data).hexdigest()}
    for name, data in read().items()
}}, sys.stdout)
print()
