"""`tamias plugins`: every registered part, the built-in ones and those of others."""

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json
from tamias.plugins import GROUPS, installed


@click.command()
@common
def command(place: CommonOptions) -> None:
    """Lists the installed seeds, filters, fetchers, analysers and sinks.

    Example: tamias plugins --json
    """
    plugins = installed()
    if place.json:
        say_json(plugins)
        return
    for group, purpose in GROUPS.items():
        say(f"{group.removeprefix('tamias.')}: {purpose}")
        for each in plugins:
            if each.group == group:
                say(f"  {each.name:12} {each.target:48} {each.distribution} {each.version}")
