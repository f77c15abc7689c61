"""Signs deliveries as Standard Webhooks does: HMAC-SHA256 over id, time and body."""

import hmac
import secrets
from base64 import b64decode, b64encode
from binascii import Error
from hashlib import sha256
from typing import Final

from tamias.model.errors import UsageError

PREFIX: Final = "whsec_"
_LEAST, _MOST = 24, 64


def new_key() -> bytes:
    """A key that nobody can guess."""
    return secrets.token_bytes(32)


def told_key(key: bytes) -> str:
    """A key as its owner is told it."""
    return PREFIX + b64encode(key).decode()


def read_key(told: str) -> bytes:
    """The key that an owner chose. Raises `UsageError`."""
    try:
        key = b64decode(told.removeprefix(PREFIX), validate=True)
    except (Error, ValueError):
        key = b""
    if not _LEAST <= len(key) <= _MOST:
        raise UsageError(f"'secret' must be {PREFIX} and {_LEAST} to {_MOST} bytes in Base64")
    return key


def signature_headers(key: bytes, delivery: str, seconds: int, body: bytes) -> dict[str, str]:
    """What a receiver checks.

    >>> signature_headers(bytes(24), "msg_1", 1614265330, b"{}")["webhook-signature"]
    'v1,ONjOH+g8tKQOwBW/l2Ew8DI7ahP5iygTrq4r12BiJXg='
    """
    signed = hmac.new(key, f"{delivery}.{seconds}.".encode() + body, sha256).digest()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{b64encode(signed).decode()}",
    }
