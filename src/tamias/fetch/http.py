"""Fetches http and https addresses; a redirect is a hop of its own, taken only when it is allowed."""

import asyncio
import os
import re
from collections.abc import Callable

import msgspec
import pycurl

from tamias.fetch.multi import GIVEN_UP, Multi
from tamias.fetch.options import HttpOptions
from tamias.fetch.transfer import Transfer
from tamias.fetch.verdict import PAUSES, REDIRECTS, Verdict, failed, of_status, of_trouble, refused
from tamias.model.capture import Body, Capture, Hop, Request
from tamias.model.errors import UrlError
from tamias.model.outcome import Outcome
from tamias.model.url import resolve
from tamias.protocols import Follow

_WEB = re.compile(r"https?://[^/?#@]+(?:[/?#]|$)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class _Attempt(msgspec.Struct):
    """What has been seen so far of the capture in the making."""

    request: Request
    headers: list[bytes]
    started_at: int
    seconds_left: float
    hops: list[Hop] = msgspec.field(default_factory=list)
    wire_bytes: int = 0

    @property
    def conditional(self) -> bool:
        return self.request.etag is not None or self.request.last_modified is not None


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
        self._forbidden = forbidden
        self._now = now
        self._retry_after = retry_after
        self._multi = Multi(options.connections)
        self._idle: list[Transfer] = []
        self._closed = False
        os.makedirs(options.spool_dir, mode=0o700, exist_ok=True)

    async def fetch(self, request: Request, follow: Follow) -> Capture:
        """As `Fetcher.fetch`. Raises `DiskFull` when there is no room for the body."""
        attempt = _Attempt(request, self._headers(request), self._now(), self._options.total_timeout)
        transfer = self._idle.pop() if self._idle else Transfer(self._options, self._forbidden)
        try:
            verdict = await self._walk(attempt, transfer, follow)
            complete = verdict.outcome is Outcome.OK and 200 <= transfer.status < 300
            body = transfer.body() if complete else None
        finally:
            self._give_back(transfer)
        return self._captured(attempt, verdict, body)

    async def close(self) -> None:
        """Gives up what is under way and closes all connections."""
        self._closed = True
        self._multi.close()
        while self._idle:
            self._idle.pop().close()

    async def _walk(self, attempt: _Attempt, transfer: Transfer, follow: Follow) -> Verdict:
        """Goes from hop to hop until there is a verdict; after an OK the transfer holds the body."""
        url, seen = attempt.request.url, {attempt.request.url}
        while True:
            if not (url.isascii() and _WEB.match(url)):
                return refused(f"not an http or https address without a user name: {url}")
            verdict = await self._ask(attempt, transfer, url)
            if verdict is not None:
                return verdict
            step = self._next_step(attempt, seen)
            if isinstance(step, Verdict):
                return step
            stop = await follow(step)
            if stop is not None:
                return Verdict(stop.outcome, stop.reason)
            seen.add(step)
            url = step

    async def _ask(self, attempt: _Attempt, transfer: Transfer, url: str) -> Verdict | None:
        """One hop. None when it answers with a redirect."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        code, message = await transfer.perform(self._multi, url, attempt.headers, attempt.seconds_left)
        attempt.seconds_left -= loop.time() - begun
        attempt.wire_bytes += transfer.wire_bytes
        if transfer.answered:
            attempt.hops.append(_hop(transfer))
            if transfer.status in REDIRECTS:
                return None
        return self._judge(attempt, transfer, code, message)

    def _judge(self, attempt: _Attempt, transfer: Transfer, code: int, message: str) -> Verdict:
        if transfer.answered and not 200 <= transfer.status < 300:
            # The status says it all, whatever became of the error page behind it.
            return of_status(transfer.status, conditional=attempt.conditional)
        if transfer.cut is not None:
            return failed(transfer.cut)
        if code == pycurl.E_OK:
            if not transfer.answered:
                return failed("connection closed before the end of the headers", retry=True)
            return of_status(transfer.status, conditional=attempt.conditional)
        if code == GIVEN_UP:
            return failed(message, retry=True)
        if transfer.refusal is not None and code == pycurl.E_COULDNT_CONNECT:
            return refused(transfer.refusal)
        return of_trouble(transfer.trouble(code, message), self._options.connect_timeout)

    def _next_step(self, attempt: _Attempt, seen: set[str]) -> str | Verdict:
        """Where the last hop's redirect leads, or why it leads nowhere."""
        hop = attempt.hops[-1]
        location = hop.header("location")
        if location is None:
            return failed(f"redirect ({hop.status}) without a Location")
        try:
            target = resolve(_utf8(location), hop.url)
        except UrlError as error:
            return failed(f"redirect to an address that is no URL: {error}")
        attempt.hops[-1] = msgspec.structs.replace(hop, location=target)
        if not target.startswith(("http:", "https:")):
            return refused(f"redirect to an address that is neither http nor https: {target}")
        if target in seen:
            return failed(f"redirect loop at {target}")
        if len(attempt.hops) > self._options.max_redirects:
            return failed(f"more redirects than max_redirects ({self._options.max_redirects})")
        return target

    def _headers(self, request: Request) -> list[bytes]:
        accept = self._options.accept if request.accept is None else request.accept
        asked = (
            ("Accept", accept),
            ("If-None-Match", request.etag),
            ("If-Modified-Since", request.last_modified),
        )
        return [
            f"{name}: {value}".encode("latin-1", "replace")
            for name, value in asked
            if value and not _CONTROL.search(value)
        ]

    def _captured(self, attempt: _Attempt, verdict: Verdict, body: Body | None) -> Capture:
        ended_at = self._now()
        last = attempt.hops[-1] if attempt.hops else None
        pause = None
        if last is not None and last.status in PAUSES:
            pause = self._retry_after(last.header("retry-after"), ended_at)
        return Capture(
            url=attempt.request.url,
            started_at=attempt.started_at,
            ended_at=ended_at,
            outcome=verdict.outcome,
            reason=verdict.reason,
            hops=tuple(attempt.hops),
            body=body,
            retry=verdict.retry,
            retry_after_ms=pause,
            wire_bytes=attempt.wire_bytes,
        )

    def _give_back(self, transfer: Transfer) -> None:
        if self._closed:
            transfer.close()
        else:
            transfer.clear()
            self._idle.append(transfer)


def _hop(transfer: Transfer) -> Hop:
    return Hop(url=transfer.url, status=transfer.status, headers=transfer.headers(), address=transfer.address)


def _utf8(value: str) -> str:
    """A header value read as UTF-8, which servers put there unescaped; as Latin-1 where it is not."""
    raw = value.encode("latin-1")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return value
