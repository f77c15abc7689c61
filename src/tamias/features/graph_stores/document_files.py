"""A file for each document, named by a hash of its URL, and an index that says which is which.

A file appears under its name when it is complete and durable. No name from outside becomes a path.
"""

import gzip
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast

import msgspec

from tamias.database.disk import sync_path, write_errors
from tamias.features.dcat.activity import activity_triples
from tamias.features.graph_stores.placement import PostgresLedger
from tamias.features.graph_stores.sparql_sink import CREDENTIALS, SparqlSink, SparqlStore
from tamias.model.capture import CaptureRecord
from tamias.model.errors import ConfigError
from tamias.model.vocabulary import ACTIVITIES, address_iri
from tamias.service_client import credentials
from tamias.sinks.delivery import Beat, DocumentRefused, GraphSink, SinkError, Surroundings
from tamias.sinks.export import export
from tamias.sinks.graphs import whole_lines
from tamias.sinks.outbox import Edition

INDEX = "index.jsonl"
METADATA = ".metadata.nt"
"""How the file ends that says when and how a document was fetched: N-Triples, appended to."""
MEMORY_BYTES = 8 * 1024 * 1024
_PIECE = 1024 * 1024


class IndexLine(msgspec.Struct, frozen=True):
    """The place of a document. Of several lines for one document the last one counts."""

    url: str
    file: str | None
    """Relative to the folder; None when the document holds no triples any more."""


