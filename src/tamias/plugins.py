"""Parts that can be added from outside: found by entry points, the built-in ones like a stranger's."""

from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

import msgspec

from tamias.content.formats import add
from tamias.model.errors import ConfigError

GROUPS = {
    "tamias.seeds": "what a user names becomes addresses (protocols.SeedSource)",
    "tamias.filters": "which URLs may enter the frontier (protocols.Filter)",
    "tamias.fetchers": "how a kind of address is fetched (protocols.Fetcher)",
    "tamias.formats": "what formats there are, and what reads them (content.formats.Format)",
    "tamias.analysers": "how a kind of document is read (protocols.Analyser)",
    "tamias.taggers": "which tags the content of a page gives (protocols.Tagger)",
    "tamias.harvesters": "how a source that is more than a document is read (protocols.Harvester)",
    "tamias.sinks": "how segments of quads are written (protocols.Sink)",
    "tamias.graph_sinks": "where graphs are delivered after the commit (sinks.delivery.GraphSink)",
}


class Plugin(msgspec.Struct, frozen=True, order=True):
    """One registered part and where it came from."""

    group: str
    name: str
    target: str
    distribution: str
    version: str


def installed() -> list[Plugin]:
    """Every part of every group."""
    listed = [_plugin(group, entry) for group in GROUPS for entry in _registered()[group]]
    return sorted({*listed, *_analysers_of_formats()})


def load_formats() -> None:
    """Puts the formats of every installed part into the table. May be called again."""
    add(row for rows in load_all("tamias.formats").values() for row in rows)


def load(group: str, name: str) -> Any:
    """The class behind a name. Raises `ConfigError` when there is none, or when it cannot be imported."""
    entries = _registered()[group]
    if name not in entries.names:
        known = ", ".join(sorted(entries.names)) or "none"
        raise ConfigError(
            f"there is no {group.removeprefix('tamias.')} part named '{name}'; installed: {known}"
        )
    try:
        return entries[name].load()
    except Exception as error:
        raise ConfigError(f"the plug-in '{name}' of {group} cannot be loaded: {error}") from error


def load_own(*groups: str) -> None:
    """Imports the built-in parts of some groups ahead of their use. Those of others are not run before."""
    for group in groups:
        for entry in _registered()[group]:
            if entry.module.startswith("tamias."):
                entry.load()


def load_all(group: str) -> dict[str, Any]:
    """Every part of a group by its name."""
    return {entry.name: load(group, entry.name) for entry in _registered()[group]}


@cache
def _registered() -> dict[str, EntryPoints]:
    """The parts of each group; looked up once, since a look opens a file of every installed package."""
    everything = entry_points()
    return {group: everything.select(group=group) for group in GROUPS}


def _analysers_of_formats() -> Iterator[Plugin]:
    """The analysers that rows of the table name; they need no entry point of their own."""
    for entry in _registered()["tamias.formats"]:
        part = _plugin("tamias.analysers", entry)
        for target in {row.analyser for row in load("tamias.formats", entry.name) if row.analyser}:
            name = target.rpartition(":")[2].removesuffix("Analyser").lower()
            yield msgspec.structs.replace(part, name=name, target=target)


def _plugin(group: str, entry: EntryPoint) -> Plugin:
    distribution = entry.dist
    name, version = (distribution.name, distribution.version) if distribution else ("unknown", "")
    return Plugin(group, entry.name, entry.value, name, version)
