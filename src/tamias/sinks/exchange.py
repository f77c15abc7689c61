"""Talks to a server that takes what we write: one request, one answer, with limits and a password.

Neither passwords nor bodies are ever part of a message.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec
import pycurl

from tamias.model.errors import ConfigError, TamiasError

CONNECT_SECONDS = 10
SILENT_SECONDS = 120
"""How long a server may neither take nor send anything."""
REQUEST_SECONDS = 3600
_ANSWER_BYTES = 64 * 1024
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\U0010ffff]+")


class Unreachable(TamiasError):
    """No answer came."""

    retry_can_help = True


class Answer(msgspec.Struct, frozen=True):
    """What the server said."""

    status: int
    text: str
    """The beginning of the body, for people."""
    headers: dict[str, str]

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server asked us to wait, if it said so in seconds."""
        value = self.headers.get("retry-after", "")
        return float(value) if value.isdigit() and len(value) < 7 else None


class Credentials(msgspec.Struct, frozen=True):
    """How to tell a server who we are: a user and a password, or a token."""

    user: str = ""
    password: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return "Credentials(hidden)"


def credentials(variable: str, environ: Mapping[str, str] = os.environ) -> Credentials | None:
    """`user:password`, or a bearer token without a colon, from the environment or a file.

    Read from `variable`, or from the file that the variable of that name with `_FILE` names.
    """
    text = environ.get(variable)
    if text is None and (path := environ.get(f"{variable}_FILE")):
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the file that {variable}_FILE names cannot be read: {path}") from error
    text = (text or "").strip()
    if not text:
        return None
    if _UNPRINTABLE.search(text):
        raise ConfigError(f"{variable} holds characters that cannot be sent; write user:password, or a token")
    user, colon, password = text.partition(":")
    return Credentials(user=user, password=password) if colon else Credentials(token=text)


class Exchange:
    """One connection to one server, kept open. Not for two threads at once."""

    def __init__(self, who: Credentials | None = None) -> None:
        self._who = who
        self._curl = pycurl.Curl()
        self._auth = pycurl.HTTPAUTH_BASIC

    def send(
        self,
        method: str,
        url: str,
        beat: Callable[[], None],
        *,
        body: BinaryIO | None = None,
        size: int = 0,
        content_type: str = "",
    ) -> Answer:
        """Sends a request and waits for its answer; `beat` is called about once a second, and may raise.

        Raises `Unreachable` when there is no answer. A redirect is not followed: it would take the password
        elsewhere.
        """
        answer = self._once(method, url, beat, body, size, content_type)
        if answer.status == 401 and self._who and self._who.user and self._wants_digest(answer):
            self._auth = pycurl.HTTPAUTH_DIGEST
            return self._once(method, url, beat, body, size, content_type)
        return answer

    def close(self) -> None:
        """Closes the connection. May be called twice."""
        self._curl.close()

    def _wants_digest(self, answer: Answer) -> bool:
        offered = answer.headers.get("www-authenticate", "").lower()
        return self._auth == pycurl.HTTPAUTH_BASIC and "digest" in offered and "basic" not in offered

    def _once(
        self,
        method: str,
        url: str,
        beat: Callable[[], None],
        body: BinaryIO | None,
        size: int,
        content_type: str,
    ) -> Answer:
        reply = _Reply(beat)
        self._set_up(method, url, content_type)
        self._give_body(body, size)
        self._curl.setopt(pycurl.HEADERFUNCTION, reply.take_header)
        self._curl.setopt(pycurl.WRITEFUNCTION, reply.take_body)
        self._curl.setopt(pycurl.XFERINFOFUNCTION, reply.take_time)
        try:
            self._curl.perform()
        except pycurl.error as error:
            if reply.stopped is not None:
                raise reply.stopped from None
            raise Unreachable(f"{url.partition('?')[0]} does not answer: {error.args[1]}") from error
        return reply.answer(int(self._curl.getinfo(pycurl.RESPONSE_CODE)))

    def _set_up(self, method: str, url: str, content_type: str) -> None:
        self._curl.reset()  # keeps the connection
        headers = ["Expect:", "Accept: */*"]
        if content_type:
            headers.append(f"Content-Type: {content_type}")
        if self._who and self._who.token:
            headers.append(f"Authorization: Bearer {self._who.token}")
        for option, value in (
            (pycurl.URL, url),
            (pycurl.CUSTOMREQUEST, method),
            (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
            (pycurl.HTTPHEADER, headers),
            (pycurl.USERAGENT, "tamias"),
            (pycurl.NOSIGNAL, 1),
            (pycurl.NOPROGRESS, 0),
            (pycurl.PROXY, ""),
            (pycurl.NETRC, pycurl.NETRC_IGNORED),
            (pycurl.CONNECTTIMEOUT, CONNECT_SECONDS),
            (pycurl.LOW_SPEED_LIMIT, 1),
            (pycurl.LOW_SPEED_TIME, SILENT_SECONDS),
            (pycurl.TIMEOUT, REQUEST_SECONDS),
        ):
            self._curl.setopt(option, value)
        if self._who and not self._who.token:
            self._curl.setopt(pycurl.HTTPAUTH, self._auth)
            self._curl.setopt(pycurl.USERNAME, self._who.user)
            self._curl.setopt(pycurl.PASSWORD, self._who.password)

    def _give_body(self, body: BinaryIO | None, size: int) -> None:
        if body is None:
            return

        def seek(offset: int, origin: int) -> int:
            body.seek(offset, origin)
            return int(pycurl.SEEKFUNC_OK)

        body.seek(0)
        self._curl.setopt(pycurl.UPLOAD, 1)
        self._curl.setopt(pycurl.INFILESIZE_LARGE, size)
        self._curl.setopt(pycurl.READFUNCTION, body.read)
        self._curl.setopt(pycurl.SEEKFUNCTION, seek)


class _Reply:
    """What has come so far."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self.stopped: BaseException | None = None

    def take_header(self, line: bytes) -> None:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon and len(self._headers) < 200:
            self._headers[name.strip().lower()] = value.strip()[:1000]
        elif line.startswith(b"HTTP/"):
            self._headers.clear()

    def take_body(self, chunk: bytes) -> None:
        self._body += chunk[: _ANSWER_BYTES - len(self._body)]

    def take_time(self, *_: int) -> int:
        try:
            self._beat()
        except BaseException as stopped:  # noqa: BLE001 - it must pass through C, and is raised again there
            self.stopped = stopped
            return 1
        return 0

    def answer(self, status: int) -> Answer:
        text = _UNPRINTABLE.sub(" ", self._body.decode("utf-8", "replace")).strip()[:300]
        return Answer(status, text, self._headers)
