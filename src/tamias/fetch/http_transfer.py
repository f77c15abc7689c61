"""One HTTP request and its answer, headers as they came."""

import asyncio
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pycurl
from zstandard import ZstdDecompressor, ZstdError

from tamias.fetch.handle import http_handle
from tamias.fetch.multi import Multi
from tamias.fetch.options import HttpOptions
from tamias.fetch.transfer import Transfer

_STATUS_LINE = re.compile(rb"HTTP/[0-9.]+[ \t]+([0-9]{3})(?![^ \t\r\n])")
_BLANK = " \t\r\n"
ZSTD = "zstd"
_MOST_WINDOW = 8 << 20
"""Of memory that a decoder must have; RFC 9659 allows no more for this coding."""
_CODED_SLICE = 256
"""Bytes that are decoded before the limits are looked at: some 8 MiB at most, for a block is 128 KiB."""


class HttpTransfer(Transfer):
    """A handle for http and https."""

    as_coded = False
    """Whether the body is decoded by us, from zstd; set before `ask`."""
    keeps_errors = False
    """Whether the body of an error or a redirect is kept; set before `ask`."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        super().__init__(http_handle(options), options, forbidden)

    def clear(self) -> None:
        """Forgets the last answer, its body included."""
        super().clear()
        self.status = 0
        self.answered = False
        """Whether all headers of the final answer have arrived."""
        self._lines: list[bytes] = []
        self._decoder: Any = None

    async def ask(
        self, multi: Multi, url: str, headers: Sequence[bytes], body: bytes | None, seconds: float
    ) -> tuple[int, str]:
        """One request and its answer, the code and message of `Multi.perform`; with a body it is a POST.

        Raises `DiskFull` or `OSError` when the body cannot be spooled.
        """
        self.clear()
        self.url = url
        self._curl.setopt(pycurl.URL, url)
        self._curl.setopt(pycurl.HTTPHEADER, headers)
        self._curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0 if self.as_coded else 1)
        if body is None:
            self._curl.setopt(pycurl.HTTPGET, 1)
        else:
            self._curl.setopt(pycurl.POSTFIELDS, body)
        self._begin(asyncio.get_running_loop().time(), seconds)
        ending = await multi.perform(self._curl, self._overdue)
        self._end()
        if self._decoder is not None and self.cut is None and not self._decoder.eof:
            self.cut = f"the body ends inside its content coding ({ZSTD})"
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
        if self.status >= 300 and not self.keeps_errors:
            return None
        if self._told_length() > self._options.max_bytes:
            return self._cut_too_large()
        self._open_spool()
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

    def _told_length(self) -> int:
        for line in self._lines:
            if line[:15].lower() == b"content-length:":
                digits = line[15:35].strip()
                return int(digits) if digits.isdigit() else 0
        return 0
