"""What tests of runs in a bucket share, for the conftest.py of a folder to import."""

import pytest
from s3_servers import fake_s3


@pytest.fixture
def server(monkeypatch):
    """A server with a bucket called bucket, which the environment of this process points to."""
    with fake_s3() as started:
        started.point_here(monkeypatch)
        yield started
