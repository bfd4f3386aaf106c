#!/usr/bin/env python3
"""A small S3 on loopback that keeps objects in memory, checks signatures and checksums, and injects faults.

    fake_s3.py --fault 503:0.3,reset:0.1 --seed 1

prints one line of JSON, {"endpoint": "http://127.0.0.1:PORT"}, and serves until its standard input ends. Buckets exist
by being named (--bucket). Faults, each with its probability, are decided per request:

    503, 500     the error, before anything is done
    reset        the connection is cut, before anything is done
    hang         no answer for --hang-s seconds, then the connection is cut; nothing is done
    cut          half of the body of an answer
    lost_reply   the request is done, then the connection is cut
    flip         one byte of what arrives, and of what is sent back, is another
    403, expired, nobucket   what they say

Requests below /_control/ steer it and are not counted: PUT faults (a new list), GET state (requests, keys), GET
history (method, key, status and CRC-32 of each request), PUT latency (seconds added to every request), PUT save (a
directory that all objects are written to), PUT put/KEY (an object's new content), PUT remove/KEY.
"""

import argparse
import base64
import binascii
import hashlib
import hmac
import json
import os
import random
import socket
import struct
import sys
import threading
import time
import typing
import urllib.parse
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

ACCESS_KEY = "AKIDTORNASOLETEST"
SECRET_KEY = "tornasole/test+secret"
FAULTS = ("503", "500", "reset", "hang", "cut", "lost_reply", "flip", "403", "expired", "nobucket")


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def checksum(data):
    return base64.b64encode(struct.pack(">I", crc32c(data))).decode()


def parse_faults(text):
    faults = {}
    for item in filter(None, text.split(",")):
        name, _, chance = item.partition(":")
        if name not in FAULTS:
            raise ValueError(f"fault {name!r} is not known; there are: {', '.join(FAULTS)}")
        faults[name] = float(chance or 1)
    return faults


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status, code, headers=()):
        super().__init__(code)
        self.status, self.code, self.headers = status, code, headers


class Stored(typing.NamedTuple):
    """An object."""

    data: bytes
    seconds: float  # since 1970, when it was written
    checksum: str  # as given, or of its parts; None if there was none
    etag: str


