"""One reusable curl handle: asks for one address at a time and judges the answer while it arrives.

Curl calls back for every header line and body chunk; a callback that returns 0 ends the transfer.
"""

import asyncio
import errno
import re
import socket
from collections.abc import Callable, Sequence

import pycurl

from tamias.fetch.handle import READ_BYTES, configured
from tamias.fetch.multi import Multi
from tamias.fetch.options import HttpOptions
from tamias.fetch.spool import Spool
from tamias.fetch.verdict import Trouble
from tamias.model.capture import Body
from tamias.model.errors import DiskFull
from tamias.model.url import host

_UNCOUNTED_BYTES = 12 * READ_BYTES
"""Curl may decode this much before it says how much came over the wire (ten reads and a rest)."""
_DISCARDED_BYTES = 64 * 1024
"""The body of an answer that is no success is read this far, to keep the connection, and thrown away."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_STATUS_LINE = re.compile(rb"HTTP/[0-9.]+[ \t]+([0-9]{3})(?![^ \t\r\n])")
_BLANK = " \t\r\n"
_END = 0


class Transfer:
    """A curl handle and what it has seen of the current answer."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        self._options = options
        self._forbidden = forbidden
        self._curl = configured(options)
        self._spool: Spool | None = None
        self._curl.setopt(pycurl.HEADERFUNCTION, self._take_header)
        self._curl.setopt(pycurl.WRITEFUNCTION, self._take_body)
        self._curl.setopt(pycurl.XFERINFOFUNCTION, self._take_progress)
        self._curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        self.clear()

    def clear(self) -> None:
        """Forgets the last answer, its body included."""
        self.url = ""
        self.status = 0
        self.answered = False
        """Whether all headers of the final answer have arrived."""
        self.cut: str | None = None
        """The limit at which we ended the transfer ourselves."""
        self.refusal: str | None = None
        """Why an address was not connected to."""
        self._lines: list[bytes] = []
        self._header_bytes = self._decoded_bytes = self._wire_bytes = 0
        self._peer = ""
        self._disk_error: OSError | None = None
        self._window: tuple[float, int] | None = None
        if self._spool is not None:
            self._spool.discard()
            self._spool = None

    async def perform(
        self, multi: Multi, url: str, headers: Sequence[bytes], seconds: float
    ) -> tuple[int, str]:
        """One request and its answer, within so many seconds: the code and message of `Multi.perform`.

        Raises `DiskFull` or `OSError` when the body cannot be spooled.
        """
        self.clear()
        self.url = url
        self._curl.setopt(pycurl.URL, url)
        self._curl.setopt(pycurl.HTTPHEADER, headers)
        self._begun = asyncio.get_running_loop().time()
        self._ends = self._begun + seconds
        ending = await multi.perform(self._curl, self._overdue)
        if self._disk_error is not None:
            self._raise_disk_error(self._disk_error)
        self._wire_bytes = self._curl.getinfo(pycurl.SIZE_DOWNLOAD_T)
        if self.cut is None and self._is_inflated(self._wire_bytes):
            self._cut_at_ratio()
        return ending

    def close(self) -> None:
        """Frees the handle."""
        self.clear()
        self._curl.close()

    @property
    def wire_bytes(self) -> int:
        """What came over the wire: headers, and the body as it was coded."""
        return self._header_bytes + self._wire_bytes

    @property
    def address(self) -> str:
        """The IP address of the peer."""
        return str(self._curl.getinfo(pycurl.PRIMARY_IP))

    def headers(self) -> tuple[tuple[str, str], ...]:
        """The headers as they came, in order."""
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

    def body(self) -> Body:
        """The complete body of a success. Its spool file, if any, is the caller's from here on."""
        assert self._spool is not None
        try:
            return self._spool.body()
        except OSError as error:
            self._raise_disk_error(error)
            raise

    def trouble(self, code: int, message: str) -> Trouble:
        """What is known of the error that curl ended with."""
        return Trouble(
            url=self.url,
            code=code,
            message=message,
            errno=self._curl.getinfo(pycurl.OS_ERRNO),
            peer=self._peer or host(self.url),
        )

    def _overdue(self, now: float) -> str | None:
        options = self._options
        if now >= self._ends:
            return f"not complete within {options.total_timeout:g} s (total_timeout)"
        if self._header_bytes == 0:
            late = now - self._begun >= options.first_byte_timeout
            return f"no answer within {options.first_byte_timeout:g} s (first_byte_timeout)" if late else None
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
        if self.answered:
            return None  # a trailer: counted, not kept
        if self.status == 0:
            return self._take_status(line)
        if line.strip(b"\r\n"):
            self._lines.append(line)
            return None
        return self._end_headers()

    def _take_status(self, line: bytes) -> int | None:
        found = _STATUS_LINE.match(line)
        if found is None:
            return self._cut_off(f"the answer is not HTTP: status line {line[:80]!r}")
        self.status = int(found[1])
        return None

    def _end_headers(self) -> int | None:
        if self.status < 200:  # an interim response: the answer is still to come
            self.status = 0
            self._lines.clear()
            return None
        self.answered = True
        if self.status >= 300:
            return None
        if self._told_length() > self._options.max_bytes:
            return self._cut_off(f"body larger than max_bytes ({self._options.max_bytes})")
        self._spool = Spool(self._options.spool_dir, self._options.memory_bytes)
        return None

    def _told_length(self) -> int:
        for line in self._lines:
            if line[:15].lower() == b"content-length:":
                digits = line[15:35].strip()
                return int(digits) if digits.isdigit() else 0
        return 0

    def _take_body(self, chunk: bytes) -> int | None:
        self._decoded_bytes += len(chunk)
        if self._spool is None:
            return None if self._decoded_bytes <= _DISCARDED_BYTES else _END
        if self._decoded_bytes > self._options.max_bytes:
            return self._cut_off(f"body larger than max_bytes ({self._options.max_bytes})")
        if self._is_inflated(self._wire_bytes + _UNCOUNTED_BYTES):
            return self._cut_at_ratio()
        try:
            self._spool.write(chunk)
        except OSError as error:
            self._disk_error = error
            return _END
        return None

    def _take_progress(self, _total: int, wire_bytes: int, _upload_total: int, _uploaded: int) -> None:
        self._wire_bytes = wire_bytes

    def _is_inflated(self, wire_bytes: int) -> bool:
        decoded = self._decoded_bytes
        return decoded > self._options.ratio_floor and decoded > self._options.max_ratio * wire_bytes

    def _cut_at_ratio(self) -> int:
        return self._cut_off(
            f"body decodes to more than {self._options.max_ratio} times its size (max_ratio) "
            f"after {self._options.ratio_floor} bytes"
        )

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
        asyncio.get_running_loop().call_soon(opened.close)  # curl has its own duplicate by then
        return opened

    def _raise_disk_error(self, error: OSError) -> None:
        if error.errno in _NO_ROOM:
            raise DiskFull(f"no room for a body in {self._options.spool_dir} (spool_dir)") from error
        raise error
