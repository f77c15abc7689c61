"""A reusable curl handle: it requests one address at a time and limits the response as it arrives.

Curl calls back for every header line and body chunk; a callback that returns 0 ends the transfer.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, BinaryIO

import msgspec
import pycurl
from zstandard import ZstdDecompressor, ZstdError

from tamias.content.formats import accept_for
from tamias.fetch.credentials import HttpOptions, SourceCredential
from tamias.fetch.multi import (
    READ_BYTES,
    UNACCEPTABLE,
    Multi,
    TransferTrouble,
    Verdict,
    bracketed,
    connect_to,
    http_handle,
)
from tamias.model.capture import Body, Capture, Hop, Request
from tamias.model.errors import DiskFull
from tamias.model.url import host

_BUFFER_BYTES = 256 * 1024
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class Spool:
    """A body in the making. `body` ends it, `close` makes room for another; neither leaves an open file."""

    def __init__(self, folder: str, memory_bytes: int) -> None:
        self._folder = folder
        self._memory_bytes = memory_bytes
        self._chunks: list[bytes] = []
        self._size = 0
        self._file: BinaryIO | None = None
        self._path: str | None = None

    def write(self, chunk: bytes) -> None:
        """Adds a chunk. Raises `OSError` when the file cannot be written."""
        self._size += len(chunk)
        if self._file is not None:
            self._digest.update(chunk)
            self._file.write(chunk)
            return
        self._chunks.append(chunk)
        if self._size > self._memory_bytes:
            self._move_to_file()

    def _move_to_file(self) -> None:
        descriptor, self._path = tempfile.mkstemp(prefix="body-", dir=self._folder)
        self._file = os.fdopen(descriptor, "wb", _BUFFER_BYTES)
        start = b"".join(self._chunks)
        self._chunks.clear()
        self._digest = hashlib.sha256(start)
        self._file.write(start)

    def body(self) -> Body:
        """The finished body; its file now belongs to the caller. Raises `OSError` as `write` does."""
        if self._file is None:
            data = b"".join(self._chunks)
            return Body(size=self._size, sha256=hashlib.sha256(data).hexdigest(), data=data)
        self._file.close()
        path, self._path = self._path, None
        return Body(size=self._size, sha256=self._digest.hexdigest(), path=path)

    def close(self) -> None:
        """Forgets the body and removes its file, unless `body` has handed it over."""
        self._chunks.clear()
        self._size = 0
        if self._file is not None:
            with contextlib.suppress(OSError):  # closing flushes, and the disk may be full
                self._file.close()
            self._file = None
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            self._path = None


def disk_error(error: OSError, folder: str) -> Exception:
    """Return the error to raise when a body cannot be written to its spool."""
    if error.errno in _NO_ROOM:
        return DiskFull(f"no room for a body in {folder} (spool_dir)")
    return error


_UNCOUNTED_BYTES = 12 * READ_BYTES
"""Curl may decode this much before it says how much came over the wire (ten reads and a rest)."""
_DISCARDED_BYTES = 64 * 1024
"""The body of an answer that is no success is read this far, to keep the connection."""
_FREE_PIECES = 100_000
_LEAST_PIECE = 64
"""Bytes of a body's pieces on average, beyond the free ones: smaller ones cost us more than their sender."""
_END = 0


