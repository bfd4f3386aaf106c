"""tornasole.stats: statistics of any array, without a copy, whatever it comes from."""

import array
import subprocess
import sys

import numpy as np
import pytest

import tornasole
from tornasole.exceptions import SMDebugTypeError, SMDebugValueError

BASIC = ["min", "max", "mean", "std", "sum", "l1", "l2", "zeros"]


def expected(values):
    wide = values.astype(np.float64)
    return {
        "min": wide.min(),
        "max": wide.max(),
        "mean": wide.mean(),
        "std": wide.std(),
        "sum": wide.sum(),
        "l1": np.abs(wide).sum(),
        "l2": np.sqrt((wide * wide).sum()),
        "zeros": int((wide == 0).sum()),
    }


NUMPY_TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_every_numpy_type(dtype):
    values = (np.arange(60) % 7).reshape(3, 4, 5).astype(dtype)
    got = tornasole.stats(values, BASIC)
    for name, number in expected(values).items():
        assert got[name] == pytest.approx(number, rel=1e-6), name


LAYOUTS = {
    "row-major": lambda a: a,
    "transposed": lambda a: a.T,
    "every second row": lambda a: a[::2],
    "reversed": lambda a: a[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[:1], (5, a.shape[1])),
    "no dimensions": lambda a: a[0, 0],
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout):
    values = np.asarray(LAYOUTS[layout](np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)))
    got = tornasole.stats(values, ["mean", "l2", "count"])
    assert got["count"] == values.size
    assert got["mean"] == pytest.approx(values.astype(np.float64).mean(), rel=1e-6)
    assert got["l2"] == pytest.approx(np.linalg.norm(values.astype(np.float64).ravel()), rel=1e-6)


def test_all_of_them_by_default_and_counts_are_ints():
    got = tornasole.stats(np.array([0.0, np.nan, np.inf, -np.inf, 1.0]))
    assert (got["count"], got["zeros"], got["nan"], got["pos_inf"], got["neg_inf"], got["inf"]) == (5, 1, 1, 1, 1, 2)
    assert got["first_non_finite"] == 1 and isinstance(got["nan"], int)
    assert np.isnan(got["mean"]) and {"median", "prod", "abs_max"} <= set(got)


def test_what_is_not_defined_is_left_out():
    got = tornasole.stats(np.zeros((0, 3), np.float32))
    assert got["count"] == 0 and got["sum"] == 0 and "min" not in got
    complex_got = tornasole.stats(np.array([3 + 4j]), ["l2", "max", "abs_max"])
    assert complex_got == {"l2": 5.0, "abs_max": 5.0}


def test_types_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
        values = np.array([[1, 2], [3, -4]], getattr(ml_dtypes, name))
        assert tornasole.stats(values.T, ["max", "sum", "l1"]) == {"max": 3.0, "sum": 2.0, "l1": 10.0}


def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    values = torch.arange(12, dtype=torch.float32).reshape(3, 4).requires_grad_()
    assert tornasole.stats(values, ["sum"]) == {"sum": 66.0}
    assert tornasole.stats(values.T[1:], ["sum", "count"]) == {"count": 9, "sum": 54.0}
    assert tornasole.stats(values.to(torch.bfloat16), ["max"]) == {"max": 11.0}
    assert tornasole.stats(torch.tensor(7), ["max"]) == {"max": 7.0}
    assert tornasole.stats(torch.tensor([True, False]), ["mean"]) == {"mean": 0.5}


class OnlyDlpack:
    """An array of a library nobody knows."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_anything_with_dlpack():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert tornasole.stats(OnlyDlpack(values), ["sum", "count"]) == {"count": 6, "sum": 15.0}


def test_bytes_and_memoryviews():
    assert tornasole.stats(b"\x01\x02\x03", ["sum"]) == {"sum": 6.0}
    assert tornasole.stats(memoryview(bytearray(4)), ["zeros"]) == {"zeros": 4}


REFUSED = {"a number": 3, "a list": [1, 2], "texts": np.array(["a"]), "objects": np.array([{}], dtype=object)}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_array_is_refused_by_its_type(what):
    with pytest.raises(SMDebugTypeError, match=type(REFUSED[what]).__name__):
        tornasole.stats(REFUSED[what])


def test_big_endian_is_refused_and_not_misread():
    with pytest.raises(TypeError):
        tornasole.stats(np.arange(3, dtype=">f4"))


def test_an_unknown_statistic_is_named():
    with pytest.raises(SMDebugValueError, match="'average'.*mean"):
        tornasole.stats(np.ones(2), ["average"])


def test_import_needs_no_numpy_and_starts_nothing():
    program = (
        "import sys, threading, os; before = len(os.listdir('/proc/self/fd')); import tornasole; "
        "assert 'numpy' not in sys.modules and threading.active_count() == 1; "
        "assert len(os.listdir('/proc/self/task')) == 1; assert len(os.listdir('/proc/self/fd')) == before"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.parametrize("names", ["mean", 3, [3], [None], ["\ud800"]])
def test_names_are_a_list_of_texts(names):
    with pytest.raises(SMDebugTypeError, match="names: "):
        tornasole.stats(np.ones(3), names)


def test_nothing_is_no_array():
    with pytest.raises(SMDebugTypeError, match="NoneType"):
        tornasole.stats(None)


@pytest.mark.parametrize("what", ["complex numbers of two halves", "nested", "on no device", "sparse", "quantized"])
def test_tensors_that_are_no_dense_arrays_are_refused(what):
    torch = pytest.importorskip("torch")
    made = {
        "complex numbers of two halves": lambda: torch.ones(3, dtype=torch.complex32),
        "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "on no device": lambda: torch.ones(3, device="meta"),
        "sparse": lambda: torch.eye(3).to_sparse(),
        "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    }
    with pytest.raises(SMDebugTypeError, match="no dense array"):
        tornasole.stats(made[what](), ["l2"])


def test_what_is_refused_is_let_go_of():
    letters = array.array("u", "ab")
    with pytest.raises(SMDebugTypeError):
        tornasole.stats(letters)
    letters.append("c")  # impossible while somebody holds its buffer
