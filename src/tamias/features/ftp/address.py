"""An FTP address in its parts: what curl is asked for, and what may be shown of it. Pure."""

import re
from urllib.parse import unquote

import msgspec

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