class Transfer(ABC):
    """A curl handle, the attempt that it is used for, and what it has seen of the current answer."""

    request: Request
    started_at: int
    seconds_left: float
    hops: list[Hop]
    received: int
    """Bytes of all answers of the attempt."""
    http_version: int
    """Of the last answer, as curl counts them."""
    target: str | None = None
    """The address that a proxy is to connect to; set before `ask`."""

    def __init__(
        self, curl: pycurl.Curl, options: HttpOptions, forbidden: Callable[[str], str | None]
    ) -> None:
        self._options = options
        self._forbidden = forbidden
        self._curl = curl
        self._spool = Spool(options.spool_dir, options.memory_bytes)
        self._most_bytes = options.max_bytes
        self._most_name = "max_bytes"
        self._curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self._curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        self._curl.setopt(pycurl.XFERINFOFUNCTION, self._take_progress)
        self._curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.clear()

    def begin(self, request: Request, started_at: int) -> None:
        """Start an attempt, which may take several requests."""
        self.request, self.started_at, self.seconds_left = request, started_at, self._options.total_timeout
        self.hops, self.received = [], 0

    def leads_to(self, target: str) -> None:
        """Notes where the last answer sends us."""
        self.hops[-1] = msgspec.structs.replace(self.hops[-1], location=target)

    def captured(
        self,
        verdict: Verdict,
        body: Body | None,
        ended_at: int,
        pause: int | None = None,
        error_body: Body | None = None,
    ) -> Capture:
        """The capture; `pause` is how long the server asked us to stay away, in milliseconds."""
        return Capture(
            url=self.request.url,
            started_at=self.started_at,
            ended_at=ended_at,
            outcome=verdict.outcome,
            reason=verdict.reason,
            hops=tuple(self.hops),
            body=body,
            error_body=error_body,
            retry=verdict.retry,
            retry_after_ms=pause,
            wire_bytes=self.received,
            cut=verdict.cut,
            unreached=None if self.hops else verdict.unreached,
        )

    def clear(self) -> None:
        """Forgets the last answer, its body included."""
        self.url = ""
        self.cut: str | None = None
        """The limit at which we ended the transfer ourselves."""
        self.refusal: str | None = None
        """Why an address was not connected to."""
        self._header_bytes = self._decoded_bytes = self._wire_bytes = self._pieces = 0
        self._peer = ""
        self._disk_error: OSError | None = None
        self.discarded = bytearray()
        """The beginning of a body that is not spooled."""
        self._window: tuple[float, int] | None = None
        self._spool.close()
        self._is_spooled = False

    def _begin(self, now: float) -> None:
        """Starts the clock for a transfer that may take what is left of the time of its attempt."""
        self._begun = now
        self._ends = now + self.seconds_left
        if self._options.proxy:  # a name stands for itself, or the handle keeps the address before it
            self._curl.setopt(pycurl.CONNECT_TO, [f"::{bracketed(self.target or host(self.url))}:"])
        elif self._options.address_of is not None:
            self._curl.setopt(pycurl.CONNECT_TO, connect_to(self._options, self.url))

    def _end(self) -> None:
        """Takes stock. Raises `DiskFull` or `OSError` when the body could not be spooled."""
        if self._disk_error is not None:
            raise disk_error(self._disk_error, self._options.spool_dir) from self._disk_error
        self._wire_bytes = self._curl.getinfo(pycurl.SIZE_DOWNLOAD_T)
        self.http_version = self._curl.getinfo(pycurl.INFO_HTTP_VERSION)
        self.received += self.wire_bytes
        if self.cut is None and self._is_inflated(self._wire_bytes):
            self._cut_at_ratio()

    def close(self) -> None:
        """Frees the handle."""
        self.clear()
        self._curl.close()

    @property
    def wire_bytes(self) -> int:
        """Return the bytes that were received: headers, and the body as it was coded."""
        return self._header_bytes + self._wire_bytes

    @property
    def is_silent(self) -> bool:
        """Tell if not one byte of a response was received."""
        return self._header_bytes == 0

    @property
    def is_reused(self) -> bool:
        """Tell if the connection was used for an earlier response."""
        return bool(self._curl.getinfo(pycurl.NUM_CONNECTS) == 0)

    @property
    def address(self) -> str:
        """The IP address of the peer."""
        if self._options.proxy:
            return self.target or ""
        return str(self._curl.getinfo(pycurl.PRIMARY_IP))

    def body(self) -> Body:
        """The complete body of a success. Its spool file, if any, is the caller's from here on."""
        try:
            return self._spool.body()
        except OSError as error:
            raise disk_error(error, self._options.spool_dir) from error

    def trouble(self, code: int, message: str) -> TransferTrouble:
        """Return the details of the error that curl ended with."""
        return TransferTrouble(
            url=self.url,
            code=code,
            message=message,
            errno=self._curl.getinfo(pycurl.OS_ERRNO),
            peer=self._peer or host(self.url),
            reused=self.is_reused,
        )

    def _overdue(self, now: float) -> str | None:
        options = self._options
        if now >= self._ends:
            return f"not complete within {options.total_timeout:g} s (total_timeout)"
        if self._header_bytes == 0:
            is_query = self.request.is_query
            name = "query_timeout" if is_query else "first_byte_timeout"
            most = options.query_timeout if is_query else options.first_byte_timeout
            return f"no answer within {most:g} s ({name})" if now - self._begun >= most else None
        if self._window is None:
            self._window = (now, self.wire_bytes)
        since, bytes_then = self._window
        if now - since < options.min_rate_window:
            return None
        if self.wire_bytes - bytes_then < options.min_rate * (now - since):
            return f"slower than {options.min_rate} B/s for {options.min_rate_window:g} s (min_rate)"
        self._window = (now, self.wire_bytes)
        return None

    def _take_header(self, line: bytes) -> int | None:
        self._header_bytes += len(line)
        if self._header_bytes > self._options.max_header_bytes:
            return self._cut_off(f"headers larger than max_header_bytes ({self._options.max_header_bytes})")
        return self._take_line(line)

    @abstractmethod
    def _take_line(self, line: bytes) -> int | None:
        """Read a line of the protocol's own responses."""

    def _take_body(self, chunk: bytes) -> int | None:
        self._decoded_bytes += len(chunk)
        self._pieces += 1
        if self._pieces > _FREE_PIECES and self._decoded_bytes < _LEAST_PIECE * self._pieces:
            return self._cut_off(f"body in pieces of less than {_LEAST_PIECE} bytes on average")
        if not self._is_spooled:
            self.discarded += chunk
            return None if self._decoded_bytes <= _DISCARDED_BYTES else _END
        if self._decoded_bytes > self._most_bytes:
            return self._cut_too_large()
        if self._is_inflated(self._wire_bytes + _UNCOUNTED_BYTES):
            return self._cut_at_ratio()
        try:
            self._spool.write(chunk)
        except OSError as error:
            self._disk_error = error
            return _END
        return None

    def _take_progress(self, _total: int, wire_bytes: int, _upload_total: int, _uploaded: int) -> int:
        self._wire_bytes = wire_bytes
        return 0

    def _is_inflated(self, wire_bytes: int) -> bool:
        decoded = self._decoded_bytes
        return decoded > self._options.ratio_floor and decoded > self._options.max_ratio * wire_bytes

    def _cut_at_ratio(self) -> int:
        return self._cut_off(
            f"body decodes to more than {self._options.max_ratio} times its size (max_ratio) "
            f"after {self._options.ratio_floor} bytes"
        )

    def _cut_too_large(self) -> int:
        return self._cut_off(f"body larger than {self._most_name} ({self._most_bytes})")

    def _cut_off(self, reason: str) -> int:
        self.cut = reason
        return _END

    def _open_socket(self, _purpose: int, peer: pycurl.CurlSockAddr) -> socket.socket | int:
        address, port = peer.addr[0], peer.addr[1]
        self._peer = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        # The address of the proxy is the operator's choice; what it is asked for was checked before.
        reason = None if self._options.proxy else self._forbidden(address)
        if reason is not None:
            self.refusal = reason
            return int(pycurl.SOCKET_BAD)
        opened = socket.socket(peer.family, peer.socktype, peer.protocol)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._options.ack_timeout * 1000))
        self._lend(opened)
        return opened

    @abstractmethod
    def _lend(self, opened: socket.socket) -> None:
        """Closes the socket once curl has made its own duplicate, which is when the callback returns."""


