"""The content of one version: bytes, text or table, read from its blob and checked against its digest."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Protocol

from tamias.content.charsets import decoded, encoding_of
from tamias.content.containers.codecs import stream_of
from tamias.content.formats import NQUADS, type_with_charset
from tamias.model.errors import TamiasError
from tamias.model.resource import Resource, Version
from tamias.plugins import load

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class NoTable(TamiasError):
    """A content that cannot be read as a table."""


class Table:
    """Rows and columns. pandas, polars, pyarrow and DuckDB take it as it is, any number of times."""

    def __init__(self, rows: "DuckDBPyConnection", folder: ExitStack) -> None:
        """Gives out the table `t` of a database, which spills into a folder that goes with it."""
        self._rows = rows
        weakref.finalize(self, folder.close)
        described = rows.table("t")
        self.columns: list[str] = list(described.columns)
        self.types: list[str] = [str(each) for each in described.types]

    def __len__(self) -> int:
        found = self._rows.cursor().execute("SELECT count(*) FROM t").fetchone()
        return int(found[0]) if found else 0

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.columns[:20])}>"

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        """The rows by the Arrow PyCapsule interface."""
        # A cursor of its own: a consumer may ask for a second stream while it reads the first.
        return self._rows.cursor().table("t").__arrow_c_stream__(requested_schema)


class TableVersion(NamedTuple):
    """A version of a table, from when on it was valid, and how its content is put into a file."""

    number: int
    captured_at: int
    media_type: str | None
    spool: Callable[[Path], Path]


class GraphContent(NamedTuple):
    """The statements of a crawled document in one state, as they were read."""

    url: str
    number: int
    statements: Callable[[], Iterator[bytes]]
    media_type: str = NQUADS
    text_type: str = NQUADS

    def spooled(self, folder: Path) -> Path:
        """Write the N-Quads to a file in the folder."""
        path = folder / f"{self.number}.nq"
        with path.open("wb") as file:
            file.writelines(self.statements())
        return path


class BodyReader(Protocol):
    """Gives out bytes by their SHA-256."""

    def pieces(self, digest: str, /) -> Iterator[bytes]:
        """Yield a body in pieces; the digest is checked before the last one."""
        ...

    def read(self, digest: str, /) -> bytes:
        """Return a whole body."""
        ...


class Content:
    """The content of a version, read on demand. Raises `BlobDamaged` where its digest differs."""

    def __init__(self, resource: Resource, version: Version, reader: BodyReader) -> None:
        self.resource = resource
        self.version = version
        self.reader = reader

    def __repr__(self) -> str:
        return f"<version {self.version.number} of {self.resource.url}: {self.version.byte_size} bytes>"

    def pieces(self) -> Iterator[bytes]:
        """The exact bytes, in pieces; the digest is checked before the last of them is given."""
        return self.reader.pieces(self.version.sha256)

    def bytes(self) -> bytes:
        """The exact bytes."""
        return self.reader.read(self.version.sha256)

    def open(self) -> BinaryIO:
        """The same as a stream; a very large body is not held in memory."""
        return stream_of(self.pieces())

    def text(self, encoding: str | None = None) -> str:
        """The text, in the encoding given or found."""
        content = self.bytes()
        return decoded(content, encoding or encoding_of(content, self.version.declared_type))

    @property
    def text_type(self) -> str | None:
        """The type as found, with the charset that the server declares."""
        return type_with_charset(self.version.media_type, self.version.declared_type)

    @property
    def url(self) -> str:
        """The address of the resource."""
        return self.resource.url

    @property
    def media_type(self) -> str | None:
        """The type as found."""
        return self.version.media_type

    def table(self) -> Table:
        """The rows of CSV, JSON, Parquet, the first sheet of a workbook or CSV of a zip. Raises `NoTable`."""
        table: Table = load("table_readers", "table")([self.table_version], history=False)
        return table

    @property
    def table_version(self) -> TableVersion:
        """Describe the version as `table` reads it."""
        return TableVersion(self.version.number, self.version.captured_at, self.text_type, self.spooled)

    def spooled(self, folder: Path) -> Path:
        """The exact bytes in a new file of a folder."""
        path = folder / self.version.id
        with path.open("wb") as file:
            file.writelines(self.pieces())
        return path
