"""`tamias diff`: what changed between two versions."""

from datetime import UTC, datetime

import click

from tamias.cli.console.options import CommonOptions, archive_at, common, print_result
from tamias.model.errors import UsageError


@click.command()
@click.argument("url")
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--key", metavar="COLUMN", help="The key column of the table. [guessed]")
@click.option(
    "--portal",
    is_flag=True,
    help="URL is a portal: show what was added, changed or removed from time A to time B.",
)
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
    url: str,
    a: str | None,
    b: str | None,
    *,
    key: str | None,
    portal: bool,
    update: str | None,
) -> None:
    """Shows what changed from version A to B, each a number or a time; by default, the last two.

    Compares rows of tables, RDF statements, JSON values, members of archives, lines, or bytes.

    Example: tamias diff https://example.org/data.csv 1 4 --key id
    """
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
