"""A small store with the part of the S3 interface that packs need. It checks every signature and digest.

It stands in for a real server where none is to be had; `test_packs.py` also asks moto's, if it is there.
"""

import hashlib
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, unquote, urlsplit

from tamias.archive.blobs.s3 import S3Credentials, S3Request, signed

CREDENTIALS = S3Credentials("loopback", "a secret of the test")
PAGE = 2


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.refused(body):
            return
        self.server.objects[self.name()] = body
        self.answer(200)

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
            self.answer(206, content[start : end + 1])

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
        query = dict(parse_qsl(urlsplit(self.path).query))
        names = sorted(name for name in self.server.objects if name.startswith(query["prefix"]))
        start = int(query.get("continuation-token", 0))
        told = "".join(
            f"<Contents><Key>{name}</Key><Size>{len(self.server.objects[name])}</Size></Contents>"
            for name in names[start : start + PAGE]
        )
        more = start + PAGE < len(names)
        told += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        told += f"<NextContinuationToken>{start + PAGE}</NextContinuationToken>" if more else ""
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        self.answer(200, f'<ListBucketResult xmlns="{space}">{told}</ListBucketResult>'.encode())

    def name(self):
        return unquote(urlsplit(self.path).path).removeprefix("/bucket").removeprefix("/")

    def refused(self, body):
        """Answers for itself when the store is out of order, or the request is not signed by us."""
        if self.server.answers:
            self.answer(self.server.answers.pop(0))
            return True
        if self.headers["authorization"] != self.expected(body):
            self.answer(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>")
            return True
        return False

    def expected(self, body):
        names = re.search(r"SignedHeaders=([\w;-]+)", self.headers["authorization"])[1].split(";")
        parts = urlsplit(self.path)
        asked = S3Request(
            method=self.command,
            host=self.headers["host"],
            path=parts.path,
            query=dict(parse_qsl(parts.query)),
            headers={name: self.headers[name] for name in names},
            sha256=hashlib.sha256(body).hexdigest(),
        )
        moment = datetime.strptime(self.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return signed(asked, CREDENTIALS, moment)["authorization"]

    def answer(self, status, content=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
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
    server.objects, server.answers = {} if objects is None else objects, []
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
