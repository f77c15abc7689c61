"""A reusable curl handle: it requests one address at a time and limits the response as it arrives.

Curl calls back for every header line and body chunk; a callback that returns 0 ends the transfer.
"""

import contextlib
import errno
import hashlib
import os
import socket
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import BinaryIO

import msgspec
import pycurl

from tamias.fetch.credentials import HttpOptions
from tamias.fetch.multi import (
    READ_BYTES,
    TransferTrouble,
    Verdict,
    bracketed,
    connect_to,
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
