"""Features: a package names its own in the entry-point group `tamias.features`, and Tamias does the same.

What a built-in feature may add to the core, one of another package may add too. A feature is described by
one `Feature`, whose parts are `module:name` texts: nothing is imported before it is needed.
"""

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tamias.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamias.model.resource import VersionNote
    from tamias.model.site import HostNote

GROUP = "tamias.features"
WITHOUT = "TAMIAS_WITHOUT"
"""The environment variable that names features to switch off, with commas."""

KINDS = {
    "seeds": "turn what a user names into addresses (protocols.SeedSource)",
    "filters": "decide which URLs may enter the frontier, given the settings `filters` (protocols.Filter)",
    "fetchers": "fetch a kind of address (protocols.Fetcher)",
    "signers": "sign requests, given the settings (protocols.SignRequests, or None where none is set)",
    "responses": "refuse a response before it is read (protocols.RefuseResponse)",
    "analysers": "read a kind of document (protocols.Analyser)",
    "extractors": "find data in the markup of pages (analyse.markup.page.MarkupGate)",
    "page_rules": "read files of the setting analyse.rules (protocols.PageRules)",
    "taggers": "derive tags from the content of a page (protocols.Tagger)",
    "harvesters": "read a source that is more than a document (protocols.Harvester)",
    "mappings": "read stored records (features.dcat.datasets.mapping.RecordMapping, or its maker)",
    "page_datasets": "find the datasets that the statements of a page describe, given these and its URL",
    "profilers": "say what is in a body, when it is captured and later (features.tables)",
    "table_readers": "read versions as tables, for the library (features.tables)",
    "chores": "are done now and then for the whole archive, with a session, its blobs and the settings",
    "claims": "store what a catalogue claims of datasets, where they are noted",
    "comparisons": "compare two versions of a file, for the library and the pages (features.diffs)",
    "sinks": "write segments of quads (protocols.Sink)",
    "writers": "write quads in another format (sinks.export.Writer)",
    "exports": "write other files, for `tamias export` (features.exports.verb.ExportFiles)",
    "package_signers": "sign exported files, given the settings (features.warc_exports.wacz.SignDigest)",
    "scorers": "score new URLs before they are put (crawl.commit.link_put.Scorer)",
    "upkeep": "run beside the workers of a crawl (crawl.worker.supervisor.Upkeep)",
    "revisits": "follow visits of known documents, given the database and the data directory",
    "crawl_deletions": "remove what a feature stores of a crawl, given a session and its number",
    "queries": "answer queries of `tamias.Archive` (crawl.verbs.library.AnswerQueries)",
    "erasers": "remove what was forgotten from what a feature makes",
    "rebuilds": "make again what `tamias check --rebuild` names",
    "restores": "complete a restored backup, given a session",
    "host_notes": "what is to be known of hosts, for status and pages (protocols.ReadHostNotes)",
    "version_notes": "what is to be known of versions, for lists and pages (protocols.ReadVersionNotes)",
    "stages": "take part in visits, where they are asked for (crawl.visit.stages.PlacedStage)",
    "hooks": "take part in the commits of visits (crawl.store.visit.CommitHook)",
    "crawl_sinks": "hooks that are on where a crawl names them as a sink (crawl.store.visit.CommitHook)",
    "recoveries": "complete files that a dead worker left open, given the files and its number (None: any)",
    "recordings": "list stored responses of a URL, newest first, given a session, it and how many",
    "files": "files that a backup copies (features.backup.backup)",
    "continuous": "parts of a crawl that goes on: `schedule` (a hook of its commits), `hints`, `supervision`",
    "crawl_options": "what options of `tamias crawl` do: `dry-run`, and `import-seeds` of other crawlers",
    "remote_workers": "run workers that need no database (cli.worker.RunWorkers)",
    "sink_targets": "check the target of a sink, before it is stored",
    "sink_trials": "try a sink before a crawl begins (without one, the folder of a `…-files` sink is made)",
    "graph_sinks": "receive graphs after the commit (sinks.delivery.GraphSink)",
    "pages": "pages of the service; their templates are in `templates/` (features.pages.html.page.HtmlPage)",
    "tasks": "run beside the service until it ends (features.service.run.ServiceTask)",
    "metrics": "gauges of the service (features.service.http.health.Gauge)",
    "endpoints": "lists of endpoints of the service (features.service.http.endpoints.Endpoint)",
    "routes": "add routes to the service, or wrap those of others (features.service.app.AddRoutes)",
    "problem_pages": "show an error to people (features.service.http.negotiation.ProblemPage)",
    "check": "verify the part of a feature (crawl.verbs.check.CheckPart)",
    "repairs": "finish what was interrupted, before a repair and after a restore (crawl.verbs.check.Repair)",
    "keepers": "modules that own a server of a data directory: `database` (database.embedded_server)",
    "bodies": "bodies that a feature needs, by name and digest (protocols.NeededBodies)",
}
"""The kinds of parts that a feature may have besides verbs and formats."""

