"""Values come back bit for bit, or not at all."""

import random
import shutil

import numpy
import pytest

from trial_files import TrialFiles, open_hook

from tornasole.exceptions import SMDebugError, SMDebugValueError, TensorUnavailableForStep
from tornasole.trials import create_trial

NATIVE = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
EXTENDED = "bfloat16 float8_e5m2 float8_e4m3fn".split()


@pytest.fixture(autouse=True)
def no_delay_at_the_end(monkeypatch):
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def dtype_of(name):
    return numpy.dtype(name if name in NATIVE else getattr(pytest.importorskip("ml_dtypes"), name))


def arrays_of(name):
    dtype = dtype_of(name)
    random_bytes = numpy.random.default_rng(7).integers(0, 256, size=24 * dtype.itemsize, dtype=numpy.uint8)
    if name == "bool":
        random_bytes %= 2
    whole = random_bytes.view(dtype).reshape(4, 6)
    yield "whole", whole
    yield "no dimensions", whole[1, 2].reshape(())
    yield "strided", whole[::2, ::-1]
    yield "transposed", whole.T
    if name in ("float32", "float64"):
        special = [numpy.nan, -numpy.nan, numpy.inf, -numpy.inf, -0.0, 0.0, numpy.finfo(dtype).tiny / 4]
        yield "special", numpy.array(special, dtype)


@pytest.mark.parametrize("name", NATIVE + EXTENDED)
def test_every_type_and_shape_comes_back_bit_for_bit(name, tmp_path):
    arrays = dict(arrays_of(name))
    hook = open_hook(tmp_path / "run")
    hook.begin_step(None)
    for what, array in arrays.items():
        hook.save(what, array)
    hook.end_step()
    hook.close()
    trial = create_trial(str(tmp_path / "run"), check=True)
    assert trial.tensor_names() == sorted(arrays)
    for what, array in arrays.items():
        value = trial.tensor(what).value(0)
        assert (value.dtype.char, value.shape) == (array.dtype.char, array.shape), what
        assert value.tobytes() == array.tobytes(), what
        assert trial.tensor(what).shape(0) == array.shape


def test_a_tensor_of_no_elements_is_a_value(tmp_path):
    TrialFiles(tmp_path).write(0, tensors={"empty": numpy.empty((0, 3), numpy.float64)})
    tensor = create_trial(str(tmp_path)).tensor("empty")
    assert (tensor.value(0).shape, tensor.value(0).dtype) == ((0, 3), numpy.float64)
    assert (tensor.reduction_value(0, "sum"), tensor.reduction_value(0, "prod")) == (0, 1)
    assert numpy.isnan(tensor.reduction_value(0, "mean"))
    with pytest.raises(ValueError):
        tensor.reduction_value(0, "min")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "run"
    hook = open_hook(path)
    for step in range(3):
        hook.begin_step(None)
        for name in ("a", "b", "c"):
            hook.save(name, numpy.arange(10, dtype=numpy.float32) + step)
        hook.end_step()
    hook.close()
    return path


def flip(path, seed):
    content = bytearray(path.read_bytes())
    bit = random.Random(seed).randrange(len(content) * 8)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def all_values(trial, places):
    """Every value that can be had; a lost one must say why."""
    values = {}
    for name, step in places:
        try:
            values[name, step] = trial.tensor(name).value(step).tobytes()
        except TensorUnavailableForStep as error:
            assert error.reason
        except SMDebugError as error:
            assert str(error)
    return values


def test_a_flipped_bit_never_gives_a_wrong_value(written, tmp_path):
    places = [(name, step) for name in "abc" for step in range(3)]
    sound = all_values(create_trial(str(written)), places)
    assert len(sound) == 9
    lost = 0
    files = sorted(path.relative_to(written) for path in written.rglob("*.tfevents"))
    files += sorted(path.relative_to(written) for path in written.glob("index/**/*.json"))
    for seed in range(60):
        run = tmp_path / str(seed)
        shutil.copytree(written, run)
        flip(run / files[seed % len(files)], seed)
        found = all_values(create_trial(str(run), on_damage="skip", timeout=0), places)
        assert found.items() <= sound.items(), (seed, files[seed % len(files)])
        # One value of an event file, or one step of an index file.
        assert len(found) >= 6
        lost += 9 - len(found)
        shutil.rmtree(run)
    assert lost > 30


def test_damage_that_fails_names_the_file(written, tmp_path):
    shutil.copytree(written, tmp_path / "run")
    (index,) = (tmp_path / "run").glob("index/**/000000000001_*.json")
    index.write_bytes(index.read_bytes()[:-20])
    with pytest.raises(SMDebugError, match=index.name):
        create_trial(str(tmp_path / "run"))
    trial = create_trial(str(tmp_path / "run"), on_damage="skip")
    assert trial.steps() == [0, 2]
    assert [path for path, _, _ in trial.damage] == [index.relative_to(tmp_path / "run").as_posix()]


def test_complex_numbers_have_no_order(tmp_path):
    hook = open_hook(tmp_path / "run")
    hook.begin_step(None)
    hook.save("z", numpy.array([3 + 4j, -1 + 0j]))
    hook.end_step()
    hook.close()
    tensor = create_trial(str(tmp_path / "run")).tensor("z")
    for name in ("min", "max"):
        with pytest.raises(SMDebugValueError, match=f"{name} is not defined for tensor .*complex128"):
            tensor.reduction_value(0, name)
    assert (tensor.reduction_value(0, "min", abs=True), tensor.reduction_value(0, "max", abs=True)) == (1, 5)
