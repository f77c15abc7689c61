"""Linksets (RFC 9264): links about other things, as JSON or as text; among them API catalogues (RFC 9727)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tamias.analyse.links.header import WebLink, followed, parsed_links, web_link
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding, Problem
from tamias.settings import AnalyseSettings

MOST_LINKS = 100_000
_OF_A_CATALOGUE = frozenset({"service-desc", "service-meta"})
"""What a catalogue says of an API besides where it is."""


class LinksetAnalyser:
    """Reads the links; a linkset holds no statements of its own."""

    media_types = read_by(__name__)

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        self._limits = limits or AnalyseSettings()

    def analyse(self, document: Document) -> Iterator[Finding]:
        most = self._limits.jsonld_bytes
        data = document.stream.read(most)
        if document.stream.read(1):
            yield Problem(f"a linkset of more than {most} bytes (limit analyse.jsonld_bytes), not read")
            return
        is_json = document.media_type == "application/linkset+json" or data.lstrip()[:1] == b"{"
        try:
            links = _of_json(data) if is_json else parsed_links(data.decode("utf-8", "replace"), MOST_LINKS)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            yield Problem(f"no linkset: {fault}")
            return
        yield from followed(links, document.base, _OF_A_CATALOGUE)
        if len(links) >= MOST_LINKS:
            yield Problem(f"only the first {MOST_LINKS} links of the linkset were read")


class _Linkset(msgspec.Struct):
    linkset: list[dict[str, Any]]


def _of_json(data: bytes) -> list[WebLink]:
    found: list[WebLink] = []
    for context in msgspec.json.decode(data, type=_Linkset).linkset:
        anchor = context.pop("anchor", None)
        for relation, targets in context.items():
            for target in targets if isinstance(targets, list) else ():
                if len(found) < MOST_LINKS and isinstance(target, dict):
                    found.append(_link(relation, target, anchor))
    return found


def _link(relation: str, target: dict[str, Any], anchor: object) -> WebLink:
    parameters = {key: value for key, value in target.items() if isinstance(value, str)}
    if isinstance(anchor, str):
        parameters["anchor"] = anchor
    return web_link(parameters.pop("href", "").strip(), {**parameters, "rel": relation})
