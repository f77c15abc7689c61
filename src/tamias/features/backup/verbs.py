"""`tamias backup` and `tamias restore`: a snapshot of a live archive, and an archive made of one."""

from contextlib import closing
from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@common
def backup(place: CommonOptions, folder: Path) -> int:
    """Takes a snapshot of the database and all its files; crawls and services can keep running.

    A folder can hold any number of snapshots: bytes that are already there are not copied again. It does not
    contain the settings, the secret, and bodies in an S3 store, which you back up with its own tools.

    Example: tamias backup /mnt/backup/tamias
    """
    from tamias.database.connect import Database
    from tamias.features.backup.backup import take

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


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--snapshot", metavar="TIME", help="The snapshot, by the name that 'tamias backup' printed. [the newest]"
)
@click.option(
    "--take-over",
    is_flag=True,
    help="The archive of this backup is lost: the S3 store of its bodies becomes this one's.",
)
@common
def restore(place: CommonOptions, folder: Path, snapshot: str | None, take_over: bool) -> int:
    """Restores a snapshot into an empty --data (and --db); every byte is verified.

    What was forgotten is removed again. Workers and leases are not restored; due visits stay due. `tamias
    serve` or `tamias query` rebuilds the SPARQL store. Bodies in an S3 store stay those of the archive
    that was backed up: the restored one reads them and removes none, unless you say --take-over.

    Example: tamias restore /mnt/backup/tamias --data tamias-data
    """
    from tamias.crawl.verbs.check import finish_interrupted
    from tamias.database.connect import Database
    from tamias.features.backup.backup import restore_snapshot

    name, restored = restore_snapshot(folder, snapshot, place.data.absolute(), place.db, take_over=take_over)
    settings = place.settings().settings
    with closing(Database(place.data, place.db)) as database:
        left = finish_interrupted(database, place.data.absolute(), settings)
    rows = sum(table.rows for table in restored.tables)
    if place.json:
        say_json({"snapshot": name, "rows": rows, "files": len(restored.files), "bytes": restored.bytes})
    else:
        say(f"restored  {name}: {rows:,} rows, {len(restored.files):,} files, {restored.bytes:,} bytes")
        say(f"in        {place.data}; 'tamias check' verifies every byte")
        if restored.blobs and not take_over:
            say(f"borrowed  the bodies in {restored.blobs}: it only reads them; see --take-over")
        for each in dict.fromkeys(left):
            say(f"left      {each}; 'tamias forget --finish' finishes it")
    return 0
