"""Coverage of a mapping: whether each value of a record is in DCAT, an extra, dropped for a reason, or lost.

The measure knows nothing of how records are read: it goes through the values of the source and looks for
each in the statements. Values are texts, numbers and truth values; names of fields are none, also where JSON
writes them as values (`{"key": …, "value": …}`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from lxml import etree
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tamias.content.formats import NTRIPLES
from tamias.features.dcat.datasets.mapping import FIELDS, MOST_SEARCHED
from tamias.features.dcat.datasets.terms import last_segment
from tamias.model.finding import SourceRecord

_TOKEN = re.compile(r"[-+]?\w[\w.+-]*")
_NAMES = ("key", "typeName")
_TYPES = ("typeClass", "multiple")


class FieldCoverage(msgspec.Struct, kw_only=True):
    """Counts of the values of one field."""

    field: str
    values: int = 0
    mapped: int = 0
    extra: int = 0
    dropped: int = 0
    lost: int = 0
    """Neither said nor listed as dropped."""
    reason: str | None = None


class MappingCoverage(msgspec.Struct, kw_only=True):
    """Counts of the values of many records, in total and by field."""

    records: int = 0
    values: int = 0
    mapped: int = 0
    extra: int = 0
    dropped: int = 0
    lost: int = 0
    fields: dict[str, FieldCoverage] = {}

    def add(self, source: SourceRecord, quads: list[Quad], dropped: Mapping[str, str]) -> None:
        """Count one record and the statements that it became."""
        extras = [quad for quad in quads if quad.predicate.value.startswith(FIELDS)]
        said = _Values(quad for quad in quads if not quad.predicate.value.startswith(FIELDS))
        as_extras = _Values(extras)
        self.records += 1
        for field, value in source_values(source):
            # Small numbers stand in some statement by chance: what is listed as dropped is dropped.
            found = "mapped" if value in said else "extra" if value in as_extras else "lost"
            verdict = "dropped" if field in dropped else found
            counted = self.fields.setdefault(field, FieldCoverage(field=field, reason=dropped.get(field)))
            for counts in (self, counted):
                counts.values += 1
                setattr(counts, verdict, getattr(counts, verdict) + 1)


def source_values(source: SourceRecord) -> Iterator[tuple[str, str]]:
    """Yield each value of a source with the name of its field."""
    if source.media_type == "application/json":
        yield from _json_values(msgspec.json.decode(source.body), "")
    elif source.media_type == NTRIPLES:
        for quad in parse(source.body, format=RdfFormat.N_TRIPLES):
            if isinstance(quad.object, NamedNode | Literal):
                yield last_segment(quad.predicate.value), quad.object.value
    else:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        root = etree.fromstring(source.body, parser)
        for child in root:
            yield from _xml_values(child, "")
        yield from _attributes(root, "")


def _json_values(value: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        names = [value[key] for key in _NAMES if "value" in value and isinstance(value.get(key), str)]
        prefix = ".".join(filter(None, [field, *names[:1]]))
        for key, inner in value.items():
            if not names:
                yield from _json_values(inner, ".".join(filter(None, [field, key])))
            elif key not in _NAMES and key not in _TYPES:
                yield from _json_values(inner, prefix if key == "value" else f"{prefix}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _json_values(inner, field)
    elif isinstance(value, str):
        if value.strip():
            yield field, value.strip()
    elif value is not None:
        yield field, msgspec.json.encode(value).decode()


def _xml_values(element: Any, field: str) -> Iterator[tuple[str, str]]:
    name = str(element.tag).rpartition("}")[2]
    field = f"{field}.{name}" if field else name
    yield from _attributes(element, field)
    text = (element.text or "").strip()
    if text:
        yield (f"{field}.#text" if len(element) or element.attrib else field), text
    for child in element.iterchildren("{*}*"):
        yield from _xml_values(child, field)


def _attributes(element: Any, field: str) -> Iterator[tuple[str, str]]:
    for name, value in element.attrib.items():
        key = "@" + str(name).rpartition("}")[2]
        if value.strip():
            yield (f"{field}.{key}" if field else key), value.strip()


class _Values:
    """The values of statements: whole, within longer ones, and the numbers of geometries."""

    def __init__(self, quads: Any) -> None:
        self._whole: set[str] = set()
        self._tokens: set[str] = set()
        for quad in quads:
            for term in (quad.subject, quad.object):
                if isinstance(term, NamedNode):
                    self._whole.update((term.value, re.split(r"[/#]", term.value.rstrip("/#"))[-1].lower()))
                elif isinstance(term, Literal):
                    self._whole.add(term.value.strip())
                    if term.value[:1] in "[{" or "(" in term.value:
                        self._tokens.update(_TOKEN.findall(term.value))
        self._text = "\n".join(self._whole)
        self._searches = MOST_SEARCHED // (len(self._text) + 1)

    def __contains__(self, value: str) -> bool:
        if value in self._whole or value.lower() in self._whole or value in self._tokens:
            return True
        if len(value) <= 3 or value in ("true", "false") or self._searches <= 0:
            return False
        self._searches -= 1
        return value in self._text
