"""What TensorBoard's own readers find in a directory."""

import contextlib
import json
import pathlib
import socket
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ALL = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0, "compressedHistograms": 0, "audio": 0}


def accumulate(run):
    """A run, read to its end."""
    accumulator = EventAccumulator(str(run), size_guidance=ALL)
    accumulator.Reload()
    return accumulator


def runs_below(root):
    """Name -> accumulator of every directory below the root that has event files."""
    root = pathlib.Path(root)
    folders = sorted({path.parent for path in root.rglob("*tfevents*")})
    return {str(folder.relative_to(root)): accumulate(folder) for folder in folders}


def scalars_of(root):
    """(run, tag) -> [(step, value)]."""
    return {
        (name, tag): [(point.step, point.value) for point in run.Scalars(tag)]
        for name, run in runs_below(root).items()
        for tag in run.Tags()["scalars"]
    }


def histograms_of(root):
    """(run, tag) -> {step: HistogramValue}."""
    return {
        (name, tag): {point.step: point.histogram_value for point in run.Histograms(tag)}
        for name, run in runs_below(root).items()
        for tag in run.Tags()["histograms"]
    }


def as_float(value):
    return struct.unpack("f", struct.pack("f", value))[0]


@contextlib.contextmanager
def server(root, *, fast):
    """TensorBoard itself on a free port, with the data server in Rust or the loader in Python; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(root), "--host", "127.0.0.1", "--port",
               str(port), "--load_fast", "true" if fast else "false", "--reload_interval", "1"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/data/environment", timeout=5).close()
                break
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        else:
            raise AssertionError("TensorBoard does not answer")
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=30)


def fetch(address, route, **query):
    """The JSON that a route answers with."""
    url = f"{address}/{route}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read().decode())


def wait_for(address, route, tag_count, seconds=30):
    """The tags of a plugin, once so many are there: {run: {tag: ...}}."""
    end = time.monotonic() + seconds
    while True:
        tags = fetch(address, route)
        if sum(map(len, tags.values())) >= tag_count or time.monotonic() > end:
            return tags
        time.sleep(0.2)
