"""`tamias host-report`: the report on the terminal."""

from contextlib import closing

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json


@click.command()
@common
def command(place: CommonOptions) -> None:
    """Lists the hosts whose resources are watched.

    Example: tamias host-report --json
    """
    from host_report.report import host_rows
    from tamias.database.connect import Database

    with (
        closing(Database(place.data, place.db, create=False)) as database,
        closing(database.session()) as session,
    ):
        rows = host_rows(session)
    if place.json:
        say_json(rows)
        return
    for row in rows:
        say(f"{row.host:40} {row.resources:>8,} resources {row.versions:>8,} versions")
