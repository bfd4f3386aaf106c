"""Compares reduce() with NumPy on random tensors.

usage: numpy_check.py path/to/reduce_probe [--tensors 1000] [--seed 0]

NumPy works in its widest types here (longdouble, Python integers), so that a difference is ours.
"""

import argparse
import math
import subprocess
import sys

import numpy as np

KINDS = ["min", "max", "median", "mean", "std", "variance", "sum", "prod", "l1", "l2"]
CODES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9,
    "bool": 10, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}


def random_base(rng, dtype, count):
    """A flat array; now and then with extremes, NaN or infinities."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return rng.random(count) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, size=count, dtype=dtype, endpoint=True)
        if count and rng.random() < 0.3:
            values[rng.integers(count)] = info.min
        return values
    scale = 10.0 ** rng.uniform(-3, 3)
    values = rng.normal(rng.uniform(-2, 2), scale, size=count)
    if dtype.kind == "c":
        values = values + 1j * rng.normal(0, scale, size=count)
    values = values.astype(dtype)
    for special in (np.nan, np.inf, -np.inf):
        if count and rng.random() < 0.05:
            values[rng.integers(count)] = special
    return values


def random_view(rng, base):
    """A view with random axes, order and strides on a flat array."""
    view = base
    for extent in rng.permutation([2, 3, 5]):
        if view.size and view.shape[0] % extent == 0 and rng.random() < 0.5:
            view = view.reshape((view.shape[0] // extent, extent) + view.shape[1:])
    view = view.transpose(rng.permutation(view.ndim))
    for axis in range(view.ndim):
        step = rng.choice([1, 1, 1, 2, -1])
        view = view[(slice(None),) * axis + (slice(None, None, step),)]
    if rng.random() < 0.1:
        view = np.broadcast_to(view, (3,) + view.shape)
    return view


def wrap(number, is_unsigned):
    number %= 1 << 64
    return number if is_unsigned or number < 1 << 63 else number - (1 << 64)


def expected_int(numbers, is_unsigned, kind):
    n = len(numbers)
    if kind in ("min", "max"):
        return {"min": min, "max": max}[kind](numbers) if n else None
    if kind == "sum":
        return wrap(sum(numbers), is_unsigned)
    if kind == "prod":
        return wrap(math.prod(numbers), is_unsigned)
    if kind == "l1":
        return float(sum(abs(v) for v in numbers))
    if kind == "l2":
        return math.sqrt(sum(v * v for v in numbers))
    if n == 0:
        return math.nan
    if kind == "mean":
        return sum(numbers) / n
    if kind == "median":
        ordered = sorted(numbers)
        return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    variance = (n * sum(v * v for v in numbers) - sum(numbers) ** 2) / (n * n)
    return variance if kind == "variance" else math.sqrt(variance)


def expected_real(x, kind):
    x = x.ravel().astype(np.longdouble)
    if kind in ("min", "max"):
        return getattr(np, kind)(x) if x.size else None
    if kind in ("sum", "prod"):
        return getattr(np, kind)(x)
    if kind == "l1":
        return np.abs(x).sum()
    if kind == "l2":
        return np.sqrt((x * x).sum())
    if x.size == 0:
        return np.longdouble("nan")
    return {"mean": np.mean, "median": np.median, "std": np.std, "variance": np.var}[kind](x)


def expected_complex(x, kind):
    x = x.ravel().astype(np.clongdouble)
    if kind in ("min", "max", "median"):
        return None
    has_nan = bool(np.isnan(x).any())
    if kind in ("sum", "prod", "mean"):
        if has_nan or (kind == "mean" and x.size == 0):
            return complex(math.nan, math.nan)
        if kind == "mean":  # by part: NumPy divides complex numbers, where infinity / n has a NaN part
            return np.clongdouble(complex(np.mean(x.real), np.mean(x.imag)))
        result = getattr(np, kind)(x)
        # An infinite product is left to the arithmetic.
        return result if kind == "sum" or np.isfinite(np.complex64(result)) else "anything"
    if has_nan or x.size == 0:
        return np.longdouble("nan")
    variance = np.var(x.real) + np.var(x.imag)
    return variance if kind == "variance" else np.sqrt(variance)


def expected(x, kind, of_absolute):
    if x.dtype == np.bool_:
        x = x.astype(np.int8)
    if x.dtype.kind in "iu":
        numbers = [int(v) for v in x.ravel()]
        return expected_int([abs(v) for v in numbers] if of_absolute else numbers, x.dtype.kind == "u", kind)
    if x.dtype.kind == "c":
        if of_absolute or kind in ("l1", "l2"):
            wide = x.ravel().astype(np.clongdouble)
            modulus = np.where(np.isnan(wide), np.longdouble("nan"), np.abs(wide))
            return expected_real(modulus, kind)
        return expected_complex(x, kind)
    return expected_real(np.abs(x) if of_absolute else x, kind)


def is_equal(got, want, scale):
    if isinstance(want, str):
        return True
    if isinstance(want, int):
        return int(got) == want
    got_parts = [got.real, got.imag] if np.iscomplexobj(got) else [got]
    want_parts = [want.real, want.imag] if np.iscomplexobj(want) else [want]
    if len(got_parts) != len(want_parts):
        return False
    tolerance = 1e-12 if got.dtype.itemsize // len(got_parts) == 8 else 1e-6
    size = abs(complex(want)) if len(want_parts) == 2 else 0
    for g, w in zip(got_parts, want_parts):
        w = got_parts[0].dtype.type(w)  # beyond the type: infinite
        if np.isnan(w) or np.isnan(g):
            if not (np.isnan(w) and np.isnan(g)):
                return False
        elif np.isinf(w) or np.isinf(g):
            if w != g:
                return False
        elif abs(g - w) > tolerance * max(abs(w), size if math.isfinite(size) else 0) + 1e-15 * scale:
            return False
    return True


def sum_scale(x):
    """How large terms that cancel are: what a rounding of the work type is relative to."""
    if x.size == 0 or x.dtype.kind not in "fc":
        return 0.0
    total = float(np.abs(x.astype(np.clongdouble)).sum())
    return total if math.isfinite(total) else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("probe")
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)

    tensors, request = [], bytearray()
    for index in range(options.tensors):
        name = list(CODES)[index % len(CODES)]
        base = random_base(rng, name, int(rng.choice([0, 1, 2, 7, 30, 90, 600, 2400])))
        view = random_view(rng, base)
        offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        numbers = [CODES[name], view.ndim, *view.shape, *view.strides, offset if view.size else 0, base.nbytes]
        request += " ".join(str(int(n)) for n in numbers).encode() + b"\n" + base.tobytes()
        tensors.append(view)

    answer = subprocess.run([options.probe], input=bytes(request), stdout=subprocess.PIPE, check=True)
    blocks = answer.stdout.decode().split("\n\n")[:-1]
    if len(blocks) != len(tensors):
        sys.exit(f"{len(blocks)} answers to {len(tensors)} tensors")
    failures = compared = 0
    with np.errstate(all="ignore"):
        for index, (x, block) in enumerate(zip(tensors, blocks)):
            lines = dict(line.split(" ", 1) for line in block.split("\n"))
            scale = sum_scale(x)
            for kind in KINDS:
                for of_absolute in (False, True):
                    key = ("abs_" if of_absolute else "") + kind
                    want = expected(x, kind, of_absolute)
                    compared += 1
                    if lines[key] == "skipped" or want is None:
                        good = lines[key] == "skipped" and want is None
                        got = lines[key]
                    else:
                        dtype, digits = lines[key].split()
                        got = np.frombuffer(bytes.fromhex(digits), dtype=dtype)[0]
                        good = is_equal(got, want, scale if kind in ("sum", "mean", "std") else 0)
                    if not good:
                        failures += 1
                        print(f"tensor {index} {x.dtype} {x.shape} {key}: {got!r} instead of {want!r}")
            want_bad = x.dtype.kind in "fc" and not np.isfinite(x).all()
            if lines["non_finite"] != str(int(want_bad)):
                failures += 1
                print(f"tensor {index} {x.dtype} {x.shape}: non_finite {lines['non_finite']}")
    print(f"{len(tensors)} tensors, {compared} values compared, {failures} wrong")
    sys.exit(1 if failures or compared == 0 else 0)


if __name__ == "__main__":
    main()
