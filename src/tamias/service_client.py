"""The service client: the only way to ask for addresses that the operator set.

These are webhooks and SPARQL servers. There is no lease and no delay, but limits of time and
bytes. Redirects are not followed, as they would take a password elsewhere. Addresses that the Web told us
pass the gate of the crawl instead (`crawl/request/gate.py`).
"""

import asyncio
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import pycurl

from tamias.model.errors import ConfigError, TamiasError

CONNECT_SECONDS = 10
_MOST_HEADERS = 200
_MOST_VALUE = 1000


class NoResponse(TamiasError):
    """The server sent no answer, or only a part of it."""

    retry_can_help = True

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late
        """Whether the time was over."""


class Response(msgspec.Struct, frozen=True):
    """The response of a server."""

    status: int
    headers: dict[str, str]
    """By names in lower case; of several values the last."""
    content: bytes
    """Empty where the body was written elsewhere."""
    is_cut: bool = False
    """Whether there was more than the most that was wanted."""


class Credentials(msgspec.Struct, frozen=True):
    """The credentials for a server: a user and a password, or a token."""

    user: str = ""
    password: str = ""
    token: str = ""
    digest: bool = False
    """How the password is sent."""

    def __repr__(self) -> str:
        return "Credentials(hidden)"


class ServiceClient:
    """A connection that stays open. Not for two threads at once."""

    def __init__(
        self,
        *,
        forbidden: Callable[[str], str | None] | None = None,
        idle_seconds: int = 120,
        proxied: bool = False,
    ) -> None:
        """`forbidden` gives the reason not to connect to an IP address.

        A server may be silent for `idle_seconds`. If `proxied`, proxies of the environment are used.
        """
        self._curl = pycurl.Curl()
        self._forbidden = forbidden
        self._idle_seconds = idle_seconds
        self._proxied = proxied

    def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        seconds: float,
        most: int,
        body: BinaryIO | bytes | None = None,
        size: int | None = None,
        into: BinaryIO | None = None,
        who: Credentials | None = None,
        beat: Callable[[], None] | None = None,
    ) -> Response:
        """Send a request; read at most `most` bytes of the answer, into memory or the file `into`.

        `size` is that of a body that is a file; `beat` is called about once a second, and may raise. Raises
        `NoResponse`.
        """
        memory = BytesIO()
        reply = _Reply(into or memory, most, self._forbidden, beat)
        sent_headers = {**headers, **_token(who)}
        options = [*self._options(method, url, sent_headers, seconds), *reply.options(), *_login(who)]
        if body is not None:
            file = BytesIO(body) if isinstance(body, bytes) else body
            options += _upload(file, len(body) if isinstance(body, bytes) else size or 0)
        try:
            for option, value in options:
                self._curl.setopt(option, value)
            self._curl.perform()
        except pycurl.error as error:
            if reply.raised is not None:
                raise reply.raised from None
            if not reply.is_cut:
                late = error.args[0] == pycurl.E_OPERATION_TIMEDOUT
                raise NoResponse(reply.refusal or str(error.args[1]), late=late) from error
        finally:
            for opened in reply.opened:
                opened.close()
            status: int = self._curl.getinfo(pycurl.RESPONSE_CODE)
            self._curl.reset()  # keeps the connection, and nothing of the request
        return Response(status, reply.headers, memory.getvalue(), reply.is_cut)

    def close(self) -> None:
        """Closes the connection; another request opens another. May be called twice."""
        self._curl.close()
        self._curl = pycurl.Curl()

    def _options(
        self, method: str, url: str, headers: Mapping[str, str], seconds: float
    ) -> Iterator[tuple[int, Any]]:
        yield pycurl.URL, url
        yield pycurl.CUSTOMREQUEST, method
        yield pycurl.NOBODY, int(method == "HEAD")
        yield pycurl.HTTPHEADER, [*(f"{name}: {value}" for name, value in headers.items()), "Expect:"]
        yield pycurl.USERAGENT, "tamias"
        yield pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
        yield pycurl.FOLLOWLOCATION, 0
        yield pycurl.PATH_AS_IS, 1
        if not self._proxied:
            yield pycurl.PROXY, ""
        yield pycurl.NETRC, pycurl.NETRC_IGNORED
        yield pycurl.NOSIGNAL, 1
        yield pycurl.CONNECTTIMEOUT, CONNECT_SECONDS
        yield pycurl.TIMEOUT_MS, max(1, int(seconds * 1000))
        yield pycurl.LOW_SPEED_LIMIT, 1
        yield pycurl.LOW_SPEED_TIME, self._idle_seconds


