"""The analysers of a crawl, made from its settings; and how far bodies may be unpacked."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.limits import AnalyseLimits
from tamias.analyse.markup.extraction import extractors
from tamias.content.containers.limits import OpenLimits
from tamias.content.formats import FORMATS, load_analyser
from tamias.plugins import load, load_all
from tamias.protocols import Analyser, PageRules
from tamias.settings import Settings

_LATE = ("html.entities", "lxml.etree", "numpy", "tamias.analyse.rdf.plain", "tamias.analyse.xml.leniency")
"""What the analysers load where a document needs it."""


class Analysers(Mapping[str, Analyser]):
    """The analyser of each media type that the table of formats or an installed part can read.

    Those of the table are loaded with the first document of their type: most crawls meet one or two of them.
    """

    def __init__(self, settings: Settings, contexts: Contexts | None = None) -> None:
        """`contexts` gives the JSON-LD contexts that are at hand."""
        self._offered: dict[str, Callable[[], Any]] = {
            "limits": lambda: _limits(settings),
            "rules": partial(list, rule_books(settings)),
            "contexts": lambda: contexts,
            "anchors": lambda: settings.strategy.links,
            "requisites": lambda: settings.crawl.requisites,
        }
        self._of_table = {name: row.analyser for name, row in FORMATS.items() if row.analyser}
        self._by_target: dict[str, Analyser] = {}
        self._made: dict[str, Analyser] = {}
        for part in load_all("analysers").values():
            analyser = self._make(part)
            self._made.update(dict.fromkeys(analyser.media_types, analyser))

    def __getitem__(self, media_type: str) -> Analyser:
        found = self._made.get(media_type)
        return self._load(media_type) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._of_table | self._made)

    def __len__(self) -> int:
        return len(self._of_table | self._made)

    def load_everything(self) -> None:
        """Loads what documents may ask for later; for a process that will not be able to."""
        for module in (*_LATE, *extractors()):
            import_module(module)
        for media_type in self._of_table:
            self._load(media_type)

    def _load(self, media_type: str) -> Analyser:
        target = self._of_table[media_type]
        if target not in self._by_target:
            self._by_target[target] = self._make(load_analyser(media_type))
        return self._made.setdefault(media_type, self._by_target[target])

    def _make(self, part: Any) -> Analyser:
        """Gives a part what its constructor asks for by name: `limits`, `rules`, `contexts` and the like."""
        parameters = signature(part).parameters
        made: Analyser = part(**{name: make() for name, make in self._offered.items() if name in parameters})
        return made


def most_unpacked(settings: Settings, place: str) -> int:
    """Return how many bytes a body may unpack to: the setting, or else half of the free space on its disk."""
    return settings.open.max_unpacked or shutil.disk_usage(place).free // 2


def open_limits(settings: Settings) -> OpenLimits:
    """Return the limits for unpacking a body."""
    wanted = settings.open
    return OpenLimits(
        max_bytes=most_unpacked(settings, tempfile.gettempdir()),
        max_ratio=wanted.max_ratio,
        max_members=wanted.max_members,
        max_layers=wanted.max_layers,
        max_archives=wanted.max_archives,
    )


def _limits(settings: Settings) -> AnalyseLimits:
    names = AnalyseLimits.__struct_fields__
    return AnalyseLimits(**{name: getattr(settings.analyse, name) for name in names})


def rule_books(settings: Settings) -> list[PageRules]:
    """The scraping rules in force; raises `ConfigError` with file and line."""
    return [load("page_rules", "scraping")(Path(place)) for place in settings.analyse.rules]