class DocumentFiles:
    """A `GraphSink` of files. Several processes may write into one folder, each document by one at a time."""

    def __init__(
        self,
        folder: Path,
        endings: Mapping[str, str],
        choose: Callable[[bool], str],
        *,
        compress: bool = False,
    ) -> None:
        """`choose` gets whether all quads of a document are in the graph of the document's own name."""
        self._folder = folder
        self._endings = endings
        self._packing = ".gz" if compress else ""
        self._choose = choose
        self._compress = compress
        self._touched: set[Path] = set()
        with write_errors(self._folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = os.open(folder / INDEX, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            self._mend_index()

    def path(self, url: str, form: str) -> Path:
        """Return where a document stands when it is written in that format."""
        return self._path(url, self._endings[form] + self._packing)

    def _path(self, url: str, ending: str) -> Path:
        name = sha256(url.encode("utf-8", "replace")).hexdigest()
        return self._folder / name[:2] / (name + ending)

    def deliver(self, edition: Edition, nquads: Iterable[bytes], beat: Beat) -> None:
        with write_errors(self._folder), SpooledTemporaryFile(max_size=MEMORY_BYTES) as spool:
            own = self._spooled(edition.document, nquads, spool, beat)
            if not spool.tell():
                self._take_away(edition.document, keep=None)
                return
            spool.seek(0)
            form = self._choose(own)
            self._write(edition.document, form, iter(lambda: spool.read(_PIECE), b""))
            self._take_away(edition.document, keep=form)

    def describe(self, records: Sequence[CaptureRecord], beat: Beat) -> None:
        """Write an attempt into a file beside that of the document, once."""
        with write_errors(self._folder):
            for record, triples in zip(records, activity_triples(records), strict=True):
                beat()
                path = self._path(record.final_url, METADATA)
                path.parent.mkdir(exist_ok=True)
                with path.open("a+b") as file:
                    _append_once(file, f"<{ACTIVITIES}{record.id}> ".encode(), triples)
                self._touched.add(path.parent)

    def sync(self) -> None:
        with write_errors(self._folder):
            os.fsync(self._index)
            for folder in {*self._touched, self._folder}:
                sync_path(folder)
            self._touched.clear()

    def close(self) -> None:
        if self._index >= 0:
            os.close(self._index)
            self._index = -1

    def _spooled(self, url: str, nquads: Iterable[bytes], spool: IO[bytes], beat: Beat) -> bool:
        """Return whether all is in the graph of the document's own name."""
        end = f" <{address_iri(url)}> .\n".encode()
        own = True
        for lines in whole_lines(nquads):
            own = own and lines.count(end) == lines.count(b"\n")
            spool.write(lines)
            beat()
        return own

    def _write(self, url: str, form: str, chunks: Iterator[bytes]) -> None:
        path = self.path(url, form)
        path.parent.mkdir(exist_ok=True)
        partial = path.with_name(f".{path.name}.part")
        try:
            with partial.open("wb") as file:
                self._export(chunks, file, form)
                file.flush()
                os.fdatasync(file.fileno())
            if not path.exists():
                self._note(url, path)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)
        self._touched.add(path.parent)

    def _export(self, chunks: Iterator[bytes], file: BinaryIO, form: str) -> None:
        with ExitStack() as stack:
            out = file
            if self._compress:
                packed = gzip.GzipFile("", "wb", 6, file, mtime=0)
                out = cast("BinaryIO", stack.enter_context(packed))
            try:
                export(chunks, out, form)
            except OSError:
                raise
            except Exception as error:
                raise DocumentRefused(f"cannot be written as {form}: {error}") from error

    def _take_away(self, url: str, keep: str | None) -> None:
        """Removes what an earlier delivery left in another format, packed or not, or all of it."""
        current = self.path(url, keep) if keep else None
        endings = [ending + packing for ending in self._endings.values() for packing in ("", ".gz")]
        for path in (self._path(url, ending) for ending in endings):
            if path != current and path.exists():
                if current is None:
                    self._note(url, None)
                path.unlink()
                self._touched.add(path.parent)

    def _note(self, url: str, path: Path | None) -> None:
        """Note a change before the file appears or goes: an interrupted delivery is repeated."""
        line = IndexLine(url, str(path.relative_to(self._folder)) if path else None)
        os.write(self._index, msgspec.json.encode(line) + b"\n")

    def _mend_index(self) -> None:
        """A line that was torn by a crash must not take the next one along."""
        size = os.fstat(self._index).st_size
        if size and os.pread(self._index, 1, size - 1) != b"\n":
            os.write(self._index, b"\n")


def _append_once(file: BinaryIO, begins: bytes, lines: bytes) -> None:
    """Appends the lines of an attempt, unless all stand there; what a crash cut short is written again."""
    file.seek(0)
    before = file.read()
    if begins in before and before.endswith(b"\n") and lines in before:
        return
    file.write((b"" if before.endswith(b"\n") or not before else b"\n") + lines)
    file.flush()
    os.fdatasync(file.fileno())


def read_index(folder: Path) -> dict[str, str]:
    """The files of a folder by the URLs of their documents."""
    files: dict[str, str] = {}
    with (folder / INDEX).open("rb") as lines:
        for line in lines:
            try:
                entry = msgspec.json.decode(line, type=IndexLine)
            except msgspec.DecodeError:
                continue  # torn by a crash, and written again
            files.pop(entry.url, None)
            if entry.file is not None:
                files[entry.url] = entry.file
    return files


class TurtleFiles(DocumentFiles):
    """Turtle cannot name graphs: it is used where the document's URL says the only one there is."""

    def __init__(self, folder: Path, *, compress: bool = False) -> None:
        super().__init__(folder, {"turtle": ".ttl", "trig": ".trig"}, _turtle_or_trig, compress=compress)


def _turtle_or_trig(own: bool) -> str:
    return "turtle" if own else "trig"


def turtle_files(target: str | None, around: Surroundings) -> GraphSink:
    """Write to the folder named, or to `turtle/` of the data directory."""
    return TurtleFiles(Path(target) if target else around.data / "turtle", compress=around.compress)


def sparql(target: str | None, around: Surroundings) -> GraphSink:
    """Deliver to the server at that address."""
    if target is None:
        raise ConfigError("name the SPARQL server to write to: --sink sparql:https://HOST/update")
    store = SparqlStore(target, credentials(CREDENTIALS))
    return SparqlSink(store, PostgresLedger(around.session, around.sink), around.read)


def try_server(target: str) -> None:
    """Raise `ConfigError` for a server that cannot be used at all; one that is away may come back."""
    with closing(SparqlStore(target, credentials(CREDENTIALS))) as store, suppress(SinkError):
        store.connect()
