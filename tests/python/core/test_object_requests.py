"""Objects by their address: parts of files are read, S3 is refused by name."""

import pytest

from tornasole.core.access_layer.s3 import TSAccessS3
from tornasole.core.access_layer.s3handler import DeleteRequest, ListRequest, ReadObjectRequest, S3Handler
from tornasole.core.access_layer.utils import check_dir_exists, delete_s3_prefixes, training_has_ended
from tornasole.exceptions import SMDebugNotImplementedError


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


@pytest.mark.parametrize(
    "call",
    [
        lambda: S3Handler.get_object(ReadObjectRequest("s3://bucket/key")),
        lambda: S3Handler.list_prefixes([ListRequest("bucket", "key")]),
        lambda: S3Handler.delete_prefix("s3://bucket/key"),
        lambda: S3Handler.delete_prefix(delete_request=DeleteRequest("bucket", "key")),
        lambda: delete_s3_prefixes("bucket", "key"),
        lambda: delete_s3_prefixes("bucket", ["key", "other"]),
        lambda: TSAccessS3("bucket", "key"),
    ],
)
def test_s3_is_refused_by_name(call):
    with pytest.raises(SMDebugNotImplementedError, match="s3://bucket/key: S3 cannot be reached"):
        call()


@pytest.mark.parametrize("arguments", [(), ("s3://bucket/key", DeleteRequest("bucket", "key")), ("/tmp/key",)])
def test_what_to_delete_is_said_once_and_on_s3(arguments):
    with pytest.raises(ValueError, match="allowed: "):
        S3Handler.delete_prefix(*arguments)


def test_whether_a_finished_run_lives_in_a_directory(tmp_path):
    assert check_dir_exists(str(tmp_path / "none")) is False
    assert check_dir_exists(str(tmp_path)) is False
    training_has_ended(str(tmp_path))
    assert check_dir_exists(str(tmp_path)) is True
