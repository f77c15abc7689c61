"""`tamias status`: what the frontier is doing now, live or once."""

import sys
import time

import click
import msgspec

from tamias.cli.console.options import CommonOptions, common, duration, queue_units, say, say_json, session_at
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.lease import FrontierStats
from tamias.model.site import HostNote
from tamias.plugins import host_notes

LOOK_SECONDS = 1.0


@click.command()
@click.option("--once", is_flag=True, help="Print one snapshot and exit.")
@common
def command(place: CommonOptions, once: bool) -> None:
    """Shows crawls, hosts and leases; live on a terminal.

    Example: tamias status --once --json
    """
    from tamias.crawl.store.disk_space import DiskSpace

    room = DiskSpace(place.data, place.settings().settings.crawl.room)
    with session_at(place) as session:
        frontier = PostgresFrontier(session, same_url=str.__eq__)
        notes = host_notes(session)
        while True:
            figures, paused = frontier.figures(), room.lacking(room.least)
            _tell(place, figures, paused, notes)
            if once or not sys.stdout.isatty():
                return
            time.sleep(LOOK_SECONDS)
            click.echo(f"\x1b[{len(figures.crawls) + 1 + bool(paused) + len(notes)}A\x1b[J", nl=False)


def _tell(place: CommonOptions, figures: FrontierStats, paused: str | None, notes: list[HostNote]) -> None:
    if place.json:
        say_json({**msgspec.structs.asdict(figures), "paused": paused, "notes": notes})
        return
    if paused:
        say(f"paused: {paused}")
    units = queue_units(place.settings().settings.frontier.queue)
    say(f"{units} {figures.hosts:,}  ready {figures.ready:,}  fetching {figures.leased:,}")
    for crawl in figures.crawls:
        waits = None if crawl.next_at is None else max(0, crawl.next_at - figures.now) / 1000
        wait = "  fetching" if crawl.leased else "" if waits is None else f"  next in {duration(waits)}"
        again = f", {crawl.again:,} fetched again" if crawl.again else ""
        urls = f"{crawl.open:,} of {crawl.known:,} URLs open"
        say(f"crawl {crawl.name}: {urls} on {units}: {crawl.hosts:,}{again}{wait}")
    for note in notes:
        say(f"{note.host}: {note.text}")
