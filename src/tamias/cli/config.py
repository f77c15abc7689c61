"""`tamias config show`: every setting, its value, and where the value came from."""

import click

from tamias.cli.common import Place, common, say, say_json
from tamias.settings import all_settings


@click.group()
def command() -> None:
    """What is set, and where each value came from.

    Example: tamias config show
    """


@command.command()
@common
def show(place: Place) -> None:
    """Lists every setting with its value and the place it came from.

    Example: TAMIAS_FETCH__DELAY=0.5 tamias config show
    """
    resolved = place.settings()
    rows = [(each, getattr(getattr(resolved.settings, each.table), each.name)) for each in all_settings()]
    if place.json:
        say_json({each.key: {"value": value, "origin": resolved.origins[each.key]} for each, value in rows})
        return
    for each, value in rows:
        say(f"{each.key:28} {_text(value):32} {resolved.origins[each.key]:14} {each.help}")


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value) or "-"
    return "-" if value is None else str(value)
