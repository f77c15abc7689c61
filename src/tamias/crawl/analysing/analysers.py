"""The analysers of a crawl, made from its settings; and how far bodies may be unpacked."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.limits import AnalyseLimits
from tamias.analyse.rules import RuleBook, load_rules
from tamias.content.containers.limits import OpenLimits
from tamias.content.formats import FORMATS, load_analyser
from tamias.plugins import load_all, load_formats
from tamias.protocols import Analyser
from tamias.settings import Settings


def analysers(settings: Settings, contexts: Contexts | None = None) -> dict[str, Analyser]:
    """The analyser of each media type that the table of formats or an installed part can read.

    `contexts` gives the JSON-LD contexts that are at hand.
    """
    load_formats()
    classes = {media_type: load_analyser(media_type) for media_type in FORMATS}
    made = {part: _made(part, settings, contexts) for part in set(classes.values()) if part is not None}
    found = {media_type: made[part] for media_type, part in classes.items() if part is not None}
    for part in load_all("tamias.analysers").values():
        analyser = _made(part, settings, contexts)
        found.update(dict.fromkeys(analyser.media_types, analyser))
    return found


def open_limits(settings: Settings) -> OpenLimits:
    """How far a body may be unpacked."""
    wanted = settings.open
    return OpenLimits(
        max_bytes=wanted.max_unpacked,
        max_ratio=wanted.max_ratio,
        max_members=wanted.max_members,
        max_layers=wanted.max_layers,
        max_archives=wanted.max_archives,
    )


def _made(part: Callable[..., Analyser], settings: Settings, contexts: Contexts | None) -> Analyser:
    """Gives a part what its constructor asks for by name: `limits`, `rules`, `contexts`, `anchors`."""
    offered: dict[str, Callable[[], Any]] = {
        "limits": lambda: _limits(settings),
        "rules": lambda: rule_books(settings),
        "contexts": lambda: contexts,
        "anchors": lambda: settings.strategy.links,
    }
    asked = signature(part).parameters
    return part(**{name: make() for name, make in offered.items() if name in asked})


def _limits(settings: Settings) -> AnalyseLimits:
    names = AnalyseLimits.__struct_fields__
    return AnalyseLimits(**{name: getattr(settings.analyse, name) for name in names})


def rule_books(settings: Settings) -> list[RuleBook]:
    """The scraping rules in force; raises `ConfigError` with file and line."""
    return [load_rules(Path(place)) for place in settings.analyse.rules]
