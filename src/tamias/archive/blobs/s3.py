"""Packs as objects of an S3-compatible store. Each `sync` makes one object of what was appended since.

The store is requested through the service client, again where that may help, and requests are signed with
AWS Signature Version 4, by pure functions without a clock or a socket.
"""

import hashlib
import hmac
import logging
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, ClassVar
from urllib.parse import quote, urlsplit
from uuid import UUID

import msgspec
from lxml import etree

from tamias.archive.blobs.local import write_all
from tamias.archive.blobs.packs import Pack, PackError, PackMissing, StoreUnavailable
from tamias.database.disk import write_errors
from tamias.model.errors import ConfigError, DiskFull
from tamias.service_client import NoResponse, Response, ServiceClient

_log = logging.getLogger(__name__)
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class S3Credentials(msgspec.Struct, frozen=True):
    """The credentials of a store, with its region. Never shown: the secret must not reach a message."""

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


def signed(request: S3Request, credentials: S3Credentials, now: datetime) -> dict[str, str]:
    """Return all headers that the request must have."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": request.host, "x-amz-content-sha256": request.sha256, "x-amz-date": stamp}
    headers |= {name.lower(): value.strip() for name, value in request.headers.items()}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    canonical = "\n".join(
        [request.method, request.path, query_text(request.query), *lines, "", names, request.sha256]
    )
    scope = f"{stamp[:8]}/{credentials.region}/s3/aws4_request"
    to_sign = "\n".join([_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(_key(credentials, stamp[:8]), to_sign.encode(), hashlib.sha256).hexdigest()
    credential = f"{credentials.key}/{scope}"
    authorization = f"{_ALGORITHM} Credential={credential},SignedHeaders={names},Signature={signature}"
    return headers | {"authorization": authorization}


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


_TRIES = 4
_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
PATIENCE_SECONDS = 60.0
"""How long a store is waited for that cannot be reached."""
_PASSING = {429, 500, 502, 503, 504}
_NO_ROOM = 507
_IDLE_SECONDS = 30
_REQUEST_SECONDS = 3600
_MOST_ANSWER = 16 * 1024 * 1024
"""Of answers that are no part of an object: lists and errors."""


class S3Address(msgspec.Struct, frozen=True):
    """The address of a store: its URL, a bucket, and the prefix of its names."""

    endpoint: str
    bucket: str
    prefix: str
    credentials: S3Credentials


class Upload(msgspec.Struct, frozen=True):
    """A body to be sent."""

    file: BinaryIO
    size: int
    sha256: str


class ListedObject(msgspec.Struct, frozen=True):
    """An object of a list."""

    name: str
    size: int


def s3_address(url: str, environment: Mapping[str, str]) -> S3Address:
    """Reads `s3://bucket/prefix`; the rest stands in the environment variables that all such tools read."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(f"{url} is not the address of a store; write s3://bucket or s3://bucket/prefix")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    try:
        key, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    except KeyError as missing:
        raise ConfigError(f"the store {url} needs the environment variable {missing.args[0]}") from None
    prefix = parts.path.strip("/")
    return S3Address(
        (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/"),
        parts.netloc,
        f"{prefix}/" if prefix else "",
        S3Credentials(key, secret, region, environment.get("AWS_SESSION_TOKEN")),
    )


class S3Client:
    """A client of an S3-compatible store. Not for two threads at once."""

    def __init__(self, address: S3Address, patience: float = PATIENCE_SECONDS) -> None:
        """Requests are repeated for so many seconds, and a few times in any case."""
        self._address = address
        self._patience = patience
        self.waits_for: str | None = None
        self._client = ServiceClient(idle_seconds=_IDLE_SECONDS, proxied=True)

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.close()

    def put(self, name: str, upload: Upload) -> None:
        """Writes an object; it is there as a whole or not at all."""
        self._expect(self._ask("PUT", name, upload=upload), name)

    def get(self, name: str, start: int, length: int) -> bytes | None:
        """A part of an object; None if it is not there, or ends before."""
        headers = {"range": f"bytes={start}-{start + length - 1}"}
        answer = self._ask("GET", name, headers=headers, most=length)
        whole = answer.status == 206 and len(answer.content) == length
        return answer.content if whole else None

    def size(self, name: str) -> int | None:
        """Bytes of an object; None if it is not there."""
        answer = self._ask("HEAD", name)
        return int(answer.headers.get("content-length", 0)) if answer.status < 300 else None

    def delete(self, name: str) -> None:
        """Takes an object away. May be done twice."""
        self._ask("DELETE", name)

    def entries(self, folder: str = "") -> Iterator[ListedObject]:
        """Yield all objects in a folder below the prefix; their names are those behind the prefix."""
        query = {"list-type": "2", "prefix": self._address.prefix + folder}
        while True:
            answer = self._ask("GET", None, query=query)
            self._expect(answer, "its list")
            page = etree.fromstring(answer.content, _parser())
            for entry in page.iterfind("{*}Contents"):
                key, size = entry.findtext("{*}Key") or "", entry.findtext("{*}Size") or "0"
                yield ListedObject(key.removeprefix(self._address.prefix), int(size))
            more = page.findtext("{*}NextContinuationToken")
            if page.findtext("{*}IsTruncated") != "true" or not more:
                return
            query["continuation-token"] = more

    def _ask(
        self,
        method: str,
        name: str | None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        upload: Upload | None = None,
        most: int = _MOST_ANSWER,
    ) -> Response:
        request = S3Request(
            method=method,
            host=urlsplit(self._address.endpoint).netloc,
            path=self._path(name),
            query=query or {},
            headers=headers or {},
            sha256=upload.sha256 if upload else EMPTY_SHA256,
        )
        what = f"{method} {self._address.endpoint}{request.path}"
        deadline, tries = time.monotonic() + self._patience, 0
        try:
            while tries < _TRIES or time.monotonic() < deadline:
                time.sleep(min(_LONGEST_PAUSE, _PAUSE * (2 ** min(tries, 6) - 1)))
                tries += 1
                answer, trouble = self._try(request, upload, max(most, _MOST_ANSWER))
                if answer is not None:
                    return _refusals_raised(answer, what)
                if tries == _TRIES:
                    self.waits_for = f"the store cannot be reached ({what}): {trouble}"
                    _log.warning("%s; trying for %.0f s", self.waits_for, self._patience)
        finally:
            self.waits_for = None
        raise StoreUnavailable(f"the store cannot be reached ({what}): {trouble}")

    def _try(self, request: S3Request, upload: Upload | None, most: int) -> tuple[Response | None, str]:
        """The answer, or why there is none."""
        try:
            answer = self._once(request, upload, most)
        except NoResponse as error:
            return None, str(error)
        return (None if answer.status in _PASSING else answer), f"it answered {answer.status}"

    def _once(self, request: S3Request, upload: Upload | None, most: int) -> Response:
        headers = signed(request, self._address.credentials, datetime.now(UTC))
        query = f"?{query_text(request.query)}" if request.query else ""
        scheme = urlsplit(self._address.endpoint).scheme
        response = self._client.send(
            request.method,
            f"{scheme}://{request.host}{request.path}{query}",
            headers=headers,
            seconds=_REQUEST_SECONDS,
            most=most,
            body=upload.file if upload else None,
            size=upload.size if upload else None,
        )
        if response.is_cut:
            raise NoResponse(f"the answer is larger than {most:,} bytes")
        return response

    def _path(self, name: str | None) -> str:
        key = "" if name is None else f"/{quote(self._address.prefix + name, safe='/-_.~')}"
        return f"{urlsplit(self._address.endpoint).path}/{quote(self._address.bucket, safe='')}{key}"

    def _expect(self, answer: Response, name: str) -> None:
        if answer.status >= 300:
            raise PackError(
                f"the bucket {self._address.bucket} at {self._address.endpoint} answered {answer.status} "
                f"for {name}; does it exist?"
            )


def _refusals_raised(answer: Response, what: str) -> Response:
    if answer.status == _NO_ROOM:
        raise DiskFull(f"the store is full ({what}); free some space and continue")
    if answer.status >= 300 and answer.status not in (404, 416):
        raise PackError(f"the store refused {what}: {answer.status} {_code(answer)}; check keys and rights")
    return answer


def _code(answer: Response) -> str:
    """The word for the error that such stores send as XML."""
    try:
        return etree.fromstring(answer.content, _parser()).findtext("{*}Code") or ""
    except etree.XMLSyntaxError:
        return ""


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)


