"""Parts that can be added from outside: found by entry points, the built-in ones like a stranger's."""

from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any

import msgspec

from tamias.model.errors import ConfigError

GROUPS = {
    "tamias.seeds": "what a user names becomes addresses (protocols.SeedSource)",
    "tamias.filters": "which URLs may enter the frontier (protocols.Filter)",
    "tamias.fetchers": "how a kind of address is fetched (protocols.Fetcher)",
    "tamias.analysers": "how a kind of document is read (protocols.Analyser)",
    "tamias.taggers": "which tags the content of a page tells (protocols.Tagger)",
    "tamias.harvesters": "how a source that is more than a document is read (protocols.Harvester)",
    "tamias.sinks": "how quads are kept (protocols.Sink)",
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
    return sorted(_plugin(entry) for group in GROUPS for entry in _registered()[group])


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


def load_all(group: str) -> dict[str, Any]:
    """Every part of a group by its name."""
    return {entry.name: load(group, entry.name) for entry in _registered()[group]}


@cache
def _registered() -> dict[str, EntryPoints]:
    """The parts of each group; looked up once, since a look opens a file of every installed package."""
    everything = entry_points()
    return {group: everything.select(group=group) for group in GROUPS}


def _plugin(entry: EntryPoint) -> Plugin:
    distribution = entry.dist
    name, version = (distribution.name, distribution.version) if distribution else ("unknown", "")
    return Plugin(entry.group, entry.name, entry.value, name, version)
