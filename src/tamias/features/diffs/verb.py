"""`tamias diff`: what changed between two versions."""

from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, print_result
from tamias.content.formats import NQUADS
from tamias.model.errors import UsageError
from tamias.model.item import NEVER
from tamias.plugins import load


@click.command()
@click.argument("url", required=False)
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--key", metavar="COLUMN", help="The key column of the table. [guessed]")
@click.option(
    "--portal",
    is_flag=True,
    help="URL is a portal: show what was added, changed or removed from time A to time B.",
)
@click.option("--snapshot", is_flag=True, help="URL and A name snapshots: compare the graphs in them.")
@click.option(
    "--crawl", is_flag=True, help="Compare all crawled graphs as they are now with those at --since."
)
@click.option("--since", metavar="TIME", help="For --crawl: RFC 3339 or a date.")
@click.option(
    "--sparql-update",
    "update",
    flag_value="sparql_update",
    help="Print SPARQL that turns the old graph into the new one.",
)
@click.option("--rdf-patch", "update", flag_value="rdf_patch", help="Print the same as RDF Patch.")
@common
def command(
    place: CommonOptions,
    url: str | None,
    a: str | None,
    b: str | None,
    *,
    key: str | None,
    portal: bool,
    snapshot: bool,
    crawl: bool,
    since: str | None,
    update: str | None,
) -> None:
    """Shows what changed from version A to B, each a number or a time; by default, the last two.

    Compares rows of tables, RDF statements, JSON values, members of archives, lines, or bytes. Of a document
    that was crawled and is not archived, it compares the statements.

    Example: tamias diff https://example.org/data.csv 1 4 --key id
    """
    if snapshot or crawl:
        _graphs(place, (url, a), since, update)
        return
    if url is None:
        raise UsageError("name a URL, or use --crawl --since TIME, or --snapshot NAME NAME")
    if portal:
        _portal(place, url, a, b, key)
        return
    from tamias.features.diffs.text import diff_lines

    with archive_at(place) as archive:
        if update is not None:
            click.echo(archive.diff_update(url, a, b, form=update), nl=False)
            return
        found = archive.diff(url, a, b, key=key)
    print_result(place, found, diff_lines(found))


def _portal(place: CommonOptions, url: str, a: str | None, b: str | None, key: str | None) -> None:
    from tamias.features.diffs.text import collection_lines

    if a is None or key is not None:
        raise UsageError(
            "a portal is compared between two times: tamias diff --portal URL 2026-01-01 2026-02-01"
        )
    with archive_at(place) as archive:
        found = archive.diff_portal(url, a, b or datetime.now(UTC))
    print_result(place, found, collection_lines(found))


def _graphs(
    place: CommonOptions, names: tuple[str | None, str | None], since: str | None, update: str | None
) -> None:
    """Compare many graphs: all as they were at a time with those of now, or those of two snapshots."""
    from tamias.archive.file_store import segments_of
    from tamias.archive.moments import first_millisecond
    from tamias.features.diffs.graph_changes import (
        changed_graphs,
        count_changes,
        graphs_at,
        graphs_lines,
        written_states,
    )

    old, new = names
    if since is None and (old is None or new is None):
        raise UsageError("compare graphs with --crawl --since TIME, or with --snapshot NAME NAME")
    with archive_at(place) as archive, TemporaryDirectory(prefix="tamias-diff-") as folder:
        if since is not None:
            before, after = (graphs_at(archive.session, at) for at in (first_millisecond(since) - 1, NEVER))
        else:
            before, after = (load("comparisons", "snapshot_graphs")(archive, name) for name in names)
        changes = changed_graphs(segments_of(archive.session, archive.data), before, after)
        if update is not None:
            files = written_states(changes, Path(folder))
            click.echo(load("comparisons", update)(*files, NQUADS, old_type=NQUADS), nl=False)
            return
        found = count_changes(changes)
    print_result(place, found, graphs_lines(found))
