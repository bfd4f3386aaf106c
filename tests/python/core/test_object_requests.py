"""Objects by their address: parts of files, and objects in a bucket."""

import pathlib
import sys
import time

import pytest

from tornasole.core.access_layer import TSAccessS3, check_dir_exists, has_training_ended, training_has_ended
from tornasole.core.access_layer.s3handler import DeleteRequest, ListRequest, ReadObjectRequest, S3Handler
from tornasole.core.access_layer.utils import (
    delete_s3_prefixes,
    file_exists,
    is_rule_signalled_gracetime_passed,
)
from tornasole.core.s3_utils import list_s3_objects
from tornasole.exceptions import SMDebugError

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "s3"))
from s3_servers import fake_s3  # noqa: E402


@pytest.fixture
def bucket(monkeypatch):
    """A server, and an environment in which the bucket 'bucket' is found there."""
    with fake_s3("", "--page", "3") as server:
        server.point_here(monkeypatch)
        yield server


def put(key, content=b"x"):
    file = TSAccessS3("bucket", key, binary=isinstance(content, bytes))
    file.write(content)
    file.close()


@pytest.mark.parametrize(
    "what, part, expected",
    [
        ("the whole file", {}, b"0123456789"),
        ("from a place on", {"start": 4}, b"456789"),
        ("so many bytes from a place on", {"start": 4, "length": 3}, b"456"),
        ("no bytes at all", {"start": 4, "length": 0}, b""),
        ("what is past the end is not there", {"start": 8, "length": 9}, b"89"),
    ],
)
def test_parts_of_a_file(tmp_path, what, part, expected):
    (tmp_path / "object").write_bytes(b"0123456789")
    request = ReadObjectRequest(str(tmp_path / "object"), **part)
    assert S3Handler.get_objects([request, request]) == [expected, expected], what


def test_a_file_that_is_not_there_is_none(tmp_path):
    assert S3Handler.get_objects([ReadObjectRequest(str(tmp_path / "none"))]) == [None]


def test_the_requests_are_a_list():
    with pytest.raises(TypeError, match="object_requests: tuple; allowed: a list"):
        S3Handler.get_objects((ReadObjectRequest("a"),))


@pytest.mark.parametrize("arguments", [(), ("s3://bucket/key", DeleteRequest("bucket", "key")), ("/tmp/key",)])
def test_what_to_delete_is_said_once_and_on_s3(arguments):
    with pytest.raises(ValueError, match="allowed: "):
        S3Handler.delete_prefix(*arguments)


def test_whether_a_finished_run_lives_in_a_directory(tmp_path):
    assert check_dir_exists(str(tmp_path / "none")) is False
    assert check_dir_exists(str(tmp_path)) is False
    training_has_ended(str(tmp_path))
    assert check_dir_exists(str(tmp_path)) is True


@pytest.mark.parametrize(
    "what, part, expected",
    [
        ("the whole object", {}, b"a" * 100 + b"b" * 200),
        ("from a place on", {"start": 100}, b"b" * 200),
        ("so many bytes from a place on", {"start": 99, "length": 2}, b"ab"),
        ("the first bytes", {"start": 0, "length": 3}, b"aaa"),
        ("what is past the end is not there", {"start": 299, "length": 9}, b"b"),
    ],
)
def test_parts_of_an_object(bucket, what, part, expected):
    file = TSAccessS3("bucket", "runs//a", binary=False)
    assert file.key_name == "runs/a"
    assert file.write("a" * 100) == [0, 100]
    assert file.write("b" * 200) == [100, 200]
    file.close()
    file.close()
    request = ReadObjectRequest("s3://bucket/runs/a", **part)
    assert S3Handler.get_object(request) == expected, what
    assert S3Handler.get_objects([request] * 20) == [expected] * 20, what


def test_objects_that_are_not_there_are_none_beside_those_that_are(bucket, tmp_path):
    put("a", b"1")
    (tmp_path / "file").write_bytes(b"2")
    paths = ["s3://bucket/a", "s3://bucket/none", str(tmp_path / "file"), str(tmp_path / "none")]
    assert S3Handler.get_objects([ReadObjectRequest(path) for path in paths]) == [b"1", None, b"2", None]


