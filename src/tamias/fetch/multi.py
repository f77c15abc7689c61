"""Drive libcurl on the running asyncio loop, resolve names, and judge how a transfer ended.

Curl's sockets sit in an epoll of their own, and the loop watches that one descriptor. Handles have the
options that all requests of a protocol have.
"""

import asyncio
import errno
import os
import select
import socket
import ssl
import struct
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from time import monotonic
from typing import NamedTuple

import pycurl

from tamias.fetch.credentials import HttpOptions
from tamias.model.capture import Outcome, Unreached
from tamias.model.url import host

READ_BYTES = 16 * 1024
"""Of one read from a socket; curl hands over no larger chunks anyway."""
_DNS_CACHE_SECONDS = 300
_SUPPRESS_CONNECT_HEADERS = 265  # curl's number: pycurl has no name for it


def http_handle(options: HttpOptions) -> pycurl.Curl:
    """A handle that sends no cookie, referer or password."""
    return new_handle(
        options,
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (
            pycurl.HTTP_VERSION,
            pycurl.CURL_HTTP_VERSION_2TLS if options.http2 else pycurl.CURL_HTTP_VERSION_1_1,
        ),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.USERAGENT, options.user_agent),
        # All codings that this curl can decode.
        (pycurl.ACCEPT_ENCODING, ""),
        (pycurl.SSL_VERIFYPEER, int(options.verify_tls)),
        (pycurl.SSL_VERIFYHOST, 2 if options.verify_tls else 0),
        *(_proxy_options(options) if options.proxy else ()),
    )


def _proxy_options(options: HttpOptions) -> Iterable[tuple[int, object]]:
    """The options of a handle that connects to hosts through a proxy, plain http included."""
    address = options.proxy.replace("socks5:", "socks5h:") if options.proxy_resolves else options.proxy
    yield pycurl.PROXY, address
    yield pycurl.HTTPPROXYTUNNEL, 1
    yield _SUPPRESS_CONNECT_HEADERS, 1
    if options.proxy_login:
        yield pycurl.PROXYUSERPWD, options.proxy_login


def new_handle(options: HttpOptions, *special: tuple[int, object]) -> pycurl.Curl:
    """A handle that asks no proxy and no netrc file."""
    common: Iterable[tuple[int, object]] = (
        (pycurl.NOSIGNAL, 1),
        (pycurl.NOPROGRESS, 0),
        (pycurl.PROXY, ""),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        # We normalise URLs ourselves; curl must not ask for another one than the frontier knows.
        (pycurl.PATH_AS_IS, 1),
        (pycurl.BUFFERSIZE, READ_BYTES),
        (pycurl.CONNECTTIMEOUT_MS, int(options.connect_timeout * 1000)),
        (pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_SECONDS),
        (pycurl.CONNECT_TO, connect_to(options)),
    )
    curl = pycurl.Curl()
    for option, value in (*common, *special):
        curl.setopt(option, value)
    trusted = options.ca_file or ssl.get_default_verify_paths().cafile
    if trusted is not None:
        curl.setopt(pycurl.CAINFO, trusted)
    return curl


def connect_to(options: HttpOptions, url: str | None = None) -> list[str]:
    """Return the addresses that curl is to connect to, also for a URL where it matters which."""
    pairs = options.resolve
    if options.address_of is not None and url is not None:
        pairs = {**pairs, host(url): options.address_of(url)}
    return [f"{bracketed(name)}::{bracketed(address)}:" for name, address in pairs.items()]


def bracketed(name: str) -> str:
    """Return the name of a host as curl takes it, an IPv6 address in brackets."""
    return f"[{name}]" if ":" in name and not name.startswith("[") else name


REDIRECTS = frozenset({301, 302, 303, 307, 308})
TURNS_TO_GET = frozenset({301, 302, 303})
"""Redirects after which a POST is a GET without a body, as browsers have it."""
UNACCEPTABLE = 406
PAUSES = frozenset({429, 503})
"""Statuses whose Retry-After is listened to."""

_GONE = frozenset({404, 410})
_RETRIED = frozenset({408, 425, 429})
_NEVER_BETTER = frozenset({501, 505})
"""What a server cannot do it will not be able to do in a minute."""
_NAMES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}

