#!/usr/bin/env python3
"""Writes golden/numpy_arrays.jsonl: arrays and how NumPy prints them. Needs NumPy 1.26; `--count N --seed S` for more.

One JSON object a line: dtype, shape, hex (little-endian bytes), line_width, text.
"""

import argparse
import json
import os
import sys

import numpy as np

TYPES = ["float32", "float64", "float16", "complex64", "complex128", "bool", "int8", "int16", "int32", "int64", "uint8",
         "uint16", "uint32", "uint64"]


def shape_of(rng):
    kind = rng.integers(0, 40)
    if kind == 0:
        return ()
    if kind == 1:
        return (int(rng.integers(1001, 1300)),)
    if kind == 2:
        return (int(rng.integers(2, 9)), int(rng.integers(300, 400)))
    if kind == 3:
        return tuple(int(n) for n in rng.integers(5, 9, size=4))
    if kind == 4:
        return (int(rng.integers(0, 3)), 0)
    return tuple(int(n) for n in rng.integers(1, 8, size=rng.integers(1, 4)))


def reals_of(rng, dtype, count):
    kind = rng.integers(0, 10)
    if kind == 0:
        bits = rng.integers(0, 256, size=count * dtype.itemsize, dtype=np.uint8).tobytes()
        return np.frombuffer(bits, dtype=dtype).copy()
    if kind == 1:
        return rng.integers(-20, 20, size=count).astype(dtype)
    if kind == 2:
        return np.full(count, rng.normal()).astype(dtype)
    if kind == 3:
        return (rng.integers(-999, 999, size=count) / 8).astype(dtype)
    scale = 10.0 ** rng.integers(-7, 5)
    values = (rng.normal(size=count) * scale).astype(dtype)
    if kind == 4:
        values = np.round(values.astype(np.float64), int(rng.integers(0, 6))).astype(dtype)
    if kind in (5, 6) and count:
        for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
            if rng.integers(0, 2):
                values[rng.integers(0, count)] = special
    if kind == 7:
        values = np.abs(values)
    return values


def array_of(rng):
    dtype = np.dtype(TYPES[rng.integers(0, len(TYPES))])
    shape = shape_of(rng)
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "c":
        part = np.dtype("float32" if dtype.itemsize == 8 else "float64")
        values = np.empty(count, dtype=dtype)
        values.real, values.imag = reals_of(rng, part, count), reals_of(rng, part, count)
    elif dtype.kind == "f":
        values = reals_of(rng, dtype, count)
    elif dtype.kind == "b":
        values = rng.integers(0, 2, size=count).astype(bool)
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        span = [(0, 9), (max(low, -100), 100), (low, high)][rng.integers(0, 3)]
        values = rng.integers(span[0], span[1], size=count, dtype=dtype, endpoint=True)
    return values.reshape(shape)


def special_arrays():
    """What chance would miss: ends of the ranges, ties, powers of two, the thresholds of the forms."""
    yield np.arange(2**16, dtype=np.uint16).view(np.float16)[::67].copy()
    for dtype in (np.float16, np.float32, np.float64):
        info = np.finfo(dtype)
        for value in (info.max, -info.max, info.tiny, info.smallest_subnormal, 1e-4, 9.999e-5, 0.3, 1e16, 9.999e15, 1e8,
                      99999999.0, 1000.0, 1001.0, 2.0**-24, 0.1, 1 / 3, 123456789.0, -0.0, np.nan, np.inf, -np.inf):
            with np.errstate(over="ignore"):
                yield np.array(value, dtype=dtype)
                yield np.array([value], dtype=dtype)
                yield np.array([value, 1], dtype=dtype)
                yield np.array([value, np.nan], dtype=dtype)
                yield np.array([value, -np.inf], dtype=dtype)
    yield np.array([0.000000005, 0.0000000149, 0.123456785, 0.5], dtype=np.float64)
    yield np.array([1.0, 1000.25, 1000.5], dtype=np.float16)
    yield np.array([9007199254740993.0, 5e-324, 2.0**70], dtype=np.float64)
    yield np.array([True, True])
    yield np.array(True)
    yield np.zeros((2, 0, 3), dtype=np.float32)
    yield np.arange(2000).reshape(2, 1000)
    yield np.arange(1000)
    yield np.arange(1001)
    yield np.full((3, 3), np.nan, dtype=np.float32)
    yield np.array([1 + 2j, complex(np.nan, -np.inf), 0], dtype=np.complex64)
    for value in (0j, 1j, 1 + 0j, -0.0 + 1j, 1.5 - 2.5j, complex(np.nan, 1), complex(1, -np.inf), 1e20 + 1e-20j):
        yield np.array(value, dtype=np.complex128)
        yield np.array(value, dtype=np.complex64)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden",
                                                         "numpy_arrays.jsonl"))
    arguments = parser.parse_args()
    if not np.__version__.startswith("1.26."):
        sys.exit(f"NumPy {np.__version__}: the golden file is made with 1.26, since others choose forms differently")
    rng = np.random.default_rng(arguments.seed)
    arrays = list(special_arrays()) + [array_of(rng) for _ in range(arguments.count)]
    with open(arguments.output, "w", encoding="ascii") as file, np.errstate(all="ignore"):
        for array in arrays:
            width = 75 if rng.integers(0, 3) else int(rng.integers(30, 140))
            with np.printoptions(linewidth=width):
                text = str(array)
            file.write(json.dumps({"dtype": array.dtype.name, "shape": list(array.shape), "hex": array.tobytes().hex(),
                                   "line_width": width, "text": text}) + "\n")


if __name__ == "__main__":
    main()