NO_PARTS: Mapping[str, Any] = MappingProxyType({})


class Verb(NamedTuple):
    """A command of `tamias`: one line for `tamias --help`, and the click command as `module:name`."""

    about: str
    target: str


class Feature:
    """A feature: its name, a line about it, the features it needs, and its parts by kind and name."""

    def __init__(
        self,
        name: str,
        about: str,
        module: str,
        *,
        requires: tuple[str, ...] = (),
        tables: tuple[str, ...] = (),
        schema: str = "",
        settings: str = "",
        verbs: Mapping[str, Verb] = NO_PARTS,
        **parts: Mapping[str, Any],
    ) -> None:
        """Describe a feature by its parts, each kind by a word of `KINDS`.

        `module` is the module or package that it is in: `__name__`. Only it, and features that require it,
        may use its `tables` (tools/features.py checks that). `schema` is the `.sql` file in its folder that
        makes them: blocks `version_1`, `version_2`, … run once each, after the core's schema; the first must
        bear that the tables are there. A block `rights` has grants. `settings` is `module:Struct` of its
        settings, the table of its name; they belong to the machine, not to a crawl. `formats` are by media
        type the other fields of its row in the table of formats (content.formats.Format).
        """
        if unknown := parts.keys() - {*KINDS, "formats"}:
            raise ConfigError(
                f"the feature '{name}' has parts of kinds that there are not: {sorted(unknown)}"
            )
        self.name, self.about, self.module, self.requires = name, about, module, requires
        self.tables, self.schema, self.settings, self.verbs = tables, schema, settings, verbs
        self._parts: dict[str, Mapping[str, Any]] = {**parts, "verbs": verbs}

    def parts(self, kind: str) -> Mapping[str, Any]:
        """Return the parts of a kind, by name."""
        return self._parts.get(kind, NO_PARTS)


class InstalledFeature(NamedTuple):
    """A feature and the package it comes from."""

    feature: Feature
    distribution: str
    version: str
    is_on: bool


def parts(kind: str) -> dict[str, str]:
    """Return `module:name` of every part of a kind by its name. Raises `ConfigError` if two share a name."""
    return {name: target for name, (target, _) in _parts(kind).items()}


def verbs() -> dict[str, Verb]:
    """Return every verb by its name."""
    return {name: verb for name, (verb, _) in _parts("verbs").items()}


def formats() -> dict[str, Mapping[str, Any]]:
    """Return the formats that features add, by media type."""
    return {name: row for name, (row, _) in _parts("formats").items()}


def load(kind: str, name: str) -> Any:
    """Import a part. Raises `ConfigError` when there is none of this name, or when it cannot be imported."""
    known = parts(kind)
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise ConfigError(f"there is no {kind} part named '{name}'; installed: {there}")
    try:
        return load_target(known[name])
    except Exception as error:
        raise ConfigError(f"the plug-in '{name}' of {kind} cannot be loaded: {error}") from error