_WEIRD_SERVER_REPLY = 8  # curl's codes that pycurl has no name for
_TOO_LARGE = 100
_TROUBLES = {
    pycurl.E_COULDNT_RESOLVE_HOST: ("name does not resolve: {host}", True),
    pycurl.E_OPERATION_TIMEDOUT: (
        "no connection to {peer} within {connect_timeout:g} s (connect_timeout)",
        True,
    ),
    pycurl.E_SSL_CONNECT_ERROR: ("TLS with {peer} failed: {message}", True),
    pycurl.E_PEER_FAILED_VERIFICATION: ("TLS certificate of {host} refused: {message}", False),
    pycurl.E_GOT_NOTHING: ("{peer} closed the connection without an answer", True),
    pycurl.E_PARTIAL_FILE: ("body cut short: {message}", True),
    pycurl.E_BAD_CONTENT_ENCODING: (
        "the body cannot be decoded as its Content-Encoding says: {message}",
        False,
    ),
    pycurl.E_UNSUPPORTED_PROTOCOL: ("the answer is not {protocol}: {message}", False),
    _WEIRD_SERVER_REPLY: ("the answer is not {protocol}: {message}", False),
    _TOO_LARGE: ("the answer's headers are too large: {message}", False),
    pycurl.E_URL_MALFORMAT: ("address cannot be fetched: {message}", False),
}
_NO_ANSWER = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, _WEIRD_SERVER_REPLY})
"""On a connection that was used before, this may be the end of an answer that was longer than declared."""
_UNREACHED = {
    pycurl.E_COULDNT_RESOLVE_HOST: Unreached.UNKNOWN,
    pycurl.E_OPERATION_TIMEDOUT: Unreached.UNKNOWN,
    pycurl.E_SSL_CONNECT_ERROR: Unreached.DEFINITE,
    pycurl.E_PEER_FAILED_VERIFICATION: Unreached.DEFINITE,
}
_OTHER_TROUBLE = ("connection to {peer} failed: {message}", True)


class Verdict(NamedTuple):
    """The end of an attempt."""

    outcome: Outcome
    reason: str
    retry: bool = False
    cut: int = 0
    """What kept us from asking: bits of `tamias.model.cut`."""
    unreached: Unreached | None = None


class TransferTrouble(NamedTuple):
    """The details of a transfer that curl gave up."""

    url: str
    code: int
    message: str
    errno: int
    peer: str
    """`address:port` last tried, or the host's name when it did not come to that."""
    reused: bool = False
    """Whether the connection had brought another answer before."""


def failed(reason: str, *, retry: bool = False, unreached: Unreached | None = None) -> Verdict:
    """The attempt failed for this reason."""
    return Verdict(Outcome.FAILED, reason, retry, unreached=unreached)


def refused(reason: str, cut: int = 0) -> Verdict:
    """A rule of ours forbids the attempt."""
    return Verdict(Outcome.REFUSED, reason, cut=cut)


def of_status(status: int, *, conditional: bool) -> Verdict:
    """The verdict on a complete answer that is no redirect to follow."""
    name = _NAMES.get(status, str(status))
    if status == HTTPStatus.PARTIAL_CONTENT:
        return failed(f"{name}, though no range was requested")
    if 200 <= status < 300:
        return Verdict(Outcome.OK, name)
    if status == HTTPStatus.NOT_MODIFIED:
        return (
            Verdict(Outcome.UNCHANGED, name)
            if conditional
            else failed(f"{name}, though nothing was compared")
        )
    if status in _GONE:
        return Verdict(Outcome.GONE, name)
    return failed(name, retry=status in _RETRIED or (500 <= status < 600 and status not in _NEVER_BETTER))


def of_trouble(trouble: TransferTrouble, connect_timeout: float) -> Verdict:
    """The verdict on a transfer that ended with an error of curl's."""
    if trouble.code == pycurl.E_COULDNT_CONNECT:
        refusal = trouble.errno == errno.ECONNREFUSED
        unreached = Unreached.DEFINITE if refusal else Unreached.UNKNOWN
        return failed(_unconnected(trouble), retry=True, unreached=unreached)
    words, retry = _TROUBLES.get(trouble.code, _OTHER_TROUBLE)
    reason = words.format(
        host=host(trouble.url),
        protocol="FTP" if trouble.url.startswith("ftp") else "HTTP",
        peer=trouble.peer,
        message=trouble.message or f"curl error {trouble.code}",
        connect_timeout=connect_timeout,
    )
    retry = retry or (trouble.reused and trouble.code in _NO_ANSWER)
    return failed(reason, retry=retry, unreached=_UNREACHED.get(trouble.code))


def _unconnected(trouble: TransferTrouble) -> str:
    if trouble.errno == errno.ECONNREFUSED:
        return f"connection refused by {trouble.peer}"
    why = os.strerror(trouble.errno) if trouble.errno else trouble.message
    return f"no connection to {trouble.peer}: {why}"


ADDRESS_SECONDS = 3600.0
"""So long a host keeps its address."""
_LONGEST_SECONDS = 5.0
_THREADS = 4
_NO_SUCH = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
"""The name service says that there is no such name, or that it has no address; trouble is `EAI_AGAIN`."""


class NameService:
    """Asks the name service itself why a name was not resolved."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "names")

    async def verdict(self, name: str) -> Verdict:
        """Return the verdict on a name that curl could not resolve."""
        asking = asyncio.get_running_loop().run_in_executor(self._threads, _error_of, name)
        try:
            code = await asyncio.wait_for(asking, _LONGEST_SECONDS)
        except TimeoutError:
            code = socket.EAI_AGAIN
        if code in _NO_SUCH:
            return failed(f"name does not resolve: {name}", retry=True, unreached=Unreached.NO_NAME)
        return failed(f"name cannot be resolved now: {name}", retry=True, unreached=Unreached.UNKNOWN)

    async def addresses(self, name: str) -> list[str]:
        """Return the addresses of a name; none if it has none now."""
        asking = asyncio.get_running_loop().run_in_executor(self._threads, _addresses_of, name)
        try:
            return await asyncio.wait_for(asking, _LONGEST_SECONDS)
        except TimeoutError:
            return []

    def close(self) -> None:
        """Does not wait for what is under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _error_of(name: str) -> int:
    """0 if it resolves."""
    try:
        socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return error.errno or socket.EAI_AGAIN
    except (OSError, UnicodeError):
        return socket.EAI_AGAIN
    return 0


