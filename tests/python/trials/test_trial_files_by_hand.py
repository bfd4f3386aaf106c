"""Files of a trial without a trial around them: readers, names, places."""

import json
import os

import numpy
import pytest

from trial_files import TrialFiles, open_hook

from tornasole.core.file_names import (
    deserialize_tf_device,
    get_path_to_collections,
    get_worker_name_from_collection_file,
    list_collection_files_in_directory,
    parse_worker_name_from_file,
    serialize_tf_device,
    step_in_range,
)
from tornasole.core.index_reader import LocalIndexReader, ReadIndexFilesCache, S3IndexReader
from tornasole.core.locations import (
    EventFileLocation,
    IndexFileLocationUtils,
    TensorboardFileLocation,
    TensorFileLocation,
    TensorLocation,
    TensorShape,
)
from tornasole.core.reader import FileReader
from tornasole.core.tfevent.util import _get_proto_dtype
from tornasole.core.tfrecord.tensor_reader import TensorReader
from tornasole.core.writer import FileWriter
from tornasole.exceptions import (
    IndexReaderException,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from tornasole.modes import ModeKeys


@pytest.fixture
def files(tmp_path):
    files = TrialFiles(tmp_path)
    tensors = {"foo": [[1, 2], [3, 4]], "bar": numpy.array([5], dtype=numpy.int64)}
    files.write(20, mode="EVAL", mode_step=3, tensors=tensors)
    return files


def event_file(files):
    return TensorFileLocation(step_num=20, worker_name="worker_0").get_file_location(trial_dir=files.path)


def test_a_file_reader_gives_every_tensor(files):
    with FileReader(fname=event_file(files)) as reader:
        found = list(reader.read_tensors())
        assert list(reader.read_tensors(check=True))[0][0] == "foo"
    assert [one[:2] + one[3:] for one in found] == [("foo", 20, ModeKeys.EVAL, 3), ("bar", 20, ModeKeys.EVAL, 3)]
    assert found[0][2].tolist() == [[1, 2], [3, 4]] and found[0][2].dtype == numpy.float32
    assert found[1][2].tolist() == [5] and found[1][2].dtype == numpy.int64


def test_events_by_pattern(files):
    reader = FileReader(event_file(files))
    assert [event["name"] for event in reader.read_events()] == ["foo", "bar"]
    (event,) = reader.read_events(regex_list=["^b", "none"])
    assert (event["name"], event["step"], event["timestamp"]) == ("bar", 20, 1.5)
    assert event["value"].tolist() == [5]


def test_a_file_of_the_hook_is_read(tmp_path):
    hook = open_hook(tmp_path / "run")
    hook.begin_step(None)
    hook.save("text", numpy.arange(3.0))
    hook.end_step()
    hook.close()
    reader = LocalIndexReader(str(tmp_path / "run"))
    (path,) = reader.list_event_files()
    ((name, step, value, mode, mode_step),) = FileReader(path).read_tensors()
    assert (name, step, mode, mode_step) == ("text", 0, ModeKeys.GLOBAL, 0)
    assert value.tolist() == [0, 1, 2]


def test_files_that_cannot_be_read(files, tmp_path):
    with pytest.raises(SMDebugValueError):
        list(FileReader(str(tmp_path / "nothing")).read_tensors())
    with pytest.raises(SMDebugNotImplementedError):
        FileReader("x", wtype="csv")
    with open(event_file(files), "r+b") as file:
        file.truncate(30)
    with pytest.raises(SMDebugError, match="record at 0"):
        list(FileReader(event_file(files)).read_tensors())


def test_an_index_leads_to_its_values(files):
    reader = LocalIndexReader(files.path)
    (index_file,) = reader.list_index_files()
    assert index_file == IndexFileLocationUtils.get_index_key_for_step(files.path, 20, "worker_0")
    index = json.loads(open(index_file).read())
    for entry, wanted in zip(index["tensor_payload"], ([[1, 2], [3, 4]], [5])):
        place = TensorLocation(
            entry["tensorname"], ModeKeys.EVAL, 3, event_file(files), entry["start_idx"], entry["length"], "worker_0"
        )
        assert place.to_dict() == entry
        assert reader.fetch_tensor_value(place).tolist() == wanted
        with open(event_file(files), "rb") as file:
            file.seek(place.start_idx)
            assert next(TensorReader(file.read(place.length)).read_tensors())[0] == entry["tensorname"]
    place.event_file_name += ".gone"
    with pytest.raises(TensorUnavailableForStep):
        reader.fetch_tensor_value(place)
    assert reader.list_event_files(start_after_key=event_file(files)) == [event_file(files)]
    assert reader.list_event_files(start_after_key=event_file(files) + "x") == []


def test_a_bucket_without_keys_to_it_is_told(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    reader = S3IndexReader("s3://bucket/some/run")
    assert (reader.bucket_name, reader.prefix_name) == ("bucket", "some/run")
    for ask in (reader.list_index_files, reader.list_event_files):
        with pytest.raises(SMDebugError, match="no AWS credentials"):
            ask()


@pytest.mark.parametrize(
    "dtype, name",
    [
        (numpy.dtype("float32"), (True, "DT_FLOAT")),
        (numpy.float16, (True, "DT_HALF")),
        (numpy.dtype([("qint8", "i1")]), (True, "DT_QINT8")),
        (numpy.dtype("U3"), (False, "DT_STRING")),
        (numpy.dtype("O"), (False, "DT_STRING")),
        (numpy.object_, (False, "DT_STRING")),
        (numpy.str_, (False, "DT_STRING")),
    ],
)
def test_names_of_types(dtype, name):
    assert _get_proto_dtype(dtype) == name


def test_types_that_cannot_be_saved():
    for bad in (numpy.dtype("datetime64[s]"), numpy.dtype([("a", "i1"), ("b", "i1")]), "no type"):
        with pytest.raises(SMDebugTypeError):
            _get_proto_dtype(bad)


def test_read_index_files_are_remembered_up_to_a_limit():
    cache = ReadIndexFilesCache()
    for name in ("file_1", "file_1", "file_2", "file_3", "file_4"):
        cache.add(name, None)
    assert len(cache.lookup_set) == 4
    assert not cache.has_not_read("file_1") and cache.has_not_read("file_9")
    cache.cache_limit = 2
    cache.add("file_5", "file_1")
    assert len(cache.lookup_set) == 5
    cache.add("file_6", "file_4")
    assert cache.lookup_set == {"file_4", "file_5", "file_6"}


def test_names_of_files():
    assert parse_worker_name_from_file("/x/index/000000001/000000001230_worker_2.json") == "worker_2"
    device = "/job:worker/replica:0/task:1/device:GPU:6"
    assert parse_worker_name_from_file(f"/x/000000000499_{serialize_tf_device(device)}.json") == device
    assert deserialize_tf_device(serialize_tf_device("/device:GPU:0")) == "/device:GPU:0"
    assert serialize_tf_device("algo-1") == parse_worker_name_from_file("/x/000000000499_algo-1.json") == "algo-1"
    assert get_worker_name_from_collection_file("/x/job-worker_1_collections.json") == "job-worker_1"
    for bad in ("/x/000000001230_worker_2.json.tmp", "/x/worker.json"):
        with pytest.raises(IndexReaderException):
            parse_worker_name_from_file(bad)
    with pytest.raises(IndexReaderException):
        get_worker_name_from_collection_file("/x/collections.txt")
    assert [step_in_range((2, 4), step) for step in range(1, 6)] == [False, True, True, False, False]
    assert step_in_range((None, None), 7)


def test_names_of_places(files):
    assert list_collection_files_in_directory(get_path_to_collections(files.path)) == [
        f"{files.path}/collections/000000000/worker_0_collections.json"
    ]
    location = TensorFileLocation(7, "w")
    assert location.get_file_location() == "events/000000000007/000000000007_w.tfevents"
    assert TensorFileLocation.load_filename("a/000000000012_w_1.tfevents").step_num == 12
    assert TensorFileLocation.load_filename("a/000000000012_w_1.tfevents").worker_name == "w_1"
    assert TensorFileLocation.match_regex("a/b.json") is None
    assert TensorFileLocation.get_step_dirs(files.path) == ["000000000020"]
    assert TensorFileLocation.get_step_dir_path(files.path, 20).endswith("/events/000000000020")
    board = TensorboardFileLocation(3, "w", mode=ModeKeys.TRAIN)
    assert board.get_file_location("logs") == "logs/TRAIN/000000000003_w.tfevents"
    assert board.get_file_location() == "tensorboard/TRAIN/000000000003_w.tfevents"
    assert issubclass(TensorboardFileLocation, EventFileLocation)
    index = IndexFileLocationUtils
    assert index.get_index_key_for_step("t", 12345, "w") == "t/index/000000012/000000012345_w.json"
    assert index.next_index_prefix_for_step(999) == "000000001"
    assert index.parse_step_from_index_file_name("t/index/000000012/000000012345_w.json") == 12345
    assert index.get_prefix_from_index_file("s3://b/run/index/000000000/000000000000_w.json") == "s3://b/run"
    assert TensorShape("w", ModeKeys.TRAIN, 0, [2, 3]).to_dict() == {
        "tensorname": "w",
        "originalname": "w",
        "shape": (2, 3),
    }


def test_a_tensor_with_elements_that_numpy_does_not_have_is_written_by_hand(tmp_path):
    torch = pytest.importorskip("torch")
    with FileWriter(tmp_path, step=0) as writer:
        for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
            writer.write_tensor(torch.ones(3).to(getattr(torch, name)), name)
        writer.write_tensor(torch.tensor([1 + 2j]).conj(), "conjugate")
    (path,) = tmp_path.glob("events/*/*.tfevents")
    values = {record[0]: record[2] for record in FileReader(str(path)).read_tensors()}
    assert sorted(values) == ["bfloat16", "conjugate", "float8_e4m3fn", "float8_e5m2"]
    assert values["conjugate"].tolist() == [1 - 2j]


@pytest.mark.parametrize("name", [None, 3, b"x", "\ud800"])
def test_the_name_of_a_tensor_written_by_hand_is_a_text(tmp_path, name):
    with FileWriter(tmp_path, step=0) as writer:
        with pytest.raises(SMDebugTypeError, match="is no name of a tensor"):
            writer.write_tensor([1.0], name)
