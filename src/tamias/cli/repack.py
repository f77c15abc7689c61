"""`tamias repack`: versions take less room, and stay what they are."""

from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json

_LOW_PRIORITY = 10


@click.command()
@click.option(
    "--after",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Only resources that have had no new version for so long. [archive.repack_after]",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Stop after so much CPU time; the next run goes on from there.",
)
@click.option(
    "--all", "again", is_flag=True, help="Look at all resources again, not only at those that changed."
)
@common
def command(place: CommonOptions, after: float | None, max_time: float | None, again: bool) -> int:
    """Stores the versions of resources that have not changed lately in less space.

    Reads and captures go on meanwhile. You can kill it at any moment. `tamias serve` does the same in the
    background.

    Example: tamias repack --after 0
    """
    import os

    from tamias.crawl.verbs.repacking import repack
    from tamias.database.connect import Database

    if after is None:
        after = place.settings().settings.archive.repack_after
    os.nice(_LOW_PRIORITY)
    with closing(Database(place.data, place.db, create=False)) as database:
        done = repack(database, place.data, after=after, seconds=max_time, again=again)
    if place.json:
        say_json(done)
        return 0
    say(f"repacked  {done.versions:,} versions of {done.resources:,} resources")
    say(f"bytes     {done.before:,} before, {done.after:,} now")
    say(f"freed     {done.freed.bytes:,} bytes on disk")
    if not done.complete:
        say("left      more to do; run it again")
    return 0
