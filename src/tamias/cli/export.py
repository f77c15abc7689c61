"""`tamias export`: writes what was crawled."""

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import click

from tamias.cli.common import Place, common
from tamias.database.connect import Session
from tamias.model.errors import DiskFull, TamiasError
from tamias.sinks.export import ExportFormat, export


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["nquads", "trig", "turtle"]),
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
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write. [stdout]"
)
@common
def command(place: Place, form: ExportFormat, graph: str, history: bool, output: Path | None) -> None:
    """Writes the crawled quads, one named graph for each document.

    Example: tamias export --format trig -o found.trig
    """
    from tamias.database.connect import Database

    database = Database(place.data, place.db, create=False)
    session = database.session()
    try:
        chunks = _chunks(session, place.data, graph, history)
        if output is None:
            with _failures_told("the export"):
                export(chunks, sys.stdout.buffer, form)
                sys.stdout.buffer.flush()
        else:
            _to_file(chunks, output, form)
    finally:
        session.close()
        database.close()


def _chunks(session: Session, data: Path, graph: str, history: bool) -> Iterator[bytes]:
    from tamias.crawl.corpus import data_quads, metadata_quads

    parts = []
    if graph != "metadata":
        parts.append(data_quads(session, data, history=history))
    if graph != "data":
        parts.append(metadata_quads(session))
    return chain.from_iterable(parts)


def _to_file(chunks: Iterator[bytes], output: Path, form: ExportFormat) -> None:
    """The file appears under its name only when it is complete."""
    partial = output.with_name(output.name + ".part")
    try:
        with _failures_told(str(output)):
            with partial.open("wb") as file:
                export(chunks, file, form)
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
