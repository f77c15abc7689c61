"""`tamias restore`: a snapshot becomes an archive again."""

from pathlib import Path

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--snapshot", metavar="TIME", help="The snapshot, by the name that 'tamias backup' printed. [the newest]"
)
@common
def command(place: CommonOptions, folder: Path, snapshot: str | None) -> int:
    """Restores a snapshot into an empty --data (and --db); every byte is verified.

    Workers and leases are not restored; due visits stay due. `tamias serve` or `tamias query` rebuilds
    the SPARQL store.

    Example: tamias restore /mnt/backup/tamias --data tamias-data
    """
    from tamias.crawl.verbs.backup.backup import restore

    name, restored = restore(folder, snapshot, place.data.absolute(), place.db)
    rows = sum(table.rows for table in restored.tables)
    if place.json:
        say_json({"snapshot": name, "rows": rows, "files": len(restored.files), "bytes": restored.bytes})
    else:
        say(f"restored  {name}: {rows:,} rows, {len(restored.files):,} files, {restored.bytes:,} bytes")
        say(f"in        {place.data}; 'tamias check' verifies every byte")
    return 0
