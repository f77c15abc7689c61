"""Fetches http and https addresses; a redirect is a hop of its own, taken only when it is allowed."""

import asyncio
import hashlib
import os
import re
import socket
from collections.abc import Callable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import pycurl
from zstandard import ZstdDecompressor, ZstdError

from tamias.content.formats import accept_for
from tamias.fetch.credentials import WITHHELD, HttpOptions, SourceCredential
from tamias.fetch.multi import (
    GIVEN_UP,
    PAUSES,
    REDIRECTS,
    TURNS_TO_GET,
    UNACCEPTABLE,
    Multi,
    NameService,
    Verdict,
    failed,
    http_handle,
    is_literal,
    of_status,
    of_trouble,
    refused,
)
from tamias.fetch.transfer import Transfer
from tamias.model.capture import Body, Capture, Hop, Outcome, Request, Stop, Unreached
from tamias.model.cut import PRIVATE
from tamias.model.errors import UrlError
from tamias.model.url import host, resolve, without_password
from tamias.protocols import Follow

_WEB = re.compile(r"https?://[^/?#@]+(?:[/?#]|$)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
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
_CHALLENGES = frozenset({403, 405, 429, 503})
"""Answers that may be a challenge to the visitor, which only the body tells."""


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


class HttpFetcher:
    """The fetcher of the web. One for each event loop; ends with `close`."""

    schemes = frozenset({"http", "https"})

    def __init__(
        self,
        options: HttpOptions,
        *,
        forbidden: Callable[[str], str | None],
        now: Callable[[], int],
        retry_after: Callable[[str | None, int], int | None],
    ) -> None:
        """`forbidden` gives the reason not to connect to an IP address; `now` is in milliseconds UTC.

        `retry_after` reads the header of that name: value and time now to milliseconds.
        """
        self._options = options
        self._credentials = options.credentials if options.credentials.hosts else None
        self._forbidden = forbidden
        self._now = now
        self._retry_after = retry_after
        self._multi = Multi(options.connections)
        self._names = NameService()
        self._idle: list[HttpTransfer] = []
        self._closed = False
        os.makedirs(options.spool_dir, mode=0o700, exist_ok=True)

    async def fetch(self, request: Request, follow: Follow) -> Capture:
        """Fetch as `Fetcher.fetch` does. Raises `DiskFull` when there is no room for the body.

        A 406 to our own Accept is asked again once for anything, an answer in zstd, which curl cannot decode,
        is asked for again to be decoded by us, and a challenge (Digest authentication) is answered; each as a
        hop of its own, if `follow` agrees. So is a request for a signature.
        """
        transfer = self._idle.pop() if self._idle else HttpTransfer(self._options, self._forbidden)
        transfer.begin(request, self._now())
        try:
            verdict = await self._walk(transfer, follow)
            complete = verdict.outcome is Outcome.OK and 200 <= transfer.status < 300
            body = transfer.body() if complete else None
            error_body = None if complete else _error_body(transfer)
            ended_at = self._now()
            pause = self._pause(transfer, ended_at)
            return transfer.captured(verdict, body, ended_at, pause, error_body)
        finally:
            self._give_back(transfer)

    async def close(self) -> None:
        """Gives up what is under way and closes all connections."""
        self._closed = True
        self._multi.close()
        self._names.close()
        while self._idle:
            self._idle.pop().close()

    async def _walk(self, transfer: HttpTransfer, follow: Follow) -> Verdict:
        """Goes from hop to hop until there is a verdict; after an OK the transfer holds the body."""
        url, seen = transfer.request.url, {transfer.request.url}
        while True:
            if not (url.isascii() and _WEB.match(url)):
                shown = without_password(url)
                return refused(f"not an http or https address without a user name: {shown}")
            verdict = await self._ask(transfer, url)
            if verdict is not None:
                return verdict
            step = self._next_step(transfer, seen)
            if isinstance(step, Verdict):
                return step
            stop = await follow(step)
            if stop is not None:
                return _stopped(transfer.hops[-1], stop)
            seen.add(step)
            url = step

    async def _ask(self, transfer: HttpTransfer, url: str) -> Verdict | None:
        """Make one hop; return None if another follows."""
        credential = self._credentials.covering(url) if self._credentials else None
        if self._options.proxy and (verdict := await self._check_target(transfer, url)) is not None:
            return verdict
        signer = self._options.signer
        headers = _headers(transfer, credential, url)
        if signer is not None:
            headers += signer.headers(url)
        code, message = await transfer.ask(self._multi, url, headers)
        if transfer.answered:
            transfer.hops.append(_hop(transfer, credential))
            if _leads_on(transfer.hops[-1]) or transfer.may_ask_for_anything:
                return None
            if code == pycurl.E_BAD_CONTENT_ENCODING and transfer.may_ask_as_coded:
                return None
            if credential is not None and transfer.may_answer(credential):
                return None
            if signer is not None and signer.take_challenge(transfer.hops[-1]):
                return None
        if code == pycurl.E_COULDNT_RESOLVE_HOST:
            return await self._names.verdict(host(url))
        return self._judge(transfer, code, message)

    async def _check_target(self, transfer: HttpTransfer, url: str) -> Verdict | None:
        """Check the address that a proxy is to connect to, which nobody else can refuse."""
        name, address_of = host(url).strip("[]"), self._options.address_of
        name = (address_of(url) if address_of else self._options.resolve.get(name)) or name
        transfer.target = None
        if self._options.proxy_resolves and not is_literal(name):
            return None
        addresses = await self._names.addresses(name)
        for address in addresses:
            reason = self._forbidden(address)
            if reason is not None:
                return refused(reason, PRIVATE)
        if not addresses:
            return await self._names.verdict(name)
        transfer.target = addresses[0]
        return None

    def _judge(self, transfer: HttpTransfer, code: int, message: str) -> Verdict:
        if transfer.answered and not 200 <= transfer.status < 300:
            # The status says it all, whatever became of the error page behind it.
            return of_status(transfer.status, conditional=transfer.is_conditional)
        if transfer.cut is not None:
            return failed(transfer.cut, retry=transfer.status == 0 and transfer.is_reused)
        if code == pycurl.E_OK:
            if not transfer.answered:
                return failed("connection closed before the end of the headers", retry=True)
            return of_status(transfer.status, conditional=transfer.is_conditional)
        if self._options.proxy and code in (pycurl.E_COULDNT_CONNECT, pycurl.E_COULDNT_RESOLVE_PROXY):
            reason = f"no connection to the proxy {self._options.proxy} (fetch.proxy)"
            return failed(reason, retry=True, unreached=Unreached.UNKNOWN)
        if code == GIVEN_UP:
            silent = Unreached.SILENT if transfer.is_silent else None
            return failed(message, retry=True, unreached=silent)
        if transfer.refusal is not None and code == pycurl.E_COULDNT_CONNECT:
            return refused(transfer.refusal, PRIVATE)
        return of_trouble(transfer.trouble(code, message), self._options.connect_timeout)

    def _next_step(self, transfer: HttpTransfer, seen: set[str]) -> str | Verdict:
        """Return the target of the last hop, or the verdict if it has none."""
        hop = transfer.hops[-1]
        if hop.status == UNACCEPTABLE:
            transfer.accept = ANYTHING
            return hop.url
        if not _leads_on(hop):
            transfer.as_coded |= transfer.may_ask_as_coded
            return hop.url
        location = hop.header("location")
        if location is None:
            return failed(f"redirect ({hop.status}) without a Location")
        if location == WITHHELD:
            return failed(f"redirect ({hop.status}) to an address that contains a credential; not followed")
        try:
            target = resolve(_utf8(location), hop.url)
        except UrlError as error:
            return failed(f"redirect to an address that is not a URL: {error}")
        transfer.leads_to(target)
        if not target.startswith(("http:", "https:")):
            return refused(f"redirect to an address that is neither http nor https: {target}")
        if hop.status in TURNS_TO_GET and transfer.posted is not None:
            transfer.posted = None
            seen.clear()  # a GET where the POST went is no loop
        if target in seen:
            return failed(f"redirect loop at {target}")
        if len(transfer.hops) > self._options.max_redirects:
            return failed(f"more redirects than max_redirects ({self._options.max_redirects})")
        return target

    def _pause(self, transfer: HttpTransfer, now: int) -> int | None:
        last = transfer.hops[-1] if transfer.hops else None
        if last is None or last.status not in PAUSES:
            return None
        return self._retry_after(last.header("retry-after"), now)

    def _give_back(self, transfer: HttpTransfer) -> None:
        if self._closed:
            transfer.close()
        else:
            transfer.clear()
            self._idle.append(transfer)


def _headers(transfer: HttpTransfer, credential: SourceCredential | None, url: str) -> list[bytes]:
    request = transfer.request
    lines = [*_accept_headers(transfer.accept, request.etag, request.last_modified)]
    if credential is not None:
        lines += credential.headers_for(url, transfer.posted)
    return lines if transfer.posted is None else [*lines, *_body_headers(request)]


@lru_cache(maxsize=64)  # nearly all requests have the same
def _accept_headers(accept: str, etag: str | None, last_modified: str | None) -> tuple[bytes, ...]:
    headers = (("Accept", accept), ("If-None-Match", etag), ("If-Modified-Since", last_modified))
    # A validator with a line break would let a server write headers of our next request.
    return tuple(
        [
            f"{name}: {value}".encode("latin-1", "replace")
            for name, value in headers
            if value and not _CONTROL.search(value)
        ]
    )


def _body_headers(request: Request) -> list[bytes]:
    """Curl's own type for a body and its waiting for a 100 are switched off by a name without a value."""
    content_type = request.content_type
    if content_type is None or _CONTROL.search(content_type):
        return [b"Content-Type:", b"Expect:"]
    return [f"Content-Type: {content_type}".encode("latin-1", "replace"), b"Expect:"]


def _stopped(last: Hop, stop: Stop) -> Verdict:
    """Return the verdict on an attempt that may not go on; an error stays what it is."""
    if last.status >= HTTPStatus.BAD_REQUEST:
        return of_status(last.status, conditional=False)
    if not _leads_on(last):
        return failed(
            f"content coding {last.header('content-encoding')} needs a second request: {stop.reason}"
        )
    return Verdict(stop.outcome, stop.reason, cut=stop.cut)


def _error_body(transfer: HttpTransfer) -> Body | None:
    """Return the body of an error or a redirect, if it is wanted; its beginning if it may be a challenge."""
    if transfer.request.keeps_errors and transfer.is_whole and 300 <= transfer.status != 304:
        return transfer.body()
    data = bytes(transfer.discarded)
    if not data or transfer.status not in _CHALLENGES:
        return None
    return Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)


def _leads_on(hop: Hop) -> bool:
    """Tell if a response is a redirect; a 300 is one if it names a preferred choice."""
    return hop.status in REDIRECTS or (
        hop.status == HTTPStatus.MULTIPLE_CHOICES and hop.header("location") is not None
    )


_PROTOCOLS = {
    pycurl.CURL_HTTP_VERSION_1_0: "http/1.0",
    pycurl.CURL_HTTP_VERSION_1_1: "http/1.1",
    pycurl.CURL_HTTP_VERSION_2_0: "h2",
    pycurl.CURL_HTTP_VERSION_3: "h3",
}
"""As WARC names them."""


def _hop(transfer: HttpTransfer, credential: SourceCredential | None) -> Hop:
    headers = transfer.headers()
    if credential is not None:
        headers = credential.redacted(headers)
    return Hop(
        url=transfer.url,
        status=transfer.status,
        headers=headers,
        address=transfer.address,
        protocol=_PROTOCOLS.get(transfer.http_version, ""),
    )


def _utf8(value: str) -> str:
    """A header value read as UTF-8, which servers put there unescaped; as Latin-1 where it is not."""
    raw = value.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return value
