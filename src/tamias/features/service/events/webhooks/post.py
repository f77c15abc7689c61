"""Signed POSTs to an address that a user gave: bounded, not redirected, not into our own network.

Signed as Standard Webhooks does: HMAC-SHA256 over id, time and body.
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from typing import Final

import msgspec

from tamias.model.errors import UsageError
from tamias.service_client import NoResponse, ServiceClient

SECONDS: Final = 10
"""For the whole of it."""
_MOST_ANSWER: Final = 64 * 1024

Forbidden = Callable[[str], str | None]
"""The reason not to connect to an IP address."""


class Posted(msgspec.Struct, frozen=True):
    """The result of a POST: a status, or the reason why there is none."""

    status: int | None
    trouble: str | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300


def post(url: str, body: bytes, headers: Mapping[str, str], forbidden: Forbidden) -> Posted:
    """Sends the body as JSON. Never raises for what the network does."""

    def refused(address: str) -> str | None:
        reason = forbidden(address)
        return reason and f"{reason}: not connected to without --allow-private"

    sent = {**headers, "Content-Type": "application/json"}
    with closing(ServiceClient(forbidden=refused)) as client:
        try:
            response = client.send("POST", url, headers=sent, body=body, seconds=SECONDS, most=_MOST_ANSWER)
        except NoResponse as error:
            return Posted(None, str(error)[:300])
        except UnicodeEncodeError:
            return Posted(None, "the URL has characters that must be percent-encoded")
    posted = Posted(response.status)
    return posted if posted.is_taken else Posted(response.status, f"the receiver answered {response.status}")


PREFIX: Final = "whsec_"
_LEAST, _MOST = 24, 64


def new_key() -> bytes:
    """A key that nobody can guess."""
    return secrets.token_bytes(32)


def written_key(key: bytes) -> str:
    """A key as its owner is told it."""
    return PREFIX + b64encode(key).decode()


def read_key(text: str) -> bytes:
    """The key that an owner chose. Raises `UsageError`."""
    try:
        key = b64decode(text.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):
        key = b""
    if not _LEAST <= len(key) <= _MOST:
        raise UsageError(f"'secret' must be {PREFIX} and {_LEAST} to {_MOST} bytes in Base64")
    return key


def signature_headers(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers by which a receiver checks a message.

    >>> signature_headers(bytes(24), "msg_1", 1614265330, b"{}")["webhook-signature"]
    'v1,ONjOH+g8tKQOwBW/l2Ew8DI7ahP5iygTrq4r12BiJXg='
    """
    signed = hmac.new(key, f"{delivery}.{seconds}.".encode() + body, sha256).digest()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{b64encode(signed).decode()}",
    }
