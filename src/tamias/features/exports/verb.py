"""`tamias export`: writes what was crawled, and what the archive holds."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import click

from tamias.archive.moments import first_millisecond
from tamias.cli.console.options import CommonOptions, archive_at, common, print_result, session_at
from tamias.cli.console.output import to_output
from tamias.database.connect import Session
from tamias.model.errors import TamiasError, UsageError
from tamias.model.usage import BULK, TRAINING
from tamias.plugins import load, parts
from tamias.sinks.export import export, export_formats

if TYPE_CHECKING:
    from tamias.features.exports.usage_gate import UsageGate
    from tamias.model.capture import Extent

PACKAGES = ("bagit", "ro-crate")
SITEMAP = "semantic-sitemap"
LINK_GRAPHS = ("graphml", "dot")
OTHERS = (*PACKAGES, "parquet", "ciff", "urlfrontier", SITEMAP, *LINK_GRAPHS)
"""The formats besides those of RDF, and those that other features add."""
ExportFiles = Callable[[CommonOptions, tuple[str, ...], tuple[str, ...], Path | None], None]
"""Writes to a file: what is known of some URLs, or everything, without what is withheld from a use."""
NO_LINKS = "no links are stored: set strategy.links = true before you crawl"


class _ExportOptions(NamedTuple):
    """Options of an export: its content, and where to."""

    form: str
    graph: str
    crawl: str | None
    history: bool
    since: int
    urls: tuple[str, ...]
    text: bool
    withheld: tuple[str, ...]
    output: Path | None


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice([*export_formats(), *parts("exports"), *OTHERS]),
    default="nquads",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--graph",
    type=click.Choice(["data", "metadata", "all", "links"]),
    default="data",
    show_default=True,
    help="The crawled data, the metadata of the crawl, or both; or the links between URLs, as parquet,"
    " graphml or dot.",
)
@click.option("--crawl", "crawl_name", metavar="NAME", help="Only the quads or links of this crawl. [all]")
@click.option("--history", is_flag=True, help="All captures, not only the latest of each document.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only documents that were new or had changed at a visit since then: RFC 3339 or a date.",
)
@click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Only the versions of this resource, in warc, wacz, bagit, ro-crate and with --text; the site of a"
    " semantic-sitemap. May be repeated.",
)
@click.option(
    "--text",
    is_flag=True,
    help="With parquet: the text of archived pages for an index, with title, language, headings and links.",
)
@click.option(
    "--tables",
    is_flag=True,
    help="With parquet: the watched tables, a file for each, in a folder or s3://BUCKET/PREFIX; with"
    " --history all rows, each with valid_from and valid_to. Tables that did not change stay.",
)
@click.option("--for-training", is_flag=True, help="Leave out what servers refuse for training models.")
@click.option(
    "--include-reserved",
    is_flag=True,
    help="Include what servers reserve (TDMRep; with --for-training all of it). Check that you may use it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write; a folder for parquet, and for bagit and ro-crate unless it ends in .zip. [stdout]",
)
@common
def command(
    place: CommonOptions,
    *,
    form: Any,
    graph: str,
    crawl_name: str | None,
    history: bool,
    since: str | None,
    urls: tuple[str, ...],
    text: bool,
    tables: bool,
    for_training: bool,
    include_reserved: bool,
    output: Path | None,
) -> None:
    """Writes the crawled quads, one named graph for each document; or requests, responses and versions.

    Content whose server reserves text and data mining is left out, and how much that is goes to stderr.

    Example: tamias export --format trig -o found.trig
    """
    links = graph == "links" or form in LINK_GRAPHS
    _check_options(form, since, links=links, text=text)
    if crawl_name is not None and not links:
        _check_quads(form, graph)
    withheld = () if include_reserved else TRAINING if for_training else BULK
    start = first_millisecond(since) if since else 0
    wanted = _ExportOptions(form, graph, crawl_name, history, start, urls, text, withheld, output)
    if tables:
        _tables(place, wanted)
    elif text or form == "ciff":
        _pages(place, wanted)
    elif links:
        _links(place, wanted)
    elif form in parts("exports"):
        export_files: ExportFiles = load("exports", form)
        export_files(place, urls, withheld, output)
    elif form in PACKAGES:
        _package(place, wanted)
    elif form in ("urlfrontier", SITEMAP):
        _urls(place, wanted)
    elif urls:
        raise UsageError(f"--url selects versions; use it with {', '.join((*parts('exports'), *PACKAGES))}")
    else:
        _quads(place, wanted)


def _check_options(form: str, since: str | None, *, links: bool, text: bool) -> None:
    """Raise `UsageError` if an option does not go with the format or graph."""
    if since is not None and (links or form in (*parts("exports"), *PACKAGES, "urlfrontier", SITEMAP)):
        raise UsageError(f"--since chooses crawled documents: it cannot be used with {form}")
    if text and (form != "parquet" or links):
        raise UsageError("use --text with --format parquet")


def _check_quads(form: str, graph: str) -> None:
    if form not in export_formats() or graph != "data":
        raise UsageError("--crawl chooses quads or links; it does not go with this --format or --graph")


@contextmanager
def open_gate(
    place: CommonOptions, session: Session, withheld: tuple[str, ...], crawl: str | None = None
) -> "Iterator[UsageGate]":
    """The gate of an export, which says at its end how much was left out."""
    from tamias.features.exports.usage_gate import UsageGate
    from tamias.frontier.crawls import named

    closed = place.settings().settings.archive.closed
    gate = UsageGate(session, withheld, None if crawl is None else named(session, crawl), closed)
    yield gate
    for reason, count in gate.left_out.items():
        click.echo(f"left out {count}: {reason}; --include-reserved exports them", err=True)


def _quads(place: CommonOptions, wanted: _ExportOptions) -> None:
    from tamias.archive.captures import all_captures
    from tamias.database.connect import Database
    from tamias.features.exports.corpus import data_quads, metadata_quads
    from tamias.features.exports.parquet import export_parquet

    lost: list[Extent] = []
    found: list[Iterator[bytes]] = []
    history, since = wanted.history, wanted.since
    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
        open_gate(place, session, wanted.withheld, wanted.crawl) as gate,
    ):
        if wanted.graph != "metadata":
            found.append(data_quads(session, place.data, history=history, lost=lost, since=since, gate=gate))
        if wanted.graph != "data":
            found.append(metadata_quads(session, since))
        chunks = chain.from_iterable(found)
        if wanted.form == "parquet":
            if wanted.output is None:
                raise UsageError("parquet writes two files: name a folder for them with -o")
            # The captures come row by row within a transaction, so they need a session of their own.
            with closing(database.session()) as rows:
                export_parquet(chunks, all_captures(rows, since), wanted.output)
        else:
            to_output(lambda out: _write_statements(chunks, out, wanted.form), wanted.output)
        if lost:
            raise _incomplete(session, lost, history)


def _incomplete(session: Session, lost: "list[Extent]", history: bool) -> TamiasError:
    """The end of an export that is whole but for what stood in damaged places: what that is, to the last."""
    from tamias.archive.references import lost_captures, lost_documents
    from tamias.archive.stored_files import segment_keys

    if history:
        missing = [f"{url} of {at:%Y-%m-%dT%H:%M:%SZ}" for url, at in lost_captures(session, lost)]
    else:
        missing = [each.document for each in lost_documents(session, lost)]
    for each in missing:
        click.echo(f"missing: {each}", err=True)
    files = ", ".join(sorted({key for extent in lost for key in segment_keys(session, extent.segment)}))
    return TamiasError(
        f"{len(missing):,} documents are not in the export, the rest is: {files} is damaged;"
        " 'tamias check --repair' makes them due again, and the next crawl fetches them again"
    )


def _urls(place: CommonOptions, wanted: _ExportOptions) -> None:
    """Write all known URLs as the JSON lines of a URLFrontier, or what a site declares or was found there."""
    from tamias.features.exports.semantic_sitemap import semantic_sitemap, site_datasets
    from tamias.features.exports.urlfrontier_lines import urlfrontier_lines

    if wanted.form == SITEMAP and not wanted.urls:
        raise UsageError(f"{SITEMAP} is about one site: name it with --url")
    with session_at(place) as session:
        if wanted.form == SITEMAP:
            datasets = [each for site in wanted.urls for each in site_datasets(session, site)]
            to_output(lambda out: out.writelines([semantic_sitemap(datasets)]), wanted.output)
        else:
            to_output(lambda out: out.writelines(urlfrontier_lines(session)), wanted.output)


def _links(place: CommonOptions, wanted: _ExportOptions) -> None:
    """The links between URLs, for visualisation tools."""
    from tamias.features.exports.link_graph import COLUMNS, link_edges, write_link_graph
    from tamias.features.exports.parquet import export_table
    from tamias.frontier.crawls import named

    form, crawl, output = wanted.form, wanted.crawl, wanted.output
    if form not in ("parquet", *LINK_GRAPHS):
        raise UsageError(f"links are written as parquet, {' or '.join(LINK_GRAPHS)}; use --format")
    if form == "parquet" and output is None:
        raise UsageError("parquet writes a file links.parquet: name a folder for it with -o")
    with session_at(place) as session:
        if crawl is not None:
            named(session, crawl)
        if not session.fetch_one(b"SELECT 1 FROM link LIMIT 1"):
            click.echo(f"tamias: {NO_LINKS}", err=True)
        if form == "parquet" and output is not None:
            export_table(output, "links", COLUMNS, link_edges(session, crawl))
        else:
            to_output(lambda out: out.writelines(write_link_graph(session, form, crawl)), output)


def _write_statements(chunks: Iterator[bytes], out: BinaryIO, form: str) -> None:
    left_out = export(chunks, out, form)
    if left_out:
        click.echo(f"tamias: {left_out} statements left out that {form} cannot express", err=True)


def _package(place: CommonOptions, wanted: _ExportOptions) -> None:
    from tamias.features.exports.packages import write_package
    from tamias.features.exports.version_packages import export_bag, export_crate

    form, output = wanted.form, wanted.output
    fill = export_bag if form == "bagit" else export_crate
    folder = (output.stem if output else "bag") if form == "bagit" else ""
    with archive_at(place) as archive, open_gate(place, archive.session, wanted.withheld) as gate:
        write_package(lambda package: fill(archive, wanted.urls, gate, package), output, folder)


def _pages(place: CommonOptions, wanted: _ExportOptions) -> None:
    """The text of archived pages, as a table or as an index."""
    from tamias.features.exports.parquet import export_table
    from tamias.features.exports.texts import PAGES, export_index, page_rows

    history = wanted.history and wanted.form != "ciff"
    with archive_at(place) as archive, open_gate(place, archive.session, wanted.withheld) as gate:
        rows = page_rows(archive, wanted.urls, gate, wanted.since, history=history)
        if wanted.form == "ciff":
            to_output(lambda out: export_index(rows, out), wanted.output)
        elif wanted.output is None:
            raise UsageError("--text writes a file pages.parquet: name a folder for it with -o")
        else:
            export_table(wanted.output, "pages", PAGES, rows)


def _tables(place: CommonOptions, wanted: _ExportOptions) -> None:
    """Write watched tables, and say how many."""
    from tamias.features.exports.tables import export_tables

    if wanted.form != "parquet" or wanted.graph != "data" or wanted.text or wanted.since:
        raise UsageError("--tables goes with --format parquet, and with --history and --url only")
    if wanted.output is None:
        raise UsageError("--tables writes a file for each table: name a folder or s3://BUCKET/PREFIX with -o")
    # A path folds the slashes of an address.
    output = re.sub("^s3:/+", "s3://", str(wanted.output))
    with archive_at(place) as archive, open_gate(place, archive.session, wanted.withheld) as gate:
        done = export_tables(archive, wanted.urls, gate, output, history=wanted.history)
    for each in done.failed:
        click.echo(f"not a table: {each}", err=True)
    said = f"{done.written:,} written, {done.unchanged:,} unchanged, {done.removed:,} removed in {output}"
    print_result(place, done, [said])
