"""`tamias import`: captures of other crawlers become documents and versions, without a request."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tamias.access import audited
from tamias.cli.console.options import CommonOptions, common, printable, say, say_json
from tamias.cli.console.progress import by_outcome

if TYPE_CHECKING:
    from tamias.features.imports.importer import ImportResult

SHOWN = 20
SOME_LEFT = 5
"""The exit code where files were not taken."""


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--crawl", "name", default="", help="Name of the crawl that they belong to. [default]")
@click.option(
    "--archive", is_flag=True, help="Store every body as a version, not only those of watched resources."
)
@common
def command(place: CommonOptions, files: tuple[Path, ...], *, name: str, archive: bool) -> int:
    """Imports captures from WARC, ARC and WACZ files, CDX indexes beside WARC files, or folders of them.

    Their records are kept as they are: every capture can be replayed and exported. They become documents with
    the times of their records, and versions of what you watch. Nothing is requested, and no link is followed.
    What is there already is passed over, so you can stop an import and run it again. Exit code 5 says that
    files were not taken; they are named.

    Example: tamias import crawl-data/ --archive
    """
    import asyncio

    from tamias.database.connect import Database
    from tamias.features.imports.importer import import_captures
    from tamias.plugins import load_all

    settings = place.settings().settings
    with (
        closing(Database(place.data, place.db, buckets=settings.frontier.buckets)) as database,
        closing(database.session()) as session,
        audited(session, place.data, "import", [str(file) for file in files]) as ending,
    ):
        work = import_captures(database, place.data, settings, files, crawl=name, archive=archive)
        done = asyncio.run(work)
        for follow in load_all("revisits").values():
            follow(database, place.data)
        known = done.known or done.known_records
        if (done.problems or done.not_taken) and not (done.captures or done.records or known):
            ending.failure = "nothing could be imported"
    _tell(place, done)
    return 1 if ending.failure is not None else SOME_LEFT if done.not_taken else 0


def _tell(place: CommonOptions, done: "ImportResult") -> None:
    if place.json:
        say_json(done)
        return
    outcomes = by_outcome(done.outcomes)
    say(f"files      {done.files:,}")
    say(f"records    {done.records:,} new, {done.known_records:,} known")
    say(f"captures   {done.captures:,} new{f' ({outcomes})' if outcomes else ''}, {done.known:,} known")
    say(f"documents  {done.documents:,} hold something else now")
    say(f"versions   {done.versions:,} new")
    if done.excluded:
        say(f"excluded   {done.excluded:,} by filters or block lists")
    if done.forgotten:
        say(f"forgotten  {done.forgotten:,} left out ('tamias forget --list' says why)")
    rate = done.file_bytes / 1e6 / max(done.seconds, 0.001)
    say(f"bytes      {done.bytes:,} of bodies, {done.file_bytes:,} of files")
    say(f"seconds    {done.seconds:.1f} ({rate:.1f} MB/s of files)")
    for each in done.not_taken:
        click.echo(f"not taken: {printable(each)}", err=True)
    if done.problems:
        say(f"problems   {done.problems:,}")
    for problem in done.shown[:SHOWN]:
        where = f"{problem.file}, byte {problem.offset}: " if problem.file else ""
        click.echo(f"problem: {printable(where + problem.problem)}", err=True)
    if done.problems > SHOWN:
        click.echo(
            f"{done.problems - SHOWN:,} more problems; --json lists the first {len(done.shown)}", err=True
        )
