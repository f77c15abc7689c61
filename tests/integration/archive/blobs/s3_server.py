"""A small store with the part of the S3 interface that packs need. It checks every signature and digest.

It stands in for a real server where none is to be had; `test_packs.py` also asks moto's, if it is there.
"""

import hashlib
import hmac
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit


class Credentials(NamedTuple):
    key: str
    secret: str


CREDENTIALS = Credentials("loopback", "a secret of the test")
PAGE = 2


def environment(endpoint, credentials=CREDENTIALS):
    """The variables that name a store."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": credentials.key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret,
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.refused(body):
            return
        if "uploadId" in self.query:
            self.server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = body
        else:
            self.server.objects[self.name()] = body
        self.answer(200)

    def do_POST(self):
        """An object in parts: begun, and complete."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.refused(body):
            return
        if "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"])
            self.server.objects[self.name()] = b"".join(parts[number] for number in sorted(parts))
            self.answer(200, b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
            return
        number = f"upload-{len(self.server.uploads)}-{len(self.server.objects)}"
        self.server.uploads[number] = {}
        told = f"<UploadId>{number}</UploadId>"
        self.answer(200, f"<InitiateMultipartUploadResult>{told}</InitiateMultipartUploadResult>".encode())

    def do_GET(self):
        if self.refused(b""):
            return
        if not self.name():
            self.list_objects()
            return
        content = self.server.objects.get(self.name())
        if content is None:
            self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        start, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["range"]).groups())
        if start >= len(content):
            self.answer(416)
        else:
            part = content[start : end + 1]
            self.answer(206, part, f"bytes {start}-{start + len(part) - 1}/{len(content)}")

    def do_HEAD(self):
        if self.refused(b""):
            return
        content = self.server.objects.get(self.name())
        self.answer(404 if content is None else 200, content or b"")

    def do_DELETE(self):
        if not self.refused(b""):
            self.server.objects.pop(self.name(), None)
            self.answer(204)

    def list_objects(self):
        names = sorted(name for name in self.server.objects if name.startswith(self.query["prefix"]))
        start = int(self.query.get("continuation-token", 0))
        told = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(self.server.objects[name])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for name in names[start : start + PAGE]
        )
        more = start + PAGE < len(names)
        told += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        told += f"<NextContinuationToken>{start + PAGE}</NextContinuationToken>" if more else ""
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        self.answer(200, f'<ListBucketResult xmlns="{space}">{told}</ListBucketResult>'.encode())

    @property
    def query(self):
        return dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))

    def name(self):
        return unquote(urlsplit(self.path).path).removeprefix("/bucket").removeprefix("/")

    def refused(self, body):
        """Answers for itself when the store is out of order, or the request is not signed by us."""
        if self.server.answers:
            self.answer(self.server.answers.pop(0))
            return True
        if self.headers["authorization"].rpartition("Signature=")[2] != self.signature(body):
            self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            return True
        return False

    def signature(self, body):
        """The signature that the request should have: AWS Signature Version 4."""
        authorization, stamp = self.headers["authorization"], self.headers["x-amz-date"]
        names = re.search(r"SignedHeaders=([\w;-]+)", authorization)[1]
        scope = re.search(r"Credential=[^/]+/([^,]+)", authorization)[1]
        query = sorted((quote(name, safe=""), quote(value, safe="")) for name, value in self.query.items())
        lines = [
            self.command,
            urlsplit(self.path).path,
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{self.headers[name]}" for name in names.split(";")),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
        key = f"AWS4{CREDENTIALS.secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        return hmac.new(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hexdigest()

    def answer(self, status, content=b"", part=None):
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.send_header("etag", '"x"')
        self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if part:
            self.send_header("content-range", part)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@contextmanager
def serving(port=0, objects=None):
    """The server; its `objects` are what it holds, its `answers` what it says before it works again."""
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.objects, server.answers, server.uploads = {} if objects is None else objects, [], {}
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
