"""Compares derived statistics and histograms with NumPy on random tensors.

usage: numpy_derived_check.py path/to/derived_probe [--tensors 700] [--seed 0]

Tensors come in pairs of the same type and shape, so that every second one has a tensor before it.
"""

import argparse
import math
import pathlib
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from numpy_check import CODES, random_base, random_view  # noqa: E402

EDGES_FILE = pathlib.Path(__file__).resolve().parent.parent / "golden/smdebug/tensorboard_numpy/default_bucket_edges.txt"


def unit_samples(x):
    """[samples, units] of doubles."""
    if x.ndim == 0:
        return x.reshape(1, 1).astype(np.longdouble)
    axis = 1 if x.ndim >= 3 else x.ndim - 1
    units = x.shape[axis]
    return np.moveaxis(x, axis, -1).reshape(-1 if units else 0, units).astype(np.longdouble)


def expected(x, before, edges):
    """Statistic -> (array, relative tolerance); None where it is not defined."""
    want = {}
    is_complex = x.dtype.kind == "c"
    flat = x.ravel()
    bad = np.flatnonzero(~np.isfinite(flat)) if x.dtype.kind in "fc" else np.array([], int)
    is_nan = np.isnan(flat) if x.dtype.kind in "fc" else np.zeros(flat.size, bool)
    is_inf = (np.isinf(flat) if x.dtype.kind in "fc" else np.zeros(flat.size, bool)) & ~is_nan
    negative = is_inf & (flat < 0) if not is_complex else np.zeros(flat.size, bool)
    want["counts"] = (np.array([flat.size, np.sum(flat == 0), is_nan.sum(), np.sum(is_inf & ~negative), negative.sum(),
                                bad[0] if bad.size else -1], np.int64), 0)
    if is_complex:
        return want
    samples = unit_samples(x)
    n = samples.shape[0]
    with np.errstate(all="ignore"):
        want["unit_activity"] = (((samples > 0).sum(0) / np.float64(n)).astype(np.float32), 0)
        outside = ~((samples >= -1) & (samples <= 1.5))
        want["unit_range"] = ((outside.sum(0) / np.float64(n)).astype(np.float32), 0)
        means = [samples.sum(0) / n, (samples ** 2).sum(0) / n, np.abs(samples).sum(0) / n]
        want["across_samples"] = (np.array(means).reshape(3, -1).astype(np.float32), 1e-5)
        a, b = flat.astype(np.longdouble), before.ravel().astype(np.longdouble)
        norm = [np.sqrt((v * v).sum()) for v in (a - b, b, a)]
        want["update"] = (np.array(norm[:2], np.float64), 1e-12)
        cosine = (a * b).sum() / norm[2] / norm[1] if a.size else math.nan
        want["cosine_previous"] = (np.array([cosine, norm[1]], np.float64), 1e-9)
        doubles = flat.astype(np.float64)
        if flat.size == 0:
            want["quantiles"] = (np.full(5, np.nan, np.float32), 0)
        elif not is_inf.any():
            want["quantiles"] = (np.quantile(doubles, [0.01, 0.05, 0.5, 0.95, 0.99]).astype(np.float32), 1e-6)
        is_class = np.all(np.isfinite(doubles)) and np.all((doubles >= 0) & (doubles < 65536)) and np.all(
            doubles == np.floor(doubles))
        want["classes"] = (np.bincount(doubles.astype(np.int64)), 0) if is_class else None
        finite = doubles[np.isfinite(doubles)]
        # Around one large number NumPy finds no range.
        if finite.size == 0 or finite.min() != finite.max() or abs(finite[0]) < 1e15:
            counts, places = np.histogram(finite, bins=10)
            want["edges"], want["counts_of_bins"] = (places, 0), (counts.astype(np.int64), 0)
        inside = finite[(finite >= edges[0]) & (finite <= edges[-1])]
        filled, _ = np.histogram(inside, bins=edges)
        used = np.flatnonzero(filled)
        first, last = (used[0], used[-1]) if used.size else (0, -1)
        want["limits"] = (edges[first:last + 2] if used.size else np.array([]), 0)
        want["buckets"] = (np.concatenate([[0], filled[first:last + 1]]).astype(float) if used.size else np.array([]), 0)
        half = doubles.astype(np.float16)
        want["cast_loss"] = (np.array([np.sum((doubles != 0) & (half == 0)),
                                       np.sum(np.isfinite(doubles) & np.isinf(half))], np.int64), 0)
    return want


def is_equal(got, want, tolerance):
    if got.shape != want.shape:
        return False
    both_nan = np.isnan(got.astype(float)) & np.isnan(want.astype(float))
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(float) - want.astype(float)) <= tolerance * np.maximum(1e-3, np.abs(want.astype(float)))
    return bool(np.all(both_nan | (got == want) | near))


def parse(line):
    name, rest = line.split(" ", 1)
    if rest == "error":
        return name, None
    words = rest.split(" ")
    rank = int(words[1])
    shape = [int(word) for word in words[2:2 + rank]]
    return name, np.frombuffer(bytes.fromhex(words[2 + rank][1:]), dtype=words[0]).reshape(shape)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("probe")
    parser.add_argument("--tensors", type=int, default=700)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    edges = np.array([float.fromhex(line) for line in EDGES_FILE.read_text().split()])

    tensors, request = [], bytearray()
    for index in range(options.tensors // 2):
        name = list(CODES)[index % len(CODES)]
        size = int(rng.choice([0, 1, 2, 7, 30, 90, 600, 2400]))
        view = random_view(rng, random_base(rng, name, size))
        if index % 11 == 3 and np.dtype(name).kind in "iu":
            view = np.ascontiguousarray(np.abs(view) % 50)  # labels
        other = random_base(rng, name, view.size).reshape(view.shape)
        for x in (other, view):
            base = x if x.base is None else x.base
            while base.base is not None:
                base = base.base
            offset = x.__array_interface__["data"][0] - base.__array_interface__["data"][0]
            numbers = [CODES[name], x.ndim, *x.shape, *x.strides, offset if x.size else 0, base.nbytes]
            request += " ".join(str(int(number)) for number in numbers).encode() + b"\n" + base.tobytes()
            tensors.append(x)

    answer = subprocess.run([options.probe], input=bytes(request), stdout=subprocess.PIPE, check=True)
    blocks = answer.stdout.decode().split("\n\n")[:-1]
    if len(blocks) != len(tensors):
        sys.exit(f"{len(blocks)} answers to {len(tensors)} tensors")
    failures = compared = 0
    for index, (x, block) in enumerate(zip(tensors, blocks)):
        got = dict(parse(line) for line in block.split("\n"))
        previous = tensors[index - 1] if index > 0 else x
        is_pair = previous.dtype == x.dtype and previous.shape == x.shape
        with np.errstate(all="ignore"):
            want = expected(x, previous if is_pair else x, edges)
        for name, value in want.items():
            compared += 1
            if value is None:
                good = got[name] is None
            else:
                good = got[name] is not None and is_equal(got[name], *value)
            if not good:
                failures += 1
                print(f"tensor {index} {x.dtype} {x.shape} {name}: {got[name]!r} instead of {value!r}")
    print(f"{len(tensors)} tensors, {compared} values compared, {failures} wrong")
    sys.exit(1 if failures or compared == 0 else 0)


if __name__ == "__main__":
    main()
