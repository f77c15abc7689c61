"""Writes captures to WARC files, one gzip member for each record, with a CDXJ index beside each file.

A file that is being written ends in `.open`. Records are durable after `sync`, and only then indexed.
"""

import hashlib
import os
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from tamias.archive.moments import digits, rfc3339
from tamias.content.formats import accept_for
from tamias.database.disk import sync_path, write_all, write_errors
from tamias.features.warc.cdxj import CdxjFields, line, mime_field
from tamias.features.warc.index import WarcExtent
from tamias.features.warc.warc_files import OPEN, WarcPart, index_path
from tamias.features.warc.warc_records import (
    FIELDS,
    HTTP_REQUEST,
    HTTP_RESPONSE,
    NOT_MODIFIED,
    SAME_PAYLOAD,
    Fields,
    is_truncated,
    metadata_fields,
    record_head,
    request_block,
    response_head,
    warc_fields,
)
from tamias.model.capture import Body, Capture, Hop, Request, new_capture_id
from tamias.model.url import without_password

WARC_BYTES = 1_000_000_000
"""The length at which a file is closed and the next one started."""

REMEMBERED = 100_000
"""Payloads of this process by which a later one is known to be the same."""

_Sent = tuple[Fields, bytes | None]
"""The headers of a request, and its body when it was a POST."""
_TURNS_TO_GET = frozenset({301, 302, 303})
_LEVEL = 3
_PIECE = 1024 * 1024
_CONFORMS = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_ABOUT = (
    "Request records say what was sent as far as it is known. Bodies are kept after transfer and content "
    "coding; headers that told of a coding or another length are named X-Archive-Orig-."
)


class Earlier(msgspec.Struct, frozen=True):
    """The record that holds a payload."""

    record: str
    """Its name; empty where an earlier run wrote it."""
    url: str
    date: str


