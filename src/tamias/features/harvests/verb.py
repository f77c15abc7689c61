"""`tamias portals`: what is harvested, and how its harvests go; harvest, stop, remove, and how often."""

from typing import TYPE_CHECKING

import click

from tamias.access import audited
from tamias.cli.console.options import (
    CommonOptions,
    common,
    count_of,
    print_result,
    say,
    say_json,
    session_at,
)
from tamias.model.errors import UsageError

if TYPE_CHECKING:
    from tamias.features.harvests.sources import HarvestEntry, Sources

_PAGE = 1000
ACTIONS = ("harvest", "stop", "resume", "remove", "every")


@click.command()
@click.argument("action", type=click.Choice(("list", "history", *ACTIONS)), default="list")
@click.argument("url", required=False)
@click.argument("interval", required=False)
@click.option("--all", "known", is_flag=True, help="List also what is known only from pages and crawls.")
@common
def command(place: CommonOptions, action: str, url: str | None, interval: str | None, *, known: bool) -> None:
    """Lists portals and other sources: state, kind, datasets, files, harvests, trouble. Or steers one.

    `harvest URL` makes the next harvest due now; `tamias serve` or `tamias crawl --recrawl` makes it.
    `stop URL` ends harvests, and `resume URL` begins again; the files stay watched. `remove URL` also stops
    watching files that only this portal names; their versions stay. `every URL INTERVAL` sets how often:
    90m, 12h, 1d, 2w, or auto. `history URL` lists the harvests of a portal, the newest first.

    Example: tamias portals every https://data.example.org/ 12h
    """
    from tamias.crawl.plan.admit import Admission, open_frontier
    from tamias.features.harvests.sources import Sources

    if (url is None) != (action == "list") or (interval is None) == (action == "every"):
        raise UsageError("use 'tamias portals', 'tamias portals every URL INTERVAL', or ACTION URL")
    settings = place.settings().settings
    with session_at(place) as session:
        sources = Sources(session, open_frontier(session, settings), Admission(settings, ()))
        if url is None:
            _list(place, sources, known=known)
            return
        if action == "history":
            found = sources.harvests(url)
            print_result(place, found, map(_line, found))
            return
        with audited(session, place.data, f"portals {action}", [url]):
            done = sources.steer(action, url, interval or "")
    print_result(place, {"portal": url, "done": done}, [f"{url}: {done}"])


def _list(place: CommonOptions, sources: "Sources", *, known: bool) -> None:
    found = last = sources.page(known=known)
    while len(last) == _PAGE:
        last = sources.page(last[-1].url, known=known)
        found = [*found, *last]
    if place.json:
        say_json(found)
        return
    head = f"{'state':11}{'kind':13}{'datasets':>9}{'files':>8}"
    say(f"{head}  {'last harvest':17} {'next':17} {'every':6} url")
    for each in found:
        times = f"{_minute(each.last_harvest):17} {_minute(each.next_harvest):17} {each.every:6}"
        say(f"{each.state:11}{each.kind:13}{each.datasets:>9,}{each.files:>8,}  {times} {each.url}")
        if each.trouble:
            say(f"{'':11}{each.trouble}")
        if each.named_by:
            say(f"{'':11}named by the query {each.named_by}")
    if not found:
        click.echo("no portals; 'tamias add --portal URL' harvests one", err=True)


def _line(each: "HarvestEntry") -> str:
    time = "" if each.seconds is None else f"{each.seconds:,.1f} s"
    counts = f"{count_of(each.requests, 'request')}; {each.added:,} added, {each.changed:,} changed"
    return (
        f"{each.started_at[:19].replace('T', ' ')}  {each.state:9} {time:>9}  {each.kind}: {counts}, "
        f"{each.vanished:,} vanished, {each.failed:,} failed\n  {each.reason}"
    )


def _minute(moment: str | None) -> str:
    return "-" if moment is None else moment[:16].replace("T", " ")
