"""`tamias diff`: what changed between two versions."""

import click

from tamias.cli.common import Place, common, say, say_json
from tamias.cli.opening import archive_at


@click.command()
@click.argument("url")
@click.argument("a", required=False)
@click.argument("b", required=False)
@click.option("--key", metavar="COLUMN", help="The column that tells rows apart. [guessed]")
@common
def command(place: Place, url: str, a: str | None, b: str | None, key: str | None) -> None:
    """Tells what changed from version A to version B, each a number or a time; else in the last step.

    Example: tamias diff https://example.org/data.csv 1 4 --key id
    """
    with archive_at(place) as archive:
        found = archive.diff(url, a, b, key=key)
    if place.json:
        say_json(found)
