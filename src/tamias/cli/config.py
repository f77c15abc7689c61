"""`tamias config show`: every setting, its value, and where the value came from."""

import click

from tamias.cli.console.options import CommonOptions, common, print_result
from tamias.settings import all_settings

PAGE_HEAD = """# Settings

A value comes from the default, then from `tamias.toml` (or `--config FILE`), then from the environment,
then from the flag of the same name; `tamias config show` shows which. In the file each setting is in
the table of its first word: `[fetch]` and `delay = 1.0` for `fetch.delay`. Lists are TOML lists in the
file and comma-separated in the environment.

| setting | default | environment | what it does |
|---|---|---|---|"""


@click.group()
def command() -> None:
    """Show the settings, and where each value came from.

    Example: tamias config show
    """


@command.command()
@common
def show(place: CommonOptions) -> None:
    """Lists every setting with its value and where it was set.

    Example: TAMIAS_FETCH__DELAY=0.5 tamias config show
    """
    resolved = place.settings()
    rows = [(each, resolved.settings.value(each)) for each in all_settings()]
    origins = resolved.origins
    lines = (f"{each.key:28} {_text(value):32} {origins[each.key]:14} {each.help}" for each, value in rows)
    print_result(
        place, {each.key: {"value": value, "origin": origins[each.key]} for each, value in rows}, lines
    )


@command.command()
def page() -> None:
    """Prints the documentation page of all settings (docs/settings.md).

    Example: tamias config page > docs/settings.md
    """
    click.echo(PAGE_HEAD)
    for each in all_settings():
        click.echo(f"| `{each.key}` | {_text(each.default)} | `{each.variable}` | {each.help} |")


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value) or "-"
    return "-" if value is None else str(value)
