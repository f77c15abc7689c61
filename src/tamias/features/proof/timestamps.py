"""Timestamps by RFC 3161: what is sent, and what an answer must say. The signature is checked by openssl."""

import re
import secrets
from datetime import datetime

from tamias.model.errors import TamiasError
from tamias.permit.addresses import forbidden
from tamias.service_client import NoResponse, ServiceClient

SECONDS = 30
MOST_BYTES = 64 << 10
_SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")
"""The beginning of a MessageImprint with SHA-256; the digest follows."""
_STATUS = re.compile(rb"\x30(?:[\x00-\x7f]|\x81.|\x82..)\x30(?:[\x00-\x7f]|\x81.)\x02\x01(.)", re.DOTALL)
_GRANTED = (b"\x00", b"\x01")


class NoTimestamp(TamiasError):
    """The timestamp server gave no timestamp."""

    retry_can_help = True


def fetch_timestamp(tsa: str, root: bytes, *, allow_private: bool) -> tuple[bytes, int]:
    """Return the answer of a timestamp server for a digest, and the time in it. Raises `NoTimestamp`."""
    nonce = bytes([1]) + secrets.token_bytes(7)
    query = bytes.fromhex("3043020101") + _SHA256 + root + b"\x02\x08" + nonce + b"\x01\x01\xff"
    client = ServiceClient(forbidden=None if allow_private else forbidden)
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    try:
        answer = client.send("POST", tsa, headers=headers, seconds=SECONDS, most=MOST_BYTES, body=query)
    except NoResponse as error:
        raise NoTimestamp(f"{tsa}: {error}") from error
    finally:
        client.close()
    if answer.status != 200 or answer.is_cut:
        raise NoTimestamp(f"{tsa} answered with status {answer.status}")
    try:
        return answer.content, _time_in(answer.content, root, nonce)
    except (ValueError, IndexError) as error:
        raise NoTimestamp(f"{tsa} gave no timestamp of the digest: {error}") from None


def _time_in(reply: bytes, root: bytes, nonce: bytes) -> int:
    """Return the time of a TimeStampResp. Raises `ValueError` if there is none, or for something else."""
    status = _STATUS.match(reply)
    if status is None or status[1] not in _GRANTED:
        raise ValueError("it refuses" if status else "it is no timestamp")
    _, found, info = reply.partition(_SHA256 + root)
    if not found or b"\x02\x08" + nonce not in info:
        raise ValueError("it is about another digest or request")
    serial = 2 + info[1]
    moment = info[serial + 2 : serial + 2 + info[serial + 1]].decode("ascii")
    return int(datetime.fromisoformat(f"{moment[:8]}T{moment[8:]}").timestamp() * 1000)
