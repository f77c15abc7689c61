"""Packs as objects of an S3-compatible store. Each `sync` makes one object of what was appended since.

obstore signs requests and sends them; they are repeated here, so that it is said what is waited for.
"""

import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, ClassVar, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from obstore.exceptions import BaseError
from obstore.store import S3Store

from tamias.archive.blobs.local import FileWriter
from tamias.archive.blobs.packs import Pack, PackError, PackMissing, StoreUnavailable
from tamias.database.disk import write_errors
from tamias.model.errors import ConfigError, DiskFull

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""How long a store is waited for that cannot be reached."""
_TRIES = 4
_PAUSE = 0.2
_LONGEST_PAUSE = 5.0
_PASSING = {429, 500, 502, 503, 504}
_NO_ROOM = 507
_BEYOND_END = 416
_STATUS = re.compile(r"status code: (\d{3})[^:]*:?(?:.*?<Code>(\w+)</Code>)?", re.DOTALL)
_PART_BYTES = 8 << 20
"""A larger object is sent in parts, which become one object when all are there."""
_log = logging.getLogger(__name__)


def open_bucket(url: str, environment: Mapping[str, str]) -> S3Store:
    """Open `s3://bucket/prefix`; the rest stands in the environment variables that all such tools read."""
    parts = urlsplit(url)
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(f"{url} is not the address of a store; write s3://bucket or s3://bucket/prefix")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    try:
        key, secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
    except KeyError as missing:
        raise ConfigError(f"the store {url} needs the environment variable {missing.args[0]}") from None
    config: S3Config = {
        "region": region,
        "endpoint": (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/"),
        "access_key_id": key,
        "secret_access_key": secret,
        "virtual_hosted_style_request": False,
        "disable_bulk_delete": True,
    }
    if token := environment.get("AWS_SESSION_TOKEN"):
        config["session_token"] = token
    limits: ClientConfig = {
        "allow_http": True, "connect_timeout": "10s", "read_timeout": "30s", "timeout": "1h",
        "user_agent": "tamias",
    }  # fmt: skip
    prefix = parts.path.strip("/") or None
    retry: RetryConfig = {"max_retries": 0}
    return S3Store(parts.netloc, prefix=prefix, config=config, client_options=limits, retry_config=retry)


class ObjectClient:
    """The objects of a bucket below a prefix. For any thread."""

    def __init__(self, bucket: S3Store, patience: float = PATIENCE_SECONDS) -> None:
        """Requests are repeated for so many seconds, and a few times in any case."""
        self._bucket = bucket
        self._patience = patience
        self.waits_for: str | None = None

    def put(self, name: str, content: bytes | IO[bytes]) -> None:
        """Write an object, of a file all of it; it is there as a whole or not at all."""

        def send() -> object:
            if not isinstance(content, bytes):
                content.seek(0)
            return self._bucket.put(name, content, chunk_size=_PART_BYTES, max_concurrency=2)

        self._expect(self._ask("PUT", name, send), name)

    def get(self, name: str, start: int, length: int) -> bytes | None:
        """A part of an object; None if it is not there, or ends before."""

        def read() -> bytes:
            return self._bucket.get_range(name, start=start, length=length).to_bytes()

        content = self._ask("GET", name, read)
        return content if content is not None and len(content) == length else None

    def size(self, name: str) -> int | None:
        """Bytes of an object; None if it is not there."""
        return self._ask("HEAD", name, lambda: self._bucket.head(name)["size"])

    def delete(self, name: str) -> None:
        """Takes an object away. May be done twice."""
        self._ask("DELETE", name, lambda: self._bucket.delete(name))

    def entries(self, folder: str | None = None) -> list[tuple[str, int]]:
        """Return the names and sizes of all objects in a folder below the prefix."""

        def listed() -> list[tuple[str, int]]:
            return [(each["path"], each["size"]) for some in self._bucket.list(folder) for each in some]

        return self._expect(self._ask("GET", "its list", listed), "its list")

    def _ask(self, method: str, name: str, work: Callable[[], T]) -> T | None:
        """Return what a request brings; None where there is no such object or part of one."""
        what = f"{method} {self._bucket.config.get('endpoint')}/{self._bucket.config.get('bucket')}/{name}"
        deadline, tries = time.monotonic() + self._patience, 0
        try:
            while tries < _TRIES or time.monotonic() < deadline:
                time.sleep(min(_LONGEST_PAUSE, _PAUSE * (2 ** min(tries, 6) - 1)))
                tries += 1
                try:
                    return work()
                except FileNotFoundError:
                    return None
                except BaseError as error:
                    found = _STATUS.search(str(error))
                    if found and int(found[1]) == _BEYOND_END:
                        return None
                    trouble = _trouble(found, error, what)
                if tries == _TRIES:
                    self.waits_for = f"the store cannot be reached ({what}): {trouble}"
                    _log.warning("%s; trying for %.0f s", self.waits_for, self._patience)
        finally:
            self.waits_for = None
        raise StoreUnavailable(f"the store cannot be reached ({what}): {trouble}")

    def _expect(self, answer: T | None, name: str) -> T:
        if answer is None:
            bucket, endpoint = (self._bucket.config.get(each) for each in ("bucket", "endpoint"))
            raise PackError(f"the bucket {bucket} at {endpoint} answered 404 for {name}; does it exist?")
        return answer


def _trouble(found: re.Match[str] | None, error: BaseError, what: str) -> str:
    """Return why a request is to be repeated. Raises for an answer that will stay the same."""
    if found is None:
        return str(error).partition("\n")[0].rpartition(" - ")[2]
    status = int(found[1])
    if status == _NO_ROOM:
        raise DiskFull(f"the store is full ({what}); free some space and continue") from error
    if status not in _PASSING:
        raise PackError(
            f"the store refused {what}: {status} {found[2] or ''}; check keys and rights"
        ) from error
    return f"it answered {status}"


HELD_SECONDS = 3600.0
"""A younger pack may be waiting for its rows. Whoever brings rows for an older one finds it sealed."""
_ENDING = ".pack"
_PROBE = "probe"
"""An object that need not be there."""


class ObjectPacks:
    """`PREFIX/PACK.pack`. What is not yet sent stands in files of a spool folder."""

    is_elsewhere: ClassVar[bool] = True

    def __init__(
        self, bucket: S3Store, spool: Path, patience: float = PATIENCE_SECONDS, *, is_borrowed: bool = False
    ) -> None:
        self.is_borrowed = is_borrowed
        self._bucket = bucket
        self._client = ObjectClient(bucket, patience)
        self._spool = spool
        self._unsent: dict[UUID, ObjectWriter] = {}

    @property
    def waits_for(self) -> str | None:
        return self._client.waits_for

    def probe(self) -> None:
        try:
            ObjectClient(self._bucket, 0.0).size(_PROBE)
        except StoreUnavailable:
            raise
        except PackError as error:
            # Without the right to list, Amazon refuses what is not there. A write will tell what else is.
            _log.info("%s", error)

    def create(self, pack: UUID) -> "ObjectWriter":
        writer = ObjectWriter(pack, self._spool, self._client)
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
        for name, size in self._client.entries():
            stem, dot, rest = name.partition(_ENDING)
            if dot and not rest and len(stem) == 36:
                yield Pack(UUID(stem), size)

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


class ObjectWriter(FileWriter):
    """Gathers records in a nameless file, and sends it as one object."""

    def __init__(self, pack: UUID, spool: Path, client: ObjectClient) -> None:
        self._client = client
        with write_errors(spool, PackError):
            spool.mkdir(parents=True, mode=0o700, exist_ok=True)
            with tempfile.TemporaryFile(dir=spool) as nameless:
                super().__init__(os.dup(nameless.fileno()), spool, pack)

    def read(self, start: int, length: int) -> bytes:
        """Return what was appended."""
        with write_errors(self._path, PackError):
            content = os.pread(self._file, length, start)
        if len(content) < length:
            raise PackError(f"pack {self.pack} in {self._path} ends before byte {start + length}")
        return content

    def sync(self) -> None:
        if not self.is_open:
            return
        try:
            if self.length:
                with open(self._file, "rb", closefd=False) as file:
                    self._client.put(_name(self.pack), file)
        finally:
            self.close()


def _name(pack: UUID) -> str:
    return f"{pack}{_ENDING}"