class WarcWriter:
    """Writes captures, from any thread; one writer for each prefix."""

    def __init__(
        self,
        folder: Path,
        prefix: str,
        *,
        agent: str,
        accept: str,
        software: str = "Tamias",
        robots: str = "obey",
        max_bytes: int = WARC_BYTES,
    ) -> None:
        """`agent` and `accept` are the headers that were sent with every request."""
        self._folder = folder
        self._prefix = prefix
        self._sent = [("User-Agent", agent), ("Accept", accept)]
        self._about = [
            ("software", software),
            ("format", "WARC File Format 1.1"),
            ("conformsTo", _CONFORMS),
            ("http-header-user-agent", agent),
            ("robots", robots),
            ("description", _ABOUT),
        ]
        self._max_bytes = max_bytes
        self._file: _WarcFile | None = None
        self._completed: list[WarcPart] = []
        self._payloads: OrderedDict[str, Earlier] = OrderedDict()
        self.earlier: dict[tuple[str, str], int] = {}
        """When bodies were captured by earlier runs, by URL and SHA-256."""
        self._looked_up: set[str] = set()
        """Hosts that this file has an address of."""
        self._lock = threading.Lock()
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, capture: Capture, request: Request | None = None) -> list[WarcExtent]:
        """Writes all hops of a capture; tells where each stands. Reads the body once or twice.

        If it fails, nothing of the capture stays in the file.
        """
        return self._write(capture, self._requests(request, capture.hops), metadata_fields(capture))

    def write_answers(self, capture: Capture, known: Fields) -> WarcExtent | None:
        """Write a capture whose requests are unknown, with its metadata; return the last extent."""
        return next(reversed(self._write(capture, repeat(None), known)), None)

    def copy(self, member: Body, response: WarcExtent | None, now: int) -> WarcExtent | None:
        """Write the gzip member of another crawler's record as it is; return where the response stands."""
        with self._lock, write_errors(self._folder):
            file = self._current(now, described=False)
            with file.whole():
                position, length = file.append(_pieces(member))
                if response is None:
                    return None
                place = {"file": file.name, "position": position, "length": length}
                return file.index(msgspec.structs.replace(response, **place))

    def _write(self, capture: Capture, sent: Iterator[_Sent | None], known: Fields) -> list[WarcExtent]:
        if not capture.hops:
            return []
        with self._lock, write_errors(self._folder):
            file = self._current(capture.started_at)
            try:
                with file.whole():
                    return self._write_hops(file, capture, sent, known)
            except BaseException:
                self._payloads.clear()  # one of them may have been in what was taken back
                self._looked_up.clear()
                raise

    def sync(self) -> list[WarcPart]:
        """Makes all that was written durable, and indexes it; tells of each file how far it is.

        When the disk fails to, nobody knows what it kept: the file is left to `mend_warcs`.
        """
        with self._lock, write_errors(self._folder):
            file, self._file = self._file, None
            if file is not None:
                try:
                    file.sync()
                except OSError:
                    self._payloads.clear()
                    raise
                self._file = file
            news, self._completed = self._completed, []
            return news + ([WarcPart(file.path, file.name, file.length, complete=False)] if file else [])

    def forget_bodies(self) -> None:
        """Write the next response with each body as a whole."""
        with self._lock:
            self._payloads.clear()
            self.earlier = {}

    def close(self) -> None:
        """Completes the open file. May be called twice."""
        with self._lock, write_errors(self._folder):
            self._complete()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _requests(self, request: Request | None, hops: Sequence[Hop]) -> Iterator[_Sent]:
        """The headers and the body that were sent at each hop."""
        agent, accept = self._sent
        request = request or Request(url="")
        accept = ("Accept", accept_for(request, accept[1]))
        validators = [
            *([("If-None-Match", request.etag)] if request.etag else []),
            *([("If-Modified-Since", request.last_modified)] if request.last_modified else []),
        ]
        body = request.body
        for hop in hops:
            posted = _body_fields(request.content_type, body) if body is not None else []
            yield [agent, accept, *validators, *posted], body
            if hop.status in _TURNS_TO_GET:
                body = None
            elif hop.status == 406:
                accept = ("Accept", "*/*")

    def _current(self, now: int, *, described: bool = True) -> "_WarcFile":
        if self._file is not None and self._file.length >= self._max_bytes:
            self._complete()
        if self._file is None:
            name = f"{self._prefix}-{new_capture_id(now)}.warc.gz"
            file = _WarcFile(self._folder, name)
            self._looked_up.clear()
            if described:
                fields = [("WARC-Type", "warcinfo"), *_identity(now), ("WARC-Filename", name)]
                file.add([*fields, ("Content-Type", FIELDS)], warc_fields(self._about))
            self._file = file
        return self._file

    def _complete(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            self._completed.append(WarcPart(file.complete(), file.name, file.length))

    def _write_hops(
        self, file: "_WarcFile", capture: Capture, sent: Iterator[_Sent | None], known: Fields
    ) -> list[WarcExtent]:
        extents = [self._write_hop(file, capture, hop, None, next(sent))[0] for hop in capture.hops[:-1]]
        body = capture.body or capture.error_body
        extent, answer = self._write_hop(file, capture, capture.hops[-1], body, next(sent))
        fields = [
            ("WARC-Type", "metadata"),
            *_identity(capture.started_at),
            *_about(capture.hops[-1], answer),
        ]
        file.add([*fields, ("Content-Type", FIELDS)], warc_fields(known))
        return [*extents, extent]

    def _write_hop(
        self, file: "_WarcFile", capture: Capture, hop: Hop, body: Body | None, sent: _Sent | None
    ) -> tuple[WarcExtent, str]:
        """Return where the answer stands, and its record's name."""
        self._write_address(file, hop, capture.started_at)
        identity = _identity(capture.started_at)
        answer = identity[0][1]
        extent = self._write_answer(file, identity, hop, body, capture.started_at)
        if sent is not None:
            fields = [("WARC-Type", "request"), *_identity(capture.started_at), *_about(hop, answer)]
            file.add([*fields, ("Content-Type", HTTP_REQUEST)], request_block(hop.url, *sent))
        return extent, answer

    def _write_answer(
        self, file: "_WarcFile", identity: Fields, hop: Hop, body: Body | None, at: int
    ) -> WarcExtent:
        size = body.size if body else None
        digest = f"sha256:{body.sha256 if body else hashlib.sha256().hexdigest()}"
        earlier = self._earlier(hop.url, digest) if size else None
        is_revisit = hop.status == 304 or earlier is not None
        fields = [*identity, *_about(hop), ("Content-Type", HTTP_RESPONSE)]
        if is_revisit:
            fields += [("WARC-Type", "revisit"), *_revisited(earlier)]
            digest = digest if earlier else ""
        else:
            fields.append(("WARC-Type", "response"))
        if digest:
            fields.append(("WARC-Payload-Digest", digest))
        if not is_revisit and is_truncated(hop, size):
            fields.append(("WARC-Truncated", "unspecified"))
        position, length = file.add(fields, response_head(hop, size), None if is_revisit else body)
        if size and not is_revisit:
            self._remember(digest, Earlier(identity[0][1], hop.url, identity[1][1]))
        return file.index(
            WarcExtent(
                file=file.name,
                position=position,
                length=length,
                url=without_password(hop.url),
                captured_at=at,
                status=hop.status,
                sha256=digest.partition(":")[2] or None,
                revisit=is_revisit,
                declared_type=hop.header("content-type"),
            )
        )

    def _earlier(self, url: str, digest: str) -> Earlier | None:
        at = self.earlier.get((without_password(url), digest.partition(":")[2]))
        known = self._payloads.get(digest)
        return known if known or at is None else Earlier("", without_password(url), rfc3339(at))

    def _write_address(self, file: "_WarcFile", hop: Hop, at: int) -> None:
        """Write which address a host had, once in each file, in the form of Heritrix."""
        name = urlsplit(hop.url).hostname or ""
        if not hop.address or name in self._looked_up or not any(map(str.isalpha, name)):
            return
        self._looked_up.add(name)
        kind = "AAAA" if ":" in hop.address else "A"
        block = f"{digits(at)}\n{name}.\tIN\t{kind}\t{hop.address}\n".encode()
        fields = [("WARC-Type", "resource"), *_identity(at), ("WARC-Target-URI", f"dns:{name}")]
        file.add([*fields, ("Content-Type", "text/dns")], block)

    def _remember(self, digest: str, earlier: Earlier) -> None:
        self._payloads[digest] = earlier
        if len(self._payloads) > REMEMBERED:
            self._payloads.popitem(last=False)


class _WarcFile:
    """A WARC file that is being written, and its index."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.length = 0
        self.path = folder / (name + OPEN)
        self.unindexed: list[bytes] = []
        """Lines of the index that are written with the next sync."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        mode = folder.stat().st_mode & 0o666  # in a folder for nobody else, neither are its files
        self._file = os.open(self.path, flags, mode)
        self._index = os.open(index_path(self.path, name), flags, mode)
        sync_path(folder)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Write the records of the block as a whole, or not at all."""
        length, lines = self.length, len(self.unindexed)
        try:
            yield
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file, length)
            self.length = length
            del self.unindexed[lines:]
            raise

    def add(self, fields: Fields, block: bytes, body: Body | None = None) -> tuple[int, int]:
        """Writes one record; where it begins and how long it is."""
        digest = hashlib.sha256(block)
        for piece in _pieces(body):
            digest.update(piece)
        size = len(block) + (body.size if body else 0)
        head = record_head(
            [*fields, ("WARC-Block-Digest", f"sha256:{digest.hexdigest()}"), ("Content-Length", str(size))]
        )
        packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)
        packed = map(packing.compress, chain([head + block], _pieces(body), [b"\r\n\r\n"]))
        position, length = self.append(packed)
        return position, length + self.append([packing.flush()])[1]

    def append(self, pieces: Iterable[bytes]) -> tuple[int, int]:
        """Write the pieces of a record that is packed; return where they begin and how long they are."""
        start = self.length
        for piece in pieces:
            write_all(self._file, piece)
            self.length += len(piece)
        return start, self.length - start

    def index(self, extent: WarcExtent) -> WarcExtent:
        """Add a response to what the next sync indexes; return it."""
        digest = f"sha256:{extent.sha256}" if extent.sha256 else ""
        entry = CdxjFields(
            url=extent.url,
            mime=mime_field(extent.declared_type or "", is_revisit=extent.revisit),
            status=str(extent.status),
            digest=digest,
            length=str(extent.length),
            offset=str(extent.position),
            filename=self.name,
        )
        self.unindexed.append(line(entry, digits(extent.captured_at)))
        return extent

    def sync(self) -> None:
        """First the records, then what the index says of them."""
        try:
            os.fdatasync(self._file)
            write_all(self._index, b"".join(self.unindexed))
            os.fdatasync(self._index)
        except OSError:
            self._close()
            raise
        self.unindexed.clear()

    def complete(self) -> Path:
        """Gives the file its final name."""
        self.sync()
        self._close()
        path = self.path.rename(self.path.with_name(self.name))
        sync_path(path.parent)
        return path

    def _close(self) -> None:
        os.close(self._file)
        os.close(self._index)


def _identity(now: int) -> list[tuple[str, str]]:
    return [("WARC-Record-ID", f"<urn:uuid:{uuid4()}>"), ("WARC-Date", rfc3339(now))]


def _about(hop: Hop, answer: str | None = None) -> list[tuple[str, str]]:
    fields = [("WARC-Target-URI", hop.url)]
    if hop.address:
        fields.append(("WARC-IP-Address", hop.address))
    if hop.protocol:
        fields.append(("WARC-Protocol", hop.protocol))
    if answer is not None:
        fields.append(("WARC-Concurrent-To", answer))
    return fields


def _body_fields(content_type: str | None, body: bytes) -> list[tuple[str, str]]:
    fields = [("Content-Type", content_type)] if content_type is not None else []
    return [*fields, ("Content-Length", str(len(body)))]


def _revisited(earlier: Earlier | None) -> list[tuple[str, str]]:
    if earlier is None:
        return [("WARC-Profile", NOT_MODIFIED)]
    return [
        ("WARC-Profile", SAME_PAYLOAD),
        *([("WARC-Refers-To", earlier.record)] if earlier.record else []),
        ("WARC-Refers-To-Target-URI", earlier.url),
        ("WARC-Refers-To-Date", earlier.date),
    ]


def _pieces(body: Body | None) -> Iterator[bytes]:
    if body is None:
        return
    if body.data is not None:
        yield body.data
    elif body.path is not None:
        with open(body.path, "rb") as file:
            while piece := file.read(_PIECE):
                yield piece
