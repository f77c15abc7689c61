"""`tamias repack`: versions take less room, and stay what they are."""

from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, Duration, common, say, say_json

_LOW_PRIORITY = 10


@click.command()
@click.option(
    "--after",
    type=Duration(min=0),
    metavar="DURATION",
    help="Only resources that have had no new version for this long. [archive.repack_after]",
)
@click.option(
    "--max-time",
    type=Duration(min=0),
    metavar="DURATION",
    help="Stop after so much CPU time; the next run continues there.",
)
@click.option(
    "--all", "again", is_flag=True, help="Look at all resources again, not only at those that changed."
)
@click.option(
    "--captures-months",
    type=click.IntRange(min=0, max=600),
    metavar="N",
    help="Move captures to Parquet files in the store, except those of the last N complete months; 0 moves"
    " none. [archive.captures_months]",
)
@common
def command(
    place: CommonOptions,
    after: float | None,
    max_time: float | None,
    again: bool,
    captures_months: int | None,
) -> int:
    """Stores the versions of resources that have not changed lately in less space.

    With --captures-months it also moves captures of old months out of the database; all commands and pages
    still find them.

    Reads and captures continue meanwhile. You can kill it at any moment. `tamias serve` does the same in the
    background.

    Example: tamias repack --after 0
    """
    import os

    from tamias.database.connect import Database
    from tamias.features.repack.repacker import repack

    settings = place.settings().settings.archive
    if after is None:
        after = settings.repack_after
    months = settings.captures_months if captures_months is None else captures_months
    os.nice(_LOW_PRIORITY)
    with closing(Database(place.data, place.db, create=False)) as database:
        done = repack(database, place.data, after=after, seconds=max_time, again=again, months=months)
    if place.json:
        say_json(done)
        return 0
    say(f"repacked  {done.versions:,} versions of {done.resources:,} resources")
    say(f"bytes     {done.before:,} before, {done.after:,} now")
    say(f"freed     {done.freed.bytes:,} bytes on disk")
    if done.segments:
        say(f"merged    {done.segments:,} segments of statements, {done.segment_bytes:,} bytes less")
    if done.captures:
        say(f"captures  {done.captures:,} moved to files")
    if not done.complete:
        say("left      more to do; run it again")
    return 0