class Bucket:
    """All there is: objects, uploads, what was asked."""

    def __init__(self, arguments):
        self.lock = threading.Lock()
        self.names = set(arguments.bucket)
        self.objects = {}  # "bucket/key" -> Stored
        self.uploads = {}  # id -> (path, {number: bytes})
        self.history = []
        self.random = random.Random(arguments.seed)
        self.faults = parse_faults(arguments.fault)
        self.conditional = not arguments.no_conditional
        self.hang_s = arguments.hang_s
        self.latency_s = arguments.latency_s
        self.secret = arguments.secret
        self.access = arguments.access
        self.max_keys = arguments.page
        self.skew_s = arguments.clock_offset_s
        self.checked_bytes = arguments.checked_bytes

    def draw(self, name):
        with self.lock:
            return self.random.random() < self.faults.get(name, 0)

    def store(self, path, data, given):
        self.objects[path] = Stored(data, time.time() + self.skew_s, given, '"' + hashlib.md5(data).hexdigest() + '"')
        return self.objects[path]

    def flipped(self, data):
        if not data or not self.draw("flip"):
            return data
        with self.lock:
            at = self.random.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def signature_of(handler, path, query, payload_hash, secret):
    """What the request's signature must be; computed from what arrived."""
    authorization = handler.headers["Authorization"]
    fields = dict(item.strip().split("=", 1) for item in authorization.split(" ", 1)[1].split(","))
    _, day, region, service, _ = fields["Credential"].split("/")
    names = fields["SignedHeaders"].split(";")
    pairs = sorted((urllib.parse.quote(k, safe="-._~"), urllib.parse.quote(v, safe="-._~")) for k, v in query)
    canonical = "\n".join(
        [
            handler.command,
            path,
            "&".join(f"{k}={v}" for k, v in pairs),
            *(f"{name}:{' '.join(handler.headers[name].split())}" for name in names),
            "",
            ";".join(names),
            payload_hash,
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    text = "\n".join(
        ["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return fields, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "fake"
    bucket: Bucket

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def date_time_string(self, timestamp=None):
        return formatdate((time.time() if timestamp is None else timestamp) + self.bucket.skew_s, usegmt=True)

    def cut_connection(self):
        """Ends the connection with a reset, as a host that went away does."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.wfile = open("/dev/null", "wb")
        self.rfile = open("/dev/null", "rb")

    def answer(self, status, body=b"", headers=(), send_body=True):
        body = self.bucket.flipped(body) if status < 300 else body
        is_cut = status < 300 and len(body) > 1 and send_body and self.bucket.draw("cut")
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if send_body and status not in (204, 304):
            self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.wfile.flush()
        if is_cut:
            self.cut_connection()

    def refuse(self, refused):
        body = f"<?xml version='1.0'?><Error><Code>{refused.code}</Code><Message>refused</Message></Error>".encode()
        self.answer(refused.status, body, refused.headers, send_body=self.command != "HEAD")

    def note(self, key, status, body):
        with self.bucket.lock:
            entry = {"method": self.command, "key": key, "status": status, "time": time.monotonic(), "size": len(body)}
            entry["query"] = urllib.parse.urlsplit(self.path).query
            if self.command == "PUT":
                entry["crc"] = binascii.crc32(body)
            self.bucket.history.append(entry)

    def handle_request(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if url.path.startswith("/_control/"):
            return self.control(url.path.removeprefix("/_control/"), body)
        path = urllib.parse.unquote(url.path).lstrip("/")
        query = urllib.parse.parse_qsl(url.query, keep_blank_values=True)
        if self.bucket.latency_s:
            time.sleep(self.bucket.latency_s)
        if self.bucket.draw("hang"):
            self.note(path, 0, body)
            time.sleep(self.bucket.hang_s)
            return self.cut_connection()
        if self.bucket.draw("reset"):
            self.note(path, 0, body)
            return self.cut_connection()
        try:
            for status, code in (("503", "SlowDown"), ("500", "InternalError")):
                if self.bucket.draw(status):
                    raise Refused(int(status), code)
            if self.bucket.draw("403"):
                raise Refused(403, "AccessDenied")
            if self.bucket.draw("expired"):
                raise Refused(400, "ExpiredToken")
            if self.bucket.draw("nobucket"):
                raise Refused(404, "NoSuchBucket")
            body = self.bucket.flipped(body)
            self.check(url.path, query, body)
            answer = self.serve(path, dict(query), body)
        except Refused as refused:
            self.note(path, refused.status, body)
            return self.refuse(refused)
        self.note(path, answer[0], body)
        if self.command != "GET" and self.bucket.draw("lost_reply"):
            return self.cut_connection()
        status, content, *headers = answer
        return self.answer(status, content, *headers, send_body=self.command != "HEAD")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_request

    def control(self, what, body):
        bucket = self.bucket
        with bucket.lock:
            if what == "faults":
                bucket.faults = parse_faults(body.decode())
            elif what == "latency":
                bucket.latency_s = float(body)
            elif what == "forget":
                bucket.history = []
            elif what == "save":
                self.save(body.decode())
            elif what.startswith("put/"):
                bucket.store(what.removeprefix("put/"), body, None)
            elif what.startswith("remove/"):
                del bucket.objects[what.removeprefix("remove/")]
            keys = {key: [len(data), binascii.crc32(data)] for key, (data, *_) in bucket.objects.items()}
            state = {"requests": len(bucket.history), "keys": keys, "uploads": len(bucket.uploads)}
            text = json.dumps({"history": bucket.history} if what == "history" else state)
        encoded = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def save(self, directory):
        """Every object as a file, for programs that read files."""
        for path, (data, *_) in self.bucket.objects.items():
            target = os.path.join(directory, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)

    def check(self, path, query, body):
        """The signature, the hash of the body, and the checksum: what a service checks before it does anything."""
        if not (self.headers.get("Authorization") or "").startswith("AWS4-HMAC-SHA256 "):
            raise Refused(403, "AccessDenied")
        payload_hash = self.headers["x-amz-content-sha256"]
        fields, expected = signature_of(self, path, query, payload_hash, self.bucket.secret)
        if fields["Credential"].split("/")[0] != self.bucket.access:
            raise Refused(403, "InvalidAccessKeyId")
        if not hmac.compare_digest(fields["Signature"], expected):
            raise Refused(403, "SignatureDoesNotMatch")
        then = time.mktime(time.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(then - time.time() - self.bucket.skew_s) > 900:
            raise Refused(403, "RequestTimeTooSkewed")
        if payload_hash != "UNSIGNED-PAYLOAD" and payload_hash != hashlib.sha256(body).hexdigest():
            raise Refused(400, "XAmzContentSHA256Mismatch")
        given = self.headers.get("x-amz-checksum-crc32c")
        # Of long bodies the hash above says enough; this sum is slow here.
        if given and len(body) <= self.bucket.checked_bytes and given != checksum(body):
            raise Refused(400, "BadDigest")

    def serve(self, path, query, body):
        name, _, key = path.partition("/")
        if name not in self.bucket.names:
            raise Refused(404, "NoSuchBucket")
        if not key:
            if self.command == "GET" and query.get("list-type") == "2":
                return self.list(name, query)
            raise Refused(501, "NotImplemented")
        with self.bucket.lock:
            if "uploads" in query or "uploadId" in query:
                return self.serve_parts(path, query, body)
            if self.command == "PUT":
                self.check_condition(path)
                stored = self.bucket.store(path, body, self.headers.get("x-amz-checksum-crc32c"))
                return 200, b"", [("ETag", stored.etag)]
            if self.command == "DELETE":
                self.bucket.objects.pop(path, None)
                return 204, b""
            return self.read(path)

    def check_condition(self, path):
        if self.headers.get("If-None-Match") != "*":
            return
        if not self.bucket.conditional:
            raise Refused(501, "NotImplemented")
        if path in self.bucket.objects:
            raise Refused(412, "PreconditionFailed")

    def read(self, path):
        if path not in self.bucket.objects:
            raise Refused(404, "NoSuchKey")
        data, seconds, stored, etag = self.bucket.objects[path]
        headers = [("Last-Modified", formatdate(seconds, usegmt=True)), ("ETag", etag)]
        if stored and self.headers.get("x-amz-checksum-mode") == "ENABLED":
            headers.append(("x-amz-checksum-crc32c", stored))
        if self.command == "HEAD":
            return 200, b"", [*headers, ("Content-Length", str(len(data)))]
        wanted = self.headers.get("Range")
        if not wanted:
            return 200, data, headers
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        first, last = int(first), min(int(last), len(data) - 1)
        if first >= len(data):
            raise Refused(416, "InvalidRange", [("Content-Range", f"bytes */{len(data)}")])
        return 206, data[first : last + 1], [*headers, ("Content-Range", f"bytes {first}-{last}/{len(data)}")]

    def serve_parts(self, path, query, body):
        uploads = self.bucket.uploads
        if "uploads" in query:
            number = f"upload-{len(self.bucket.history)}-{self.bucket.random.getrandbits(64):x}"
            uploads[number] = (path, {})
            text = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            return 200, text.encode()
        number = query["uploadId"]
        if number not in uploads or uploads[number][0] != path:
            raise Refused(404, "NoSuchUpload")
        parts = uploads[number][1]
        if self.command == "PUT":
            parts[int(query["partNumber"])] = (body, self.headers["x-amz-checksum-crc32c"])
            return 200, b"", [("ETag", '"' + hashlib.md5(body).hexdigest() + '"')]
        if self.command == "DELETE":
            del uploads[number]
            return 204, b""
        self.check_condition(path)
        del uploads[number]
        pieces = [parts[part] for part in sorted(parts)]
        if any(len(piece) < 5 << 20 for piece, _ in pieces[:-1]):
            raise Refused(400, "EntityTooSmall")
        sums = b"".join(base64.b64decode(given) for _, given in pieces)
        data = b"".join(piece for piece, _ in pieces)
        self.bucket.store(path, data, f"{checksum(sums)}-{len(pieces)}")
        return 200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"

    def list(self, name, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        limit = min(int(query.get("max-keys", 1000)), self.bucket.max_keys)
        with self.bucket.lock:
            objects = dict(self.bucket.objects)
        keys = sorted((path.partition("/")[2] for path in objects if path.startswith(name + "/")), key=str.encode)
        found, last = [], None
        for key in keys:
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            common = prefix + rest[: rest.index(delimiter) + 1] if delimiter and delimiter in rest else None
            shown = common or key
            if shown.encode() <= after.encode() or (common and common == last):
                continue
            if len(found) == limit:
                break
            last = shown
            found.append((shown, common is not None))
        else:
            limit = -1
        is_url = query.get("encoding-type") == "url"
        write = (lambda text: urllib.parse.quote(text, safe="/-._~")) if is_url else escape
        xml = ["<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>"]
        if is_url:
            xml.append("<EncodingType>url</EncodingType>")
        for shown, is_common in found:
            if is_common:
                xml.append(f"<CommonPrefixes><Prefix>{write(shown)}</Prefix></CommonPrefixes>")
                continue
            data, seconds, _, etag = objects[f"{name}/{shown}"]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
            xml.append(f"<Contents><Key>{write(shown)}</Key><LastModified>{stamp}</LastModified>")
            xml.append(f"<ETag>{escape(etag)}</ETag><Size>{len(data)}</Size></Contents>")
        xml.append(f"<IsTruncated>{'true' if limit >= 0 else 'false'}</IsTruncated>")
        if limit >= 0:
            xml.append(f"<NextContinuationToken>{escape(last or '')}</NextContinuationToken>")
        xml.append("</ListBucketResult>")
        return 200, "".join(xml).encode()


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):  # a client that went away is what the tests are about
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bucket", action="append", default=["bucket"])
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--fault", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=int, default=1000, help="keys of a listing at most")
    parser.add_argument("--hang-s", type=float, default=60)
    parser.add_argument("--latency-s", type=float, default=0)
    parser.add_argument("--clock-offset-s", type=float, default=0)
    parser.add_argument("--checked-bytes", type=int, default=1 << 20, help="longest body whose CRC-32C is checked")
    parser.add_argument("--no-conditional", action="store_true", help="answer 501 to If-None-Match")
    parser.add_argument("--access", default=ACCESS_KEY)
    parser.add_argument("--secret", default=SECRET_KEY)
    arguments = parser.parse_args()
    handler = type("BoundHandler", (Handler,), {"bucket": Bucket(arguments)})
    server = Server((arguments.host, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"endpoint": f"http://{arguments.host}:{server.server_address[1]}"}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
