"""`tamias plugins`: every feature, the built-in ones and those of other packages."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from tamias.cli.console.options import CommonOptions, common, say, say_json
from tamias.plugins import KINDS, InstalledFeature, installed_features

_SOURCES = frozenset({".py", ".sql", ".html", ".js", ".css", ".proto"})


@click.command()
@common
def command(place: CommonOptions) -> None:
    """Lists the installed features: on or off, their lines of code, and what each adds.

    Example: TAMIAS_WITHOUT=demo tamias plugins
    """
    features = [_listed(each) for each in installed_features()]
    if place.json:
        say_json(features)
        return
    for each in features:
        state = "on" if each["on"] else "off"
        origin = f"{each['distribution']} {each['version']}"
        say(f"{each['name']:14} {state:3} {each['lines']:>8,} lines  {origin:16} {each['about']}")
        for kind, names in each["parts"].items():
            say(f"    {kind:12} {', '.join(names)}")


def _listed(installed: InstalledFeature) -> dict[str, Any]:
    feature = installed.feature
    by_kind = {kind: [*feature.parts(kind)] for kind in ("verbs", "formats", *KINDS)}
    return {
        "name": feature.name,
        "about": feature.about,
        "on": installed.is_on,
        "lines": _count_lines(feature.module),
        "requires": feature.requires,
        "distribution": installed.distribution,
        "version": installed.version,
        "parts": {kind: names for kind, names in by_kind.items() if names},
    }


def _count_lines(module: str) -> int:
    """Count the lines of a module, or of the folder of a package; the core is counted without features."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return 0
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        return _lines(origin)
    folders = [each for each in origin.parent.iterdir() if (module, each.name) != ("tamias", "features")]
    files = (file for each in folders for file in (each, *each.rglob("*")) if file.suffix in _SOURCES)
    return sum(map(_lines, files))


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n")