_STATUS_LINE = re.compile(rb"HTTP/[0-9.]+[ \t]+([0-9]{3})(?![^ \t\r\n])")
_BLANK = " \t\r\n"
ZSTD = "zstd"
ANYTHING = "*/*"
_MOST_LOGINS = 2
"""Ways in which a server may ask for a password until it has it."""
_MOST_WINDOW = 8 << 20
"""Of memory that a decoder must have; RFC 9659 allows no more for this coding."""
_CODED_SLICE = 256
"""Bytes that are decoded before the limits are looked at: some 8 MiB at most, for a block is 128 KiB."""


class HttpTransfer(Transfer):
    """A handle for http and https."""

    accept: str
    posted: bytes | None
    """What the next hop sends; None once a redirect has turned the POST into a GET."""
    as_coded: bool
    """Whether the next answer comes in a coding that curl does not know, zstd, and is decoded by us."""
    logins: int
    """How often a server was given an answer to what it wants of a credential."""
    is_whole: bool
    """Whether the last answer came to its end."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        super().__init__(http_handle(options), options, forbidden)

    def begin(self, request: Request, started_at: int) -> None:
        """Start an attempt, which may take several requests."""
        super().begin(request, started_at)
        self.accept, self.posted = accept_for(request, self._options.accept), request.body
        self.as_coded, self.logins, self.is_whole = False, 0, False

    @property
    def is_conditional(self) -> bool:
        """Return whether a 304 may be the answer."""
        return self.request.etag is not None or self.request.last_modified is not None

    @property
    def may_ask_for_anything(self) -> bool:
        """Tell if the last response was a 406 to our own Accept header, not the caller's."""
        ours = self.request.accept is None and self.posted is None and self.accept != ANYTHING
        return ours and self.hops[-1].status == UNACCEPTABLE

    def may_answer(self, credential: SourceCredential) -> bool:
        """Return whether the last answer asks for the password in another way, which was not tried yet."""
        hop = self.hops[-1]
        self.logins += 1
        is_open = hop.status == HTTPStatus.UNAUTHORIZED and self.logins <= _MOST_LOGINS
        return is_open and credential.take_challenge(hop.header("www-authenticate"))

    @property
    def may_ask_as_coded(self) -> bool:
        """Tell if the last response has a coding that curl cannot decode, but we can."""
        coding = (self.hops[-1].header("content-encoding") or "").strip().lower()
        return coding == ZSTD and self.posted is None and not self.as_coded

    def clear(self) -> None:
        """Forgets the last answer, its body included."""
        super().clear()
        self.status = 0
        self.answered = False
        """Whether all headers of the final answer have arrived."""
        self._lines: list[bytes] = []
        self._decoder: Any = None

    async def ask(self, multi: Multi, url: str, headers: Sequence[bytes]) -> tuple[int, str]:
        """Make a request, a POST if something is posted; return the code and message of `Multi.perform`.

        Raises `DiskFull` or `OSError` when the body cannot be spooled.
        """
        self.clear()
        self.url = url
        self._curl.setopt(pycurl.URL, url)
        self._curl.setopt(pycurl.HTTPHEADER, headers)
        self._curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0 if self.as_coded else 1)
        if self.posted is None:
            self._curl.setopt(pycurl.HTTPGET, 1)
        else:
            self._curl.setopt(pycurl.POSTFIELDS, self.posted)
        loop = asyncio.get_running_loop()
        self._begin(loop.time())
        ending = await multi.perform(self._curl, self._overdue)
        self.seconds_left -= loop.time() - self._begun
        self._end()
        if self._decoder is not None and self.cut is None and not self._decoder.eof:
            self.cut = f"the body ends inside its content coding ({ZSTD})"
        self.is_whole = ending[0] == pycurl.E_OK and self.cut is None
        return ending

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers as they came, in order, each as often as it came."""
        pairs: list[tuple[str, str]] = []
        for line in self._lines:
            text = line.decode("latin-1")
            if text[0] in " \t" and pairs:  # a folded line goes on with the value before it
                name, value = pairs.pop()
                pairs.append((name, value + " " + text.strip(_BLANK)))
                continue
            name, _, value = text.partition(":")
            pairs.append((name, value.strip(_BLANK)))
        return tuple(pairs)

    def _lend(self, opened: socket.socket) -> None:
        asyncio.get_running_loop().call_soon(opened.close)

    def _take_header(self, line: bytes) -> int | None:
        # Nearly every line is one that is only kept: it takes no second call.
        if self.status and not self.answered and line.strip(b"\r\n"):
            self._header_bytes += len(line)
            if self._header_bytes <= self._options.max_header_bytes:
                self._lines.append(line)
                return None
            self._header_bytes -= len(line)
        return super()._take_header(line)

    def _take_line(self, line: bytes) -> int | None:
        if self.answered:
            return None  # a trailer: counted, not kept
        if self.status == 0:
            found = _STATUS_LINE.match(line)
            if found is None:
                return self._cut_off(f"the answer is not HTTP: status line {line[:80]!r}")
            self.status = int(found[1])
            return None
        if line.strip(b"\r\n"):
            self._lines.append(line)
            return None
        return self._end_headers()

    def _end_headers(self) -> int | None:
        if self.status < 200:  # an interim response: the answer is still to come
            self.status = 0
            self._lines.clear()
            return None
        self.answered = True
        if self.status >= 300 and not self.request.keeps_errors:
            return None
        if self._declared_length() > self._options.max_bytes:
            return self._cut_too_large()
        self._is_spooled = True
        if self.as_coded and any(
            name.lower() == "content-encoding" and value for name, value in self.headers()
        ):
            self._decoder = ZstdDecompressor(max_window_size=_MOST_WINDOW).decompressobj()
        return None

    def _take_body(self, chunk: bytes) -> int | None:
        if self._decoder is None:
            return super()._take_body(chunk)
        for start in range(0, len(chunk), _CODED_SLICE):
            if self._decoder.eof:
                return None
            try:
                decoded = self._decoder.decompress(chunk[start : start + _CODED_SLICE])
            except ZstdError as error:
                return self._cut_off(f"the body cannot be decoded from {ZSTD}: {error}")
            if decoded and (ending := super()._take_body(decoded)) is not None:
                return ending
        return None

    def _declared_length(self) -> int:
        for line in self._lines:
            if line[:15].lower() == b"content-length:":
                digits = line[15:35].strip()
                return int(digits) if digits.isdigit() else 0
        return 0