HELD_SECONDS = 3600.0
"""A younger pack may be waiting for its rows. Whoever brings rows for an older one finds it sealed."""
_ENDING = ".pack"
_PROBE = "probe"
"""An object that need not be there."""


class S3Packs:
    """`PREFIX/PACK.pack`. What is not yet sent stands in files of a spool folder."""

    is_elsewhere: ClassVar[bool] = True

    def __init__(
        self,
        address: S3Address,
        spool: Path,
        patience: float = PATIENCE_SECONDS,
        *,
        is_borrowed: bool = False,
    ) -> None:
        self.is_borrowed = is_borrowed
        self._address = address
        self._client = S3Client(address, patience)
        self._spool = spool
        self._unsent: dict[UUID, S3Writer] = {}

    @property
    def waits_for(self) -> str | None:
        return self._client.waits_for

    def probe(self) -> None:
        client = S3Client(self._address, 0.0)
        try:
            client.size(_PROBE)
        except StoreUnavailable:
            raise
        except PackError as error:
            # Without the right to list, Amazon refuses what is not there. A write will tell what else is.
            _log.info("%s", error)
        finally:
            client.close()

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.close()

    def create(self, pack: UUID) -> "S3Writer":
        writer = S3Writer(pack, self._spool, self._client)
        self._unsent = {known: each for known, each in self._unsent.items() if each.is_open} | {pack: writer}
        return writer

    def read(self, pack: UUID, start: int, length: int) -> bytes:
        unsent = self._unsent.get(pack)
        if unsent and unsent.is_open:
            return unsent.read(start, length)
        content = self._client.get(_name(pack), start, length) if length else b""
        if content is None:
            raise PackMissing(f"pack {_name(pack)} is not in the store, or ends before byte {start + length}")
        return content

    def find(self, pack: UUID) -> Pack | None:
        size = self._client.size(_name(pack))
        return None if size is None else Pack(pack, size)

    def all(self) -> Iterator[Pack]:
        for entry in self._client.entries():
            stem, dot, rest = entry.name.partition(_ENDING)
            if dot and not rest and len(stem) == 36:
                yield Pack(UUID(stem), entry.size)

    def is_held(self, pack: UUID, age: float) -> bool:
        return age < HELD_SECONDS

    def cut(self, pack: UUID, length: int) -> None:
        """Objects cannot be cut; what is unused in them goes when they are rewritten."""

    def erase(self, pack: UUID, start: int, length: int) -> bool:
        """An object is never changed."""
        return False

    def remove(self, pack: UUID) -> None:
        if self.is_borrowed:
            raise PackError(f"pack {_name(pack)} is another archive's, of which this is a copy; it stays")
        self._client.delete(_name(pack))