def test_an_object_is_read_back(bucket):
    put("a", b"12345")
    file = TSAccessS3("bucket", "a")
    file.ingest_all()
    assert (file.read(2), file.has_data(), file.read(3), file.has_data()) == (b"12", True, b"345", False)
    with pytest.raises(RuntimeError, match="read: 1 bytes at 5; there are 5"):
        file.read(1)
    with pytest.raises(RuntimeError, match="s3://bucket/none: there is no such object"):
        TSAccessS3("bucket", "none").ingest_all()


def test_keys_are_listed(bucket):
    for number in (0, 3, 7, 11):
        put(f"list/run/{number:02}")
    cases = [
        ("a prefix is text", ListRequest("bucket", "list/run"), ["00", "03", "07", "11"]),
        ("what a delimiter cuts counts once", ListRequest("bucket", "list/", "/"), [""]),
        ("after what is no key", ListRequest("bucket", "list/run", StartAfter="list/run/0"), ["00", "03", "07", "11"]),
        ("after a key", ListRequest("bucket", "list/run", StartAfter="list/run/03"), ["07", "11"]),
        ("a part of a name", ListRequest("bucket", "list/run/0"), ["00", "03", "07"]),
        ("nothing", ListRequest("bucket", "other"), None),
    ]
    found = S3Handler.list_prefixes([request for _, request, _ in cases])
    for (what, _, expected), keys in zip(cases, found):
        assert keys == [f"list/run/{name}" for name in expected or []], what
    with pytest.raises(TypeError, match="list_requests: tuple; allowed: a list"):
        S3Handler.list_prefixes((ListRequest("bucket"),))
    assert list_s3_objects("bucket", "list/run/0") == (["list/run/00", "list/run/03", "list/run/07"], "list/run/07")
    assert list_s3_objects("bucket", "list/run", "list/run/07") == (["list/run/11"], "list/run/11")
    assert list_s3_objects("bucket", "none") == ([], None)


@pytest.mark.parametrize(
    "delete",
    [
        lambda: S3Handler.delete_prefix("s3://bucket/runs/a"),
        lambda: S3Handler.delete_prefix(delete_request=DeleteRequest("bucket", "runs/a")),
        lambda: delete_s3_prefixes("bucket", "runs/a"),
        lambda: delete_s3_prefixes("bucket", ["runs/a", "runs/none"]),
    ],
)
def test_what_lies_under_a_prefix_is_deleted(bucket, delete):
    for key in ("runs/a/1", "runs/a/2", "runs/b/1", "runs/ab", "runs/a/3", "runs/a/4"):
        put(key)
    delete()
    assert list(bucket.keys()) == ["bucket/runs/b/1"]


def test_a_whole_bucket_is_not_deleted(bucket):
    put("a")
    with pytest.raises(ValueError, match="the prefix is empty"):
        S3Handler.delete_prefix("s3://bucket/")
    assert list(bucket.keys()) == ["bucket/a"]


def test_the_end_of_a_run_in_a_bucket(bucket):
    assert not has_training_ended("s3://bucket/run") and not check_dir_exists("s3://bucket/run")
    put("run/index/000000000/000000000000_worker_0.json", b"{}")
    assert not has_training_ended("s3://bucket/run") and not check_dir_exists("s3://bucket/run")
    training_has_ended("s3://bucket/run")
    assert has_training_ended("s3://bucket/run") and check_dir_exists("s3://bucket/run")
    assert bucket.keys()["bucket/run/training_job_end.ts"] == [0, 0]
    assert file_exists("s3://bucket/run/training_job_end.ts") and not file_exists("s3://bucket/other")


def test_a_stop_signal_in_a_bucket(bucket, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE", "stop.signal")
    assert not is_rule_signalled_gracetime_passed("s3://bucket/run")
    put("run/stop.signal", str(int(time.time())))
    assert not is_rule_signalled_gracetime_passed("s3://bucket/run")
    put("run/stop.signal", str(int(time.time()) - 100))
    assert is_rule_signalled_gracetime_passed("s3://bucket/run")


def test_what_cannot_be_reached_is_named(bucket):
    with pytest.raises(SMDebugError, match="'no-such-bucket' does not exist"):
        S3Handler.list_prefix(ListRequest("no-such-bucket"))
    with pytest.raises(ValueError, match="credentials come from the environment"):
        TSAccessS3("bucket", "key", aws_access_key_id="a")
    with pytest.raises(SMDebugError, match="cannot be a bucket"):
        TSAccessS3("B", "key")
