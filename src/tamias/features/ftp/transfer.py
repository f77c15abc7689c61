"""Transfers from an FTP server: its replies, and the file or list that it sends. They block: for threads.

Curl's multi interface blocks for FTP, too: it waits up to a minute for a server's last word. An address is
cut into what curl is asked for and what may be shown of it.
"""

import contextlib
import os
import re
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
import pycurl

from tamias.fetch.credentials import HttpOptions
from tamias.fetch.multi import GIVEN_UP, new_handle
from tamias.fetch.transfer import Transfer

_PARTS = re.compile(r"(ftps?)://(?:([^/?#@:]*)(?::([^/?#@]*))?@)?([^/?#@]+)(/[^?#]*)?(\?[^#]*)?")
_TYPE_CODE = re.compile(r";type=[aAiIdD]$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class FtpAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address on an FTP server: host, path and user."""

    place: str
    """Scheme, user name if any, host and port."""
    path: str
    """Begins with a slash; still percent-encoded."""
    request_url: str
    """For curl: no user name, and nothing in it that curl would take for more than a path."""
    user: str | None = None
    password: str | None = None

    @property
    def shown(self) -> str:
        """The address without a password."""
        return self.place + self.path

    @property
    def is_directory(self) -> bool:
        """Return whether it is written as a directory."""
        return self.path.endswith("/")

    @property
    def is_secured(self) -> bool:
        """Return whether the scheme asks for TLS."""
        return self.place.startswith("ftps:")

    def as_directory(self) -> "FtpAddress":
        """The same with a slash at its end."""
        return msgspec.structs.replace(self, path=self.path + "/", request_url=self.request_url + "/")


def ftp_address(url: str) -> FtpAddress | None:
    """The parts of a `fetch_url`, or None when it is no FTP address that can be asked for.

    A question mark is an ordinary letter to FTP, and `;type=` is left out: files are taken as they are.

    >>> ftp_address("ftp://me:secret@example.org/a?b;type=i").shown
    'ftp://me@example.org/a%3Fb'
    """
    found = _PARTS.fullmatch(url) if url.isascii() else None
    if found is None:
        return None
    scheme, user, password, host, path, query = found.groups()
    name = _TYPE_CODE.sub("", (path or "/") + (query or "")).replace("?", "%3F")
    user, password = (None if part is None else unquote(part) for part in (user, password))
    if any(_CONTROL.search(part) for part in (user or "", password or "", unquote(name))):
        return None  # each would end its line, and be read as a command
    return FtpAddress(
        place=f"{scheme}://{found[2]}@{host}" if user else f"{scheme}://{host}",
        path=name,
        request_url=f"{scheme}://{host}{name}",
        user=user or None,
        password=password,
    )


_REPLY = re.compile(rb"([1-6][0-9]{2}) (.*?)\r?\n?", re.DOTALL)
_GRACE_SECONDS = 5
"""Curl's own limit is above ours, which is looked at about once a second."""
_LATEST = 253_402_300_799
"""The end of the year 9999."""


class Errand(Enum):
    """A kind of request. The last three ask for the list of a directory."""

    TAKE = "RETR"
    LOOK = "MDTM"
    ENTER = "CWD"
    LIST_FOR_MACHINES = "MLSD"
    LIST = "LIST"
    LIST_NAMES = "NLST"


_BODILESS = frozenset({Errand.LOOK, Errand.ENTER})
_LISTS = frozenset({Errand.LIST_FOR_MACHINES, Errand.LIST, Errand.LIST_NAMES})


class Login(NamedTuple):
    """User and password for a server."""

    user: str
    password: str
    is_secret: bool


class FtpTransfer(Transfer):
    """A handle for ftp and ftps."""

    def __init__(self, options: HttpOptions, forbidden: Callable[[str], str | None]) -> None:
        self.stopped: str | None = None
        """Why the handle is of no more use."""
        self._lent: list[socket.socket] = []
        super().__init__(_ftp_handle(options), options, forbidden)

    def clear(self) -> None:
        """Forgets the last answer, its body included."""
        super().clear()
        self.status = 0
        """Of the last reply."""
        self.words = ""
        """That came with it; empty when they repeat a password."""
        self._secret: bytes | None = None
        self._given_up: str | None = None

    def ask(self, address: FtpAddress, login: Login, errand: Errand, *, tls: bool) -> tuple[int, str]:
        """Runs one errand: curl's code (0 is success) and message, or `GIVEN_UP` and the reason.

        `tls` is whether to try it where the scheme does not ask for it. Raises `DiskFull` or `OSError` when
        the body cannot be spooled.
        """
        self.clear()
        self.url = address.shown
        self._secret = login.password.encode() if login.is_secret else None
        self._introduce(address, login, tls=tls)
        self._prepare(errand)
        self._curl.setopt(pycurl.TIMEOUT_MS, int((max(self.seconds_left, 0) + _GRACE_SECONDS) * 1000))
        self._begin(time.monotonic())
        ending = self._perform()
        self._end()
        return ending

    def give_up(self, reason: str) -> None:
        """Ends what is under way, within a second or so, and all that is asked later. From any thread."""
        self.stopped = reason

    def close(self) -> None:
        """Frees the handle and hangs up."""
        held = self._curl.getinfo(pycurl.ACTIVESOCKET)
        if held >= 0:
            # Curl would send a QUIT and wait for the answer. Its socket is left to it; the connection is not.
            with socket.socket(fileno=os.dup(held)) as control, contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_RDWR)
        super().close()

    def headers(self) -> list[tuple[str, str]]:
        """Return the time from MDTM and the length of the file, as HTTP headers."""
        changed = self._curl.getinfo(pycurl.INFO_FILETIME)
        length = self._curl.getinfo(pycurl.CONTENT_LENGTH_DOWNLOAD_T)
        modified = [("Last-Modified", formatdate(changed, usegmt=True))] if 0 <= changed <= _LATEST else []
        return [*modified, *([("Content-Length", str(length))] if length >= 0 else [])]

    def _perform(self) -> tuple[int, str]:
        try:
            self._curl.perform()
        except pycurl.error as error:
            if self._given_up is not None:
                return GIVEN_UP, self._given_up
            return error.args[0], error.args[1]
        finally:
            self._close_lent()
        return pycurl.E_OK, ""

    def _take_progress(self, total: int, wire_bytes: int, upload_total: int, uploaded: int) -> int:
        super()._take_progress(total, wire_bytes, upload_total, uploaded)
        self._given_up = self._given_up or self.stopped or self._overdue(time.monotonic())
        return int(self._given_up is not None)

    def _lend(self, opened: socket.socket) -> None:
        self._lent.append(opened)
        self._lent_at = time.monotonic()

    def _close_lent(self) -> None:
        while self._lent:
            self._lent.pop().close()

    def _overdue(self, now: float) -> str | None:
        limit = self._options.connect_timeout
        if any(map(_is_connected, self._lent)):
            self._close_lent()
        if self._lent and now - self._lent_at >= limit:
            return f"no connection to {self._peer} within {limit:g} s (connect_timeout)"
        return super()._overdue(now)

    def _introduce(self, address: FtpAddress, login: Login, *, tls: bool) -> None:
        # Where TLS is a gift of the server's, a certificate that proves nothing is still no worse than none.
        verified = address.is_secured and self._options.verify_tls
        wanted = pycurl.USESSL_TRY if tls else pycurl.USESSL_NONE
        self._curl.setopt(pycurl.URL, address.request_url)
        self._curl.setopt(pycurl.USERNAME, login.user)
        self._curl.setopt(pycurl.PASSWORD, login.password)
        self._curl.setopt(pycurl.USE_SSL, pycurl.USESSL_ALL if address.is_secured else wanted)
        self._curl.setopt(pycurl.SSL_VERIFYPEER, int(verified))
        self._curl.setopt(pycurl.SSL_VERIFYHOST, 2 if verified else 0)

    def _prepare(self, errand: Errand) -> None:
        self._curl.setopt(pycurl.NOBODY, int(errand in _BODILESS))
        self._curl.setopt(pycurl.DIRLISTONLY, int(errand is Errand.LIST_NAMES))
        if errand is Errand.LIST_FOR_MACHINES:
            self._curl.setopt(pycurl.CUSTOMREQUEST, errand.value)
        else:
            self._curl.unsetopt(pycurl.CUSTOMREQUEST)
        self._most_name = "max_listing_bytes" if errand in _LISTS else "max_bytes"
        self._most_bytes = getattr(self._options, self._most_name)
        if errand not in _BODILESS:
            self._is_spooled = True

    def _take_line(self, line: bytes) -> int | None:
        reply = _REPLY.fullmatch(line)
        if reply is not None:
            self.status = int(reply[1])
            is_secret = self._secret is not None and self._secret in line
            self.words = "" if is_secret else reply[2].decode("utf-8", "replace")
        return None


def _is_connected(opened: socket.socket) -> bool:
    try:
        opened.getpeername()
    except OSError:
        return False
    return True


def _ftp_handle(options: HttpOptions) -> pycurl.Curl:
    """A handle that only ever opens connections itself, and only to the host that it asks."""
    return new_handle(
        options,
        (pycurl.PROTOCOLS, pycurl.PROTO_FTP | pycurl.PROTO_FTPS),
        # Data comes from the host we asked, not from one that the server names.
        (pycurl.FTP_SKIP_PASV_IP, 1),
        (pycurl.FTP_FILEMETHOD, pycurl.FTPMETHOD_SINGLECWD),
        (pycurl.FTPSSLAUTH, pycurl.FTPAUTH_TLS),
        (pycurl.FTP_RESPONSE_TIMEOUT, max(1, round(options.first_byte_timeout))),
        (pycurl.CONNECTTIMEOUT_MS, int(options.first_byte_timeout * 1000)),  # to curl the login is part of it
        (pycurl.OPT_FILETIME, 1),
        (pycurl.MAXFILESIZE_LARGE, options.max_bytes),
        (pycurl.MAXCONNECTS, 1),
    )
