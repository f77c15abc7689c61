"""`tamias backup`: a consistent snapshot of a live archive."""

from contextlib import closing
from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@common
def command(place: CommonOptions, folder: Path) -> int:
    """Takes a snapshot of the database and all its files; crawls and services can keep running.

    A folder can hold any number of snapshots: bytes that are already there are not copied again. It does not
    contain the settings, the secret, and bodies in an S3 store, which you back up with its own tools.

    Example: tamias backup /mnt/backup/tamias
    """
    from tamias.crawl.verbs.backup.backup import take
    from tamias.database.connect import Database

    with closing(Database(place.data, place.db, create=False)) as database:
        taken = take(database, place.data.absolute(), folder)
    if place.json:
        say_json(taken)
        return 0
    say(f"snapshot  {taken.name}: {taken.rows:,} rows, {taken.files:,} files, {taken.bytes:,} bytes")
    say(f"copied    {taken.new_bytes:,} bytes that were not in {folder} yet")
    if taken.blobs:
        say(f"not here  the bodies in {taken.blobs}")
    return 0
