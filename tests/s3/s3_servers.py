"""Servers that speak S3, for one test at a time: the fake one of fake_s3.py, and versitygw, whose bucket is a
directory; each alone or behind TLS. All as contexts that end what they started."""

import contextlib
import json
import os
import pathlib
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ACCESS_KEY = "AKIDTORNASOLETEST"
SECRET_KEY = "tornasole/test+secret"
VERSITYGW = ROOT / ".venvs" / "s3" / "bin" / "versitygw"
TLS_FRONT = VERSITYGW.with_name("tls_front")


class Server:
    """Where a server is, and how to ask it."""

    def __init__(self, endpoint, data=None):
        self.endpoint = endpoint
        self.data = data  # of versitygw: the directory that holds the bucket

    def environment(self, **more):
        """The variables of a process that uses this server and nothing else of the machine's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TORNASOLE_S3"))}
        return {
            **kept,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
            "AWS_CONFIG_FILE": "/nonexistent",
            "TORNASOLE_TEST_S3": "bucket",
            **more,
        }

    def point_here(self, monkeypatch):
        """This process uses the server, until the test is over."""
        for name, value in self.environment().items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)

    def control(self, what, body=None):
        """Steers the fake server; what it answers."""
        request = urllib.request.Request(f"{self.endpoint}/_control/{what}", method="GET" if body is None else "PUT")
        request.data = None if body is None else body.encode()
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return json.load(answer)

    def set_faults(self, text):
        self.control("faults", text)

    def history(self):
        return self.control("history")["history"]

    def keys(self):
        """Of each object: its length and checksum."""
        return self.control("state")["keys"]


@contextlib.contextmanager
def fake_s3(fault="", *arguments):
    """The fake server, with faults."""
    line = [sys.executable, str(HERE / "fake_s3.py"), "--fault", fault, *arguments]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Server(json.loads(process.stdout.readline())["endpoint"])
    finally:
        process.kill()
        process.communicate()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def versitygw(scratch):
    """The real server on a directory of its own below `scratch`."""
    data = pathlib.Path(scratch) / "s3-data"
    (data / "bucket").mkdir(parents=True)
    port = free_port()
    environment = {**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
    line = [str(VERSITYGW), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(data)]
    process = subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        last = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None or time.monotonic() > last:
                raise RuntimeError("versitygw did not start")
            time.sleep(0.05)
        yield Server(f"http://127.0.0.1:{port}", data / "bucket")
    finally:
        process.kill()
        process.wait()


class Front(Server):
    """A server behind TLS."""

    def __init__(self, endpoint, certificate):
        super().__init__(endpoint)
        self.certificate = certificate

    def environment(self, **more):
        return super().environment(**{"AWS_CA_BUNDLE": str(self.certificate), **more})

    def protocols(self):
        """How many requests came by each protocol, and over how many connections, this one included."""
        context = ssl.create_default_context(cafile=self.certificate)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        with opener.open(f"{self.endpoint}/_protocols", timeout=30) as answer:
            return json.load(answer)


@contextlib.contextmanager
def tls_front(backend, scratch, protocol="h2"):
    """TLS before a server that is running, with HTTP/2 or without."""
    certificate = pathlib.Path(scratch) / "certificate.pem"
    line = [str(TLS_FRONT), backend.endpoint, str(certificate), protocol]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Front(json.loads(process.stdout.readline())["endpoint"], certificate)
    finally:
        process.kill()
        process.communicate()