class _Reply:
    """The part of a reply that has arrived, and errors that callbacks could not raise through C."""

    def __init__(
        self,
        file: BinaryIO,
        most: int,
        forbidden: Callable[[str], str | None] | None,
        beat: Callable[[], None] | None,
    ) -> None:
        self._file = file
        self.headers: dict[str, str] = {}
        self.is_cut = False
        self.refusal: str | None = None
        self.raised: BaseException | None = None
        self.opened: list[socket.socket] = []
        """Curl has duplicates of its own."""
        self._left = most
        self._forbidden = forbidden
        self._beat = beat

    def options(self) -> Iterator[tuple[int, Any]]:
        yield pycurl.HEADERFUNCTION, self._take_header
        yield pycurl.WRITEFUNCTION, self._take_body
        if self._forbidden is not None:
            yield pycurl.OPENSOCKETFUNCTION, self._open
        if self._beat is not None:
            yield pycurl.NOPROGRESS, 0
            yield pycurl.XFERINFOFUNCTION, self._take_time

    def _take_header(self, line: bytes) -> None:
        name, colon, value = line.decode("latin-1").partition(":")
        if line.startswith(b"HTTP/"):
            self.headers.clear()
        elif colon and len(self.headers) < _MOST_HEADERS:
            self.headers[name.strip().lower()] = value.strip()[:_MOST_VALUE]

    def _take_body(self, chunk: bytes) -> int:
        self._file.write(chunk[: self._left])
        self.is_cut = len(chunk) > self._left
        self._left -= min(self._left, len(chunk))
        return 0 if self.is_cut else len(chunk)

    def _take_time(self, *_: int) -> int:
        assert self._beat is not None
        try:
            self._beat()
        except BaseException as error:  # noqa: BLE001 - it must pass through C, and is raised again there
            self.raised = error
        return int(self.raised is not None)

    def _open(self, _purpose: int, peer: Any) -> socket.socket | int:
        """Open the socket after checking the address, which is only known here."""
        self.refusal = self._forbidden(str(peer.addr[0])) if self._forbidden else None
        if self.refusal:
            return int(pycurl.SOCKET_BAD)
        self.opened.append(socket.socket(peer.family, peer.socktype, peer.protocol))
        return self.opened[-1]


def _upload(file: BinaryIO, size: int) -> list[tuple[int, Any]]:
    def seek(offset: int, origin: int) -> int:
        file.seek(offset, origin)
        return int(pycurl.SEEKFUNC_OK)

    file.seek(0)
    return [
        (pycurl.UPLOAD, 1),
        (pycurl.INFILESIZE_LARGE, size),
        (pycurl.READFUNCTION, file.read),
        (pycurl.SEEKFUNCTION, seek),
    ]


def _token(who: Credentials | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {who.token}"} if who and who.token else {}


def _login(who: Credentials | None) -> list[tuple[int, Any]]:
    if who is None or who.token:
        return []
    way = pycurl.HTTPAUTH_DIGEST if who.digest else pycurl.HTTPAUTH_BASIC
    return [(pycurl.HTTPAUTH, way), (pycurl.USERNAME, who.user), (pycurl.PASSWORD, who.password)]


async def addresses_of(name: str, seconds: float) -> list[str]:
    """The IP addresses of a host's name; none where it has none now."""
    try:
        async with asyncio.timeout(seconds):
            found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return []
    return [str(each[4][0]) for each in found]


_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


def secret_text(variable: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return what a variable holds, or the file that the variable of that name with `_FILE` names."""
    text = environ.get(variable)
    if text is None and (path := environ.get(f"{variable}_FILE")):
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the file that {variable}_FILE names cannot be read: {path}") from error
    return text


def credentials(variable: str, environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """`user:password`, or a bearer token without a colon, from the environment or a file."""
    text = (secret_text(variable, environ) or "").strip()
    if not text:
        return None
    if _UNPRINTABLE.search(text):
        raise ConfigError(f"{variable} holds characters that cannot be sent; write user:password, or a token")
    user, colon, password = text.partition(":")
    return Credentials(user=user, password=password) if colon else Credentials(token=text)
