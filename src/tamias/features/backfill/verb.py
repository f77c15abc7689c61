"""`tamias backfill`: earlier versions of a URL, from another web archive."""

from contextlib import closing
from typing import TYPE_CHECKING

import click

from tamias.access import audited
from tamias.cli.console.options import CommonOptions, common, printable, say, say_json

if TYPE_CHECKING:
    from tamias.features.backfill.backfill import BackfillResult

SHOWN = 20


@click.command()
@click.argument("url")
@click.option("--from", "source", required=True, metavar="ADDRESS", help="A TimeMap, or a CDX server.")
@click.option("--since", default="", help="Only captures from this time on, such as 2020 or 2020-06-30.")
@click.option("--until", default="", help="Only captures up to this time.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Most captures to request."
)
@click.option("--allow-private", is_flag=True, help="Allow private and loopback addresses.")
@common
def command(
    place: CommonOptions, url: str, source: str, *, since: str, until: str, limit: int, allow_private: bool
) -> int:
    """Brings earlier versions of a URL from another web archive, by Memento (RFC 7089) or CDX.

    ADDRESS is the TimeMap of the URL, an address that ends with / and takes the URL, or a CDX server. Each
    capture is requested once, with robots.txt and delay; run the command again to continue.

    Example: tamias backfill https://example.org/data.csv --from https://web.archive.org/cdx/search/cdx
    """
    import asyncio

    from tamias.archive.moments import first_millisecond, milliseconds
    from tamias.database.connect import Database
    from tamias.features.backfill.backfill import backfill
    from tamias.features.backfill.listing import NO_END
    from tamias.model.url import fetch_url

    settings = place.settings(permit__allow_private=allow_private or None).settings
    between = (first_millisecond(since) if since else 0, milliseconds(until) if until else NO_END)
    with (
        closing(Database(place.data, place.db, buckets=settings.frontier.buckets)) as database,
        closing(database.session()) as session,
        audited(session, place.data, "backfill", [url, source]) as ending,
    ):
        work = backfill(database, place.data, settings, fetch_url(url), source, limit=limit, between=between)
        done = asyncio.run(work)
        if done.requested and not (done.imported.captures or done.imported.known or done.imported.forgotten):
            ending.failure = "nothing could be brought back"
    _tell(place, done)
    return 0 if ending.failure is None else 1


def _tell(place: CommonOptions, done: "BackfillResult") -> None:
    if place.json:
        say_json(done)
        return
    found = done.imported
    say(f"listed     {done.listed:,} captures, {done.requested:,} requested now")
    say(f"captures   {found.captures:,} new, {found.known:,} known")
    say(f"versions   {found.versions:,} new")
    if found.forgotten:
        say(f"forgotten  {found.forgotten:,} left out ('tamias forget --list' says why)")
    if done.is_cut:
        say("cut        the archive lists more; use --since and --until to bring it")
    if done.left:
        say(f"left       {done.left:,}; run the command again")
    for each in found.shown[:SHOWN]:
        click.echo(f"problem: {printable(f'{each.file}: {each.problem}')}", err=True)