def is_literal(name: str) -> bool:
    """Return whether the name of a host is an IP address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _addresses_of(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(each[4][0]) for each in found]


def resolve_name(name: str) -> str:
    """Return an IP address of a host, the same in every process; the name itself where it has none now."""
    return _resolve_name(name, int(monotonic() // ADDRESS_SECONDS))


@lru_cache(maxsize=65536)
def _resolve_name(name: str, _period: int) -> str:
    return min(_addresses_of(name), default=name)


Overdue = Callable[[float], str | None]
"""Asked several times a second, with the loop's time, for the reason to give a transfer up."""

GIVEN_UP = -1
"""In place of a curl code: the transfer was overdue, or the driver was closed."""

_CLOSED = "the fetcher was closed"
_TICK_SECONDS = 0.25
_EVENTS_AT_ONCE = 1024
_RESET = struct.pack("ii", 1, 0)
_WATCHED = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


class Multi:
    """Runs easy handles side by side; belongs to the loop of its first `perform`."""

    def __init__(self, connections: int) -> None:
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._epoll = select.epoll()
        self._sockets: set[int] = set()
        self._running: dict[pycurl.Curl, tuple[asyncio.Future[tuple[int, str]], Overdue]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._sweeper: asyncio.Handle | None = None

    async def perform(self, curl: pycurl.Curl, overdue: Overdue) -> tuple[int, str]:
        """Carries out one transfer: curl's code (0 is success) and message, or `GIVEN_UP` and the reason."""
        if self._epoll.closed:
            return GIVEN_UP, _CLOSED
        loop = self._loop or self._attach()
        done: asyncio.Future[tuple[int, str]] = loop.create_future()
        self._running[curl] = (done, overdue)
        self._multi.add_handle(curl)
        if self._sweeper is None:
            self._sweeper = loop.call_later(_TICK_SECONDS, self._sweep)
        try:
            return await done
        finally:
            if self._running.pop(curl, None) is not None:
                self._drop(curl)

    def close(self) -> None:
        """Gives up every transfer and closes every connection. May be called twice."""
        if self._epoll.closed:
            return
        for curl in list(self._running):
            self._settle(curl, GIVEN_UP, _CLOSED)
        self._multi.close()
        for handle in (self._timer, self._sweeper):
            if handle is not None:
                handle.cancel()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _attach(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._epoll.fileno(), self._advance)
        return self._loop

    def _watch_socket(self, what: int, number: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._sockets.discard(number)
            try:
                self._epoll.unregister(number)
            except OSError:
                return  # already closed, which also took it out of the epoll
        elif number in self._sockets:
            self._epoll.modify(number, _WATCHED[what])
        else:
            self._epoll.register(number, _WATCHED[what])
            self._sockets.add(number)

    def _set_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._loop is None or milliseconds < 0:
            return
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._time_out)
        else:
            self._timer = self._loop.call_later(milliseconds / 1000, self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _advance(self) -> None:
        for number, events in self._epoll.poll(0, _EVENTS_AT_ONCE):
            ready = pycurl.CSELECT_IN if events & _READABLE else 0
            if events & select.EPOLLOUT:
                ready |= pycurl.CSELECT_OUT
            self._multi.socket_action(number, ready)
        self._collect()

    def _collect(self) -> None:
        waiting = 1
        while waiting:
            waiting, succeeded, broken = self._multi.info_read()
            for curl in succeeded:
                self._settle(curl, pycurl.E_OK, "")
            for curl, code, message in broken:
                self._settle(curl, code, message)

    def _settle(self, curl: pycurl.Curl, code: int, message: str) -> None:
        done, _ = self._running.pop(curl)
        if code == GIVEN_UP:
            self._drop(curl)
        else:
            self._multi.remove_handle(curl)
        if not done.done():
            done.set_result((code, message))

    def _drop(self, curl: pycurl.Curl) -> None:
        """End a transfer with a reset: the system must not send what is queued, when others have the host."""
        if (number := curl.getinfo(pycurl.ACTIVESOCKET)) >= 0:
            with suppress(OSError), socket.socket(fileno=os.dup(number)) as line:
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._multi.remove_handle(curl)

    def _sweep(self) -> None:
        assert self._loop is not None
        self._advance()  # what has arrived counts, even if the loop was late to look
        now = self._loop.time()
        for curl, (_, overdue) in list(self._running.items()):
            reason = overdue(now)
            if reason is not None:
                self._settle(curl, GIVEN_UP, reason)
        self._sweeper = self._loop.call_later(_TICK_SECONDS, self._sweep) if self._running else None
