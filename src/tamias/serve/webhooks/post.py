"""One POST to an address that somebody gave us: bounded in time, not redirected, not into our own network."""

import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import pycurl

from tamias import __version__

SECONDS: Final = 10
"""For the whole of it."""
_MOST_ANSWER: Final = 64 * 1024

Forbidden = Callable[[str], str | None]
"""The reason not to connect to an IP address."""


class Posted(msgspec.Struct, frozen=True):
    """How it went: a status, or the trouble that there was instead of one."""

    status: int | None
    trouble: str | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the receiver says that it has it."""
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], forbidden: Forbidden) -> Posted:
    """Sends the body as JSON. Never raises for what the network does."""
    opened = _Opened(forbidden)
    curl = pycurl.Curl()
    try:
        for option, value in _options(url, body, headers, opened).items():
            curl.setopt(option, value)
        curl.perform()
    except pycurl.error as error:
        told: int = curl.getinfo(pycurl.RESPONSE_CODE)
        if told and error.args[0] == pycurl.E_WRITE_ERROR:
            return _posted(told)  # of a long answer the status is enough
        return Posted(None, opened.refusal or str(error.args[1])[:300])
    else:
        return _posted(curl.getinfo(pycurl.RESPONSE_CODE))
    finally:
        curl.close()


class _Opened:
    """Opens sockets, unless the address is forbidden: what a name leads to is only known here."""

    def __init__(self, forbidden: Forbidden) -> None:
        self._forbidden = forbidden
        self.refusal: str | None = None
        self.read = 0

    def socket(self, _purpose: int, address: Any) -> socket.socket | int:
        reason = self._forbidden(str(address.addr[0]))
        if reason is not None:
            self.refusal = f"{reason}: not connected to without --allow-private"
            return int(pycurl.SOCKET_BAD)
        return socket.socket(address.family, address.socktype, address.protocol)

    def take(self, piece: bytes) -> int:
        self.read += len(piece)
        return len(piece) if self.read <= _MOST_ANSWER else 0


def _options(url: str, body: bytes, headers: Mapping[str, str], opened: _Opened) -> dict[int, Any]:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return {
        pycurl.URL: url,
        pycurl.PROTOCOLS: pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS,
        pycurl.POST: 1,
        pycurl.POSTFIELDS: body,
        pycurl.HTTPHEADER: [*lines, "Content-Type: application/json", "Expect:"],
        pycurl.USERAGENT: f"Tamias/{__version__} (webhook)",
        pycurl.FOLLOWLOCATION: 0,
        pycurl.NOSIGNAL: 1,
        pycurl.PROXY: "",
        pycurl.TIMEOUT: SECONDS,
        pycurl.FORBID_REUSE: 1,
        pycurl.OPENSOCKETFUNCTION: opened.socket,
        pycurl.WRITEFUNCTION: opened.take,
        pycurl.HEADERFUNCTION: opened.take,
    }


def _posted(status: int) -> Posted:
    posted = Posted(status)
    return posted if posted.is_taken else Posted(status, f"the receiver answered {status}")