@cache
def find(kind: str, name: str) -> Any:
    """Import a part; None where no feature that is on has it."""
    return load(kind, name) if name in parts(kind) else None


def load_target(target: str) -> Any:
    """Import `module:name`."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def load_own(*kinds: str) -> None:
    """Import the built-in parts of some kinds ahead of their use; code of other packages is not run."""
    for target in (target for kind in kinds for target in parts(kind).values()):
        if target.startswith("tamias."):
            load_target(target)


def load_all(kind: str) -> dict[str, Any]:
    """Import every part of a kind."""
    return {name: load(kind, name) for name in parts(kind)}


def host_notes(session: Any) -> "list[HostNote]":
    """Read the notes of all features about hosts."""
    return [note for read in load_all("host_notes").values() for note in read(session)]


def version_notes(session: Any, resources: "Sequence[str] | None") -> "list[VersionNote]":
    """Read the notes of all features about versions, of some resources or of all."""
    return [note for read in load_all("version_notes").values() for note in read(session, resources)]


def notes_of(session: Any, resource: str) -> dict[int, tuple[str, ...]]:
    """Return the notes about the versions of a resource, by their numbers."""
    found: dict[int, tuple[str, ...]] = {}
    for note in version_notes(session, [resource]):
        found[note.number] = (*found.get(note.number, ()), note.text)
    return found


def needed_bodies(session: Any) -> list[tuple[str, str, str]]:
    """Return kind, name and digest of the bodies that features need; those that are off need theirs too."""
    found = [part for each in installed_features() for part in each.feature.parts("bodies").items()]
    return [(kind, *row) for kind, target in found for row in load_target(target)(session)]


def parts_of_all(kind: str) -> list[Any]:
    """Import every part of a kind, also of features that are off."""
    targets = [target for each in installed_features() for target in each.feature.parts(kind).values()]
    return [load_target(target) for target in targets]


@cache
def installed_features() -> tuple[InstalledFeature, ...]:
    """Return every feature, the core first; one is off if it is named in `TAMIAS_WITHOUT` or lacks another.

    They are looked up once: a look opens a file of every installed package.
    """
    from importlib.metadata import entry_points

    found: dict[str, InstalledFeature] = {}
    for entry in entry_points(group=GROUP):
        package = entry.dist
        origin = (package.name, package.version) if package else ("unknown", "")
        try:
            for feature in entry.load():
                if found.setdefault(feature.name, each := InstalledFeature(feature, *origin, True)) != each:
                    raise ConfigError(f"a feature named '{feature.name}' is installed already")
        except Exception as error:
            raise ConfigError(f"the features of the package {origin[0]} cannot be loaded: {error}") from error
    if "core" not in found:
        raise ConfigError("Tamias is not installed: run 'pip install .' where its pyproject.toml is")
    on = found.keys() - {name.strip() for name in os.environ.get(WITHOUT, "").split(",")} | {"core"}
    while lacking := {name for name in on if not on.issuperset(found[name].feature.requires)}:
        on -= lacking
    listed = sorted(found.values(), key=lambda each: (each.feature.name != "core", each.feature.name))
    return tuple(each._replace(is_on=each.feature.name in on) for each in listed)


def features() -> "list[Feature]":
    """Return the features that are on."""
    return [each.feature for each in installed_features() if each.is_on]


@cache
def _parts(kind: str) -> dict[str, tuple[Any, str]]:
    """Return the parts of a kind, with the feature each belongs to."""
    merged: dict[str, tuple[Any, str]] = {}
    for feature in features():
        for name, part in feature.parts(kind).items():
            if name in merged:
                both = f"{merged[name][1]} and {feature.name}"
                raise ConfigError(f"two features add {kind} '{name}': {both}; uninstall one of them")
            merged[name] = (part, feature.name)
    return merged
