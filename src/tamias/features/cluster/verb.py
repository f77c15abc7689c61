"""`tamias cluster`: the frontier on a cluster of PostgreSQL servers, or in another number of buckets."""

import logging
from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json

_log = logging.getLogger(__name__)


@click.group()
def command() -> None:
    """Takes the frontier past one machine.

    Example: tamias cluster init --db postgresql://coordinator/tamias
    """


@command.command()
@click.option(
    "--shards", type=click.IntRange(1, 64_000), default=32, show_default=True, help="Shards of each table."
)
@common
def init(place: CommonOptions, shards: int) -> None:
    """Distributes the tables by bucket, where the server is the coordinator of a Citus cluster.

    Example: tamias cluster init --db postgresql://coordinator/tamias
    """
    from tamias.database.citus import distribute
    from tamias.database.connect import Database

    buckets = place.settings().settings.frontier.buckets
    with (
        closing(Database(place.data, place.db, buckets=buckets)) as database,
        closing(database.session()) as session,
    ):
        done = distribute(session, shards)
    if place.json:
        say_json(done)
        return
    say(f"distributed by bucket: {', '.join(done.distributed) or 'nothing new'}")
    say(f"on every node: {', '.join(done.referenced) or 'nothing new'}")
    say(f"on the coordinator: {', '.join(done.on_coordinator) or 'nothing new'}")
    if done.buckets < 16:
        say(f"the data has {done.buckets} buckets, which is few for a cluster: see 'tamias cluster rebucket'")


@command.command()
@click.option(
    "--to", "target", required=True, metavar="URL", help="The new database; it must hold no Tamias data."
)
@click.option("--buckets", type=click.IntRange(1, 32_768), required=True, help="A power of two.")
@common
def rebucket(place: CommonOptions, target: str, buckets: int) -> None:
    """Copies the data into a new database with another number of buckets, piece by piece.

    Stop all crawls first. If it is cut off, run it again to continue. The data folder stays the same: use it
    with the new --db.

    Example: tamias cluster rebucket --to postgresql://coordinator/tamias --buckets 64
    """
    from tamias.database.connect import Database
    from tamias.features.cluster.rebucket import rebucket as copy

    with closing(Database(place.data, place.db, create=False)) as database:
        copied = copy(database, target, buckets, _log.info)
    if place.json:
        say_json(copied)
        return
    for each in copied:
        say(f"{each.name:16} {each.rows:>14,} rows")
