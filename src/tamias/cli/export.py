"""`tamias export`: writes what was crawled."""

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, get_args

import click

from tamias.cli.common import Place, common
from tamias.database.connect import Session
from tamias.model.errors import DiskFull, TamiasError, UsageError
from tamias.sinks.export import ExportFormat, export

if TYPE_CHECKING:
    from tamias.database.connect import Database

Write = Callable[[BinaryIO], None]


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([*get_args(ExportFormat), "warc", "wacz", "parquet"]),
    default="nquads",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--graph",
    type=click.Choice(["data", "metadata", "all"]),
    default="data",
    show_default=True,
    help="The crawled data, what is known about the crawl, or both.",
)
@click.option("--history", is_flag=True, help="All captures, not only the latest of each document.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write; a folder for parquet. [stdout]"
)
@common
def command(place: Place, form: Any, graph: str, history: bool, output: Path | None) -> None:
    """Writes the crawled quads, one named graph for each document; or the exchanges that `--sink warc` kept.

    Example: tamias export --format trig -o found.trig
    """
    if form in ("warc", "wacz"):
        write = _exchanges(place.data, form)
        _to_file(write, output) if output else _to_stdout(write)
        return
    from tamias.database.connect import Database

    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        chunks = _chunks(session, place.data, graph, history)
        if form == "parquet":
            _parquet(chunks, database, output)
            return
        write = _statements(chunks, form)
        _to_file(write, output) if output else _to_stdout(write)


def _statements(chunks: Iterator[bytes], form: ExportFormat) -> Write:
    def write(out: BinaryIO) -> None:
        left_out = export(chunks, out, form)
        if left_out:
            click.echo(f"tamias: {left_out} statements left out, which {form} cannot say", err=True)

    return write


def _exchanges(data: Path, form: str) -> Write:
    from tamias.sinks.wacz import export_wacz
    from tamias.sinks.warc_files import export_warc

    def write(out: BinaryIO) -> None:
        if form == "warc":
            export_warc(data / "warc", out)
        else:
            export_wacz(data / "warc", out, title=f"Crawl of {data.name}")

    return write


def _parquet(chunks: Iterator[bytes], database: "Database", output: Path | None) -> None:
    from tamias.archive.captures import all_captures
    from tamias.sinks.parquet import export_parquet

    if output is None:
        raise UsageError("parquet makes two files: name a folder for them with -o")
    # The captures come row by row within a transaction, so they need a session of their own.
    with closing(database.session()) as session:
        export_parquet(chunks, all_captures(session), output)


def _chunks(session: Session, data: Path, graph: str, history: bool) -> Iterator[bytes]:
    from tamias.crawl.corpus import data_quads, metadata_quads

    parts = []
    if graph != "metadata":
        parts.append(data_quads(session, data, history=history))
    if graph != "data":
        parts.append(metadata_quads(session))
    return chain.from_iterable(parts)


def _to_stdout(write: Write) -> None:
    with _failures_told("the export"):
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _to_file(write: Write, output: Path) -> None:
    """The file appears under its name only when it is complete."""
    partial = output.with_name(output.name + ".part")
    try:
        with _failures_told(str(output)):
            with partial.open("wb") as file:
                write(file)
            partial.replace(output)
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _failures_told(target: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else TamiasError
        raise kind(f"cannot write {target}: {error.strerror}") from error
