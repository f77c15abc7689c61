"""`tamias server-names`: the software of crawled servers."""

from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@common
def command(place: CommonOptions) -> None:
    """Lists the software that servers say they are.

    Example: tamias server-names --json
    """
    from tamias.database.connect import Database
    from tamias.database.sql import statements

    names = statements("server_names", "server_names.sql")["names"]
    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        rows = session.fetch_all(names)
    if place.json:
        say_json([dict(zip(("name", "hosts", "responses"), row, strict=True)) for row in rows])
        return
    for name, hosts, responses in rows:
        say(f"{name:40} {hosts:>8,} hosts {responses:>8,} responses")
