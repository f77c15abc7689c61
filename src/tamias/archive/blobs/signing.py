"""Requests to S3-compatible stores signed with AWS Signature Version 4. Pure: no clock and no socket."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

import msgspec

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class S3Credentials(msgspec.Struct, frozen=True):
    """Who asks, and for which region. Never shown: its secret must not reach a message."""

    key: str
    secret: str
    region: str = "us-east-1"
    token: str | None = None

    def __repr__(self) -> str:
        return f"S3Credentials({self.key!r})"


class S3Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request. `path` is as it will be sent; `sha256` is that of the body."""

    method: str
    host: str
    path: str
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    sha256: str = EMPTY_SHA256


def signed(asked: S3Request, credentials: S3Credentials, now: datetime) -> dict[str, str]:
    """All headers that the request must have."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    told = {"host": asked.host, "x-amz-content-sha256": asked.sha256, "x-amz-date": stamp}
    told |= {name.lower(): value.strip() for name, value in asked.headers.items()}
    if credentials.token:
        told["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(told))
    lines = [f"{name}:{told[name]}" for name in sorted(told)]
    canonical = "\n".join(
        [asked.method, asked.path, query_text(asked.query), *lines, "", names, asked.sha256]
    )
    scope = f"{stamp[:8]}/{credentials.region}/s3/aws4_request"
    to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(_key(credentials, stamp[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    credential = f"{credentials.key}/{scope}"
    authorization = f"{_ALGORITHM} Credential={credential},SignedHeaders={names},Signature={signature}"
    return told | {"authorization": authorization}


def query_text(query: Mapping[str, str]) -> str:
    """A query in the order and the writing that are signed.

    >>> query_text({"prefix": "a b/", "list-type": "2"})
    'list-type=2&prefix=a%20b%2F'
    """
    return "&".join(f"{quote(name, safe='')}={quote(query[name], safe='')}" for name in sorted(query))


def _key(credentials: S3Credentials, day: str) -> bytes:
    key = f"AWS4{credentials.secret}".encode()
    for part in (day, credentials.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
