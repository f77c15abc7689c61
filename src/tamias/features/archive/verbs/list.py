"""`tamias list`: what is watched, and how its visits go."""

import csv
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Unpack

import click

from tamias.cli.console.options import CommonOptions, common, count_of, say, say_json, session_at
from tamias.model.url import host as host_of
from tamias.plugins import host_notes, version_notes

if TYPE_CHECKING:
    from tamias.archive.versions.resources import WatchedFilters, WatchedResource
    from tamias.database.connect import Session

COLUMNS = (
    *("state", "versions", "missed", "last_visit", "next_visit", "every", "priority"),
    *("trouble", "note", "url", "title"),
)


@click.command()
@click.option("--host", help="Only resources of this host.")
@click.option(
    "--state", type=click.Choice(["active", "gone", "stopped"]), help="Only resources in this state."
)
@click.option(
    "--trouble",
    is_flag=True,
    help="Only resources whose last visit failed, or whose file breaks its schema.",
)
@click.option("--hvd", is_flag=True, help="Only files of datasets that a portal calls high-value.")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), help="Output format. [table]")
@common
def command(
    place: CommonOptions, host: str | None, state: str | None, trouble: bool, hvd: bool, form: str | None
) -> None:
    """Lists watched resources: state, versions, last and next visit, and why the last one failed.

    Example: tamias list --trouble
    """

    from tamias.archive.sources.catalogues import watched_portals

    with session_at(place) as session:
        notes = {note.host: note.text for note in host_notes(session)}
        broken = {note.resource: note.text for note in version_notes(session, None) if note.is_trouble}
        wanted = _all(session, host=host, state=state, trouble=trouble, noted=[*broken], hvd=hvd)
        rows = (_row(each, notes, broken) for each in wanted)
        if place.json or form == "json":
            say_json(list(rows))
        elif form == "csv":
            _write_csv(rows)
        else:
            _write_table(rows, len(watched_portals(session)))


def _all(session: "Session", **filters: Unpack["WatchedFilters"]) -> Iterator["WatchedResource"]:
    from tamias.archive.versions.resources import list_watched

    after = ""
    while page := list_watched(session, after, **filters):
        yield from page
        after = page[-1].id


def _row(each: "WatchedResource", notes: dict[str, str], broken: dict[str, str]) -> dict[str, object]:
    from tamias.archive.moments import rfc3339_or_none
    from tamias.schedule.rules import span_of

    return {
        "state": each.state,
        "versions": each.versions,
        "missed": each.missed,
        "last_visit": rfc3339_or_none(each.last_visit),
        "next_visit": rfc3339_or_none(each.next_visit),
        "every": None if each.every is None else span_of(each.every / 1000),
        "priority": each.priority,
        "trouble": each.trouble or broken.get(each.id),
        "note": notes.get(host_of(each.url)) if each.trouble else None,
        "url": each.url,
        "title": each.title,
    }


def _write_csv(rows: Iterator[dict[str, object]]) -> None:
    from tamias.cli.console.output import csv_cell

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([csv_cell(row[name]) for name in COLUMNS] for row in rows)


def _write_table(rows: Iterator[dict[str, object]], portals: int) -> None:
    say(f"{'state':8}{'versions':>9}  {'last visit':17} {'next visit':17} {'every':6} url")
    empty = True
    for row in rows:
        empty = False
        last, following = (_minute(row[name]) for name in ("last_visit", "next_visit"))
        visits = f"{last:17} {following:17} {row['every'] or 'auto':6}"
        say(f"{row['state']:8}{row['versions']:>9}  {visits} {row['url']}")
        if row["missed"]:
            say(f"{'':8}  about {row['missed']:,} versions were probably missed between visits")
        if row["trouble"]:
            say(f"{'':8}  {row['trouble']}")
        if row["note"]:
            say(f"{'':8}  {row['note']}")
    if empty:
        known = f"no file matches; 'tamias portals' lists {count_of(portals, 'portal')} with their harvests"
        click.echo(known if portals else "nothing matches; 'tamias add URL' watches a resource", err=True)


def _minute(moment: object) -> str:
    return "-" if moment is None else str(moment)[:16].replace("T", " ")
