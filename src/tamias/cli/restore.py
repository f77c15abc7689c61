"""`tamias restore`: a snapshot becomes an archive again."""

from contextlib import closing
from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


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
def command(place: CommonOptions, folder: Path, snapshot: str | None, take_over: bool) -> int:
    """Restores a snapshot into an empty --data (and --db); every byte is verified.

    What was forgotten is removed again. Workers and leases are not restored; due visits stay due. `tamias
    serve` or `tamias query` rebuilds the SPARQL store. Bodies in an S3 store stay those of the archive
    that was backed up: the restored one reads them and removes none, unless you say --take-over.

    Example: tamias restore /mnt/backup/tamias --data tamias-data
    """
    from tamias.crawl.verbs.backup.backup import restore
    from tamias.crawl.verbs.forgetting.forgetter import Forgetter
    from tamias.database.connect import Database

    name, restored = restore(folder, snapshot, place.data.absolute(), place.db, take_over=take_over)
    settings = place.settings().settings
    with (
        closing(Database(place.data, place.db)) as database,
        closing(Forgetter(database, place.data.absolute(), settings)) as forgetter,
    ):
        left = forgetter.run().remains
    rows = sum(table.rows for table in restored.tables)
    if place.json:
        say_json({"snapshot": name, "rows": rows, "files": len(restored.files), "bytes": restored.bytes})
    else:
        say(f"restored  {name}: {rows:,} rows, {len(restored.files):,} files, {restored.bytes:,} bytes")
        say(f"in        {place.data}; 'tamias check' verifies every byte")
        if restored.blobs and not take_over:
            say(f"borrowed  the bodies in {restored.blobs}: it only reads them; see --take-over")
        for each in dict.fromkeys(left):
            say(f"left      of what was forgotten: {each}; 'tamias forget --finish' goes on")
    return 0