class S3Writer:
    """Gathers records in a nameless file, and sends it as one object."""

    def __init__(self, pack: UUID, spool: Path, client: S3Client) -> None:
        self.pack = pack
        self._client = client
        self._spool = spool
        self._length = 0
        with write_errors(spool, PackError):
            spool.mkdir(parents=True, mode=0o700, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=spool, buffering=0)  # noqa: SIM115 (closed by `close`)

    @property
    def length(self) -> int:
        return self._length

    @property
    def is_open(self) -> bool:
        return not self._file.closed

    def append(self, record: list[bytes]) -> int:
        start = self._length
        with write_errors(self._spool, PackError):
            try:
                self._file.seek(start)
                write_all(self._file.fileno(), record)
            except OSError:
                self._file.truncate(start)
                raise
        self._length += sum(map(len, record))
        return start

    def take_back(self, length: int) -> None:
        if self.is_open:
            with write_errors(self._spool, PackError):
                self._file.truncate(length)
            self._length = length

    def read(self, start: int, length: int) -> bytes:
        """Return what was appended."""
        with write_errors(self._spool, PackError):
            content = os.pread(self._file.fileno(), length, start)
        if len(content) < length:
            raise PackError(f"pack {self.pack} in {self._spool} ends before byte {start + length}")
        return content

    def sync(self) -> None:
        if not self.is_open:
            return
        try:
            if self._length:
                self._file.seek(0)
                digest = hashlib.file_digest(self._file, "sha256").hexdigest()
                self._client.put(_name(self.pack), Upload(self._file, self._length, digest))
        finally:
            self.close()

    def close(self) -> None:
        self._file.close()


def _name(pack: UUID) -> str:
    return f"{pack}{_ENDING}"
