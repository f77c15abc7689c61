"""`tamias diff`: what changed between two versions."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tamias.cli.common import Place, common, say, say_json
from tamias.cli.opening import archive_at
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.archive.diffs import Change, Diff

SIGNS = {"added": "+", "removed": "-", "changed": "~"}


@click.command()
@click.argument("url")
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--key", metavar="COLUMN", help="The column that tells rows apart. [guessed]")
@click.option(
    "--portal", is_flag=True, help="URL is a portal: what came, changed or went from time A to time B."
)
@common
def command(place: Place, url: str, a: str | None, b: str | None, key: str | None, portal: bool) -> None:
    """Tells what changed from version A to version B, each a number or a time; else in the last step.

    Rows of tables, statements of RDF, values of JSON, members of archives, lines, or bytes.

    Example: tamias diff https://example.org/data.csv 1 4 --key id
    """
    if portal:
        _portal(place, url, a, b, key)
        return
    with archive_at(place) as archive:
        found = archive.diff(url, a, b, key=key)
    if place.json:
        say_json(found)
        return
    for change in found.changes:
        _tell(change)
    _sum_up(found)


def _portal(place: Place, url: str, a: str | None, b: str | None, key: str | None) -> None:
    from tamias.archive.diffs.text import collection_lines

    if a is None or key is not None:
        raise UsageError(
            "a portal is compared between two times: tamias diff --portal URL 2026-01-01 2026-02-01"
        )
    with archive_at(place) as archive:
        found = archive.diff_portal(url, a, b or datetime.now(UTC))
    if place.json:
        say_json(found)
        return
    for line in collection_lines(found):
        say(line)


def _tell(change: "Change") -> None:
    where = "" if change.where is None else f" {change.where}"
    told = [_text(value) for value in (change.old, change.new) if value is not None]
    say(f"{SIGNS[change.what]}{where} {' -> '.join(told)}".rstrip())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _sum_up(found: "Diff") -> None:
    by = f" by {found.key}" if found.key else ""
    more = " (not all are shown)" if found.truncated else ""
    say(
        f"{found.kind}{by}: {found.added:,} added, {found.removed:,} removed, {found.changed:,} changed{more}"
    )
    if found.columns is not None:
        say(f"columns: {_text(found.columns)}")
    for note in found.notes:
        click.echo(f"tamias: {note}", err=True)
