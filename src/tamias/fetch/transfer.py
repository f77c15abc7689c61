"""One reusable curl handle: asks for one address at a time and bounds the answer while it arrives.

Curl calls back for every header line and body chunk; a callback that returns 0 ends the transfer.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable

import pycurl

from tamias.fetch.handle import READ_BYTES, connect_to
from tamias.fetch.options import HttpOptions
from tamias.fetch.spool import Spool, disk_error
from tamias.fetch.verdict import TransferTrouble
from tamias.model.capture import Body
from tamias.model.url import host

_UNCOUNTED_BYTES = 12 * READ_BYTES
"""Curl may decode this much before it says how much came over the wire (ten reads and a rest)."""
_DISCARDED_BYTES = 64 * 1024
"""The body of an answer that is no success is read this far, to keep the connection."""
_FREE_PIECES = 100_000
_LEAST_PIECE = 64
"""Bytes of a body's pieces on average, beyond the free ones: smaller ones cost us more than their sender."""
_END = 0


class Transfer(ABC):
    """A curl handle and what it has seen of the current answer, whatever the protocol."""

    is_query = False
    """Whether the answer is computed before its first byte; set before `ask`."""

    def __init__(
        self, curl: pycurl.Curl, options: HttpOptions, forbidden: Callable[[str], str | None]
    ) -> None:
        self._options = options
        self._forbidden = forbidden
        self._curl = curl
        self._spool: Spool | None = None
        self._most_bytes = options.max_bytes
        self._most_name = "max_bytes"
        self._curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self._curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        self._curl.setopt(pycurl.XFERINFOFUNCTION, self._take_progress)
        self._curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.clear()

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
        if self._spool is not None:
            self._spool.discard()
            self._spool = None

    def _begin(self, now: float, seconds: float) -> None:
        """Starts the clock for a transfer that may take so many seconds."""
        self._begun = now
        self._ends = now + seconds
        if self._options.address_of is not None:
            self._curl.setopt(pycurl.CONNECT_TO, connect_to(self._options, self.url))

    def _end(self) -> None:
        """Takes stock. Raises `DiskFull` or `OSError` when the body could not be spooled."""
        if self._disk_error is not None:
            raise disk_error(self._disk_error, self._options.spool_dir) from self._disk_error
        self._wire_bytes = self._curl.getinfo(pycurl.SIZE_DOWNLOAD_T)
        if self.cut is None and self._is_inflated(self._wire_bytes):
            self._cut_at_ratio()

    def close(self) -> None:
        """Frees the handle."""
        self.clear()
        self._curl.close()

    @property
    def wire_bytes(self) -> int:
        """What came over the wire: headers, and the body as it was coded."""
        return self._header_bytes + self._wire_bytes

    @property
    def is_silent(self) -> bool:
        """Whether not one byte of an answer came."""
        return self._header_bytes == 0

    @property
    def is_reused(self) -> bool:
        """Whether the connection had brought another answer before."""
        return bool(self._curl.getinfo(pycurl.NUM_CONNECTS) == 0)

    @property
    def address(self) -> str:
        """The IP address of the peer."""
        return str(self._curl.getinfo(pycurl.PRIMARY_IP))

    def body(self) -> Body:
        """The complete body of a success. Its spool file, if any, is the caller's from here on."""
        assert self._spool is not None
        try:
            return self._spool.body()
        except OSError as error:
            raise disk_error(error, self._options.spool_dir) from error

    def trouble(self, code: int, message: str) -> TransferTrouble:
        """What is known of the error that curl ended with."""
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
            name = "query_timeout" if self.is_query else "first_byte_timeout"
            most = options.query_timeout if self.is_query else options.first_byte_timeout
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
        """One line of the protocol's own talk."""

    def _open_spool(self) -> None:
        self._spool = Spool(self._options.spool_dir, self._options.memory_bytes)

    def _take_body(self, chunk: bytes) -> int | None:
        self._decoded_bytes += len(chunk)
        self._pieces += 1
        if self._pieces > _FREE_PIECES and self._decoded_bytes < _LEAST_PIECE * self._pieces:
            return self._cut_off(f"body in pieces of less than {_LEAST_PIECE} bytes on average")
        if self._spool is None:
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
        reason = self._forbidden(address)
        if reason is not None:
            self.refusal = reason
            return int(pycurl.SOCKET_BAD)
        opened = socket.socket(peer.family, peer.socktype, peer.protocol)
        self._lend(opened)
        return opened

    @abstractmethod
    def _lend(self, opened: socket.socket) -> None:
        """Closes the socket once curl has made its own duplicate, which is when the callback returns."""
