"""Microdata to RDF, as the W3C's note of that name has it.

An item is visited once, whoever refers to it; one that is a part of itself is a problem.
"""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import cast

import msgspec
from lxml import etree
from pyoxigraph import BlankNode, Literal, NamedNode

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup.rdfa import text_of
from tamias.features.markup.rdfa.names import RDF
from tamias.features.markup.statements import XSD, MarkupStatements, Node, Term, date_type, is_absolute
from tamias.model.finding import Finding

REGISTRY: dict[str, dict[str, str]] = {
    "http://schema.org/": {"additionalType": RDF + "type"},
    "https://schema.org/": {"additionalType": RDF + "type"},
}
"""Vocabularies that say where their names end, each with the properties that imply another."""

_TYPE = NamedNode(RDF + "type")
_ADDRESSES = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
}
_NUMBERS = (
    (NamedNode(XSD + "integer"), re.compile(r"[+-]?\d+")),
    (NamedNode(XSD + "double"), re.compile(r"[+-]?(?:\d+\.\d*|\.?\d+)(?:[eE][+-]?\d+)?")),
)
_LANGUAGES = ("{http://www.w3.org/XML/1998/namespace}lang", "xml:lang", "lang")
_VISIT = 64
"""What it costs to look at a property once more, should nothing come of it."""
_PROPERTY = frozenset({"itemprop", "itemprop-reverse"})

_Elements = list[etree._Element]


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The statements of the page."""
    statements = MarkupStatements(page, "Microdata")
    with statements.bounded():
        _MicrodataWalk(page, statements).walk()
    yield from statements.findings()


class _Visit(msgspec.Struct, frozen=True):
    """An item to be visited, with the vocabulary of whoever it belongs to."""

    item: etree._Element
    vocabulary: str | None = None


class _MicrodataWalk:
    """Goes through one page."""

    def __init__(self, page: MarkupPage, statements: MarkupStatements) -> None:
        self._page = page
        self._base = page.base.partition("#")[0]
        self._statements = statements
        self._properties = _Properties(page)
        self._subjects: dict[etree._Element, Node] = {}
        self._open: set[etree._Element] = set()
        self._language: dict[etree._Element | None, str | None] = {None: None}

    def walk(self) -> None:
        """Items inside of items are visited from there, and ended before those after them begin."""
        waiting: list[_Visit | etree._Element] = [
            _Visit(item) for item in reversed(self._properties.items) if _PROPERTY.isdisjoint(item.attrib)
        ]
        while waiting:
            step = waiting.pop()
            if not isinstance(step, _Visit):
                self._open.discard(step)
            else:
                self._open.add(step.item)
                waiting.append(step.item)
                waiting.extend(reversed(self._visit(step)))

    def _visit(self, visit: _Visit) -> list[_Visit]:
        """States what the item says, and returns the items that it is the first to speak of."""
        subject = self._subject(visit.item)
        vocabulary = self._state_types(visit.item, subject) or visit.vocabulary
        found: list[_Visit] = []
        for element in self._properties.of(visit.item):
            self._statements.spend(_VISIT)
            is_new = element not in self._subjects
            value = self._value(element)
            if value is None:
                continue
            self._state(element, subject, vocabulary, value)
            if is_new and element in self._subjects:
                found.append(_Visit(element, vocabulary))
        return found

    def _subject(self, item: etree._Element) -> Node:
        if item not in self._subjects:
            identifier = (item.get("itemid") or "").strip()
            node = self._statements.reference(identifier, self._base) if identifier else None
            self._subjects[item] = node or BlankNode()
        return self._subjects[item]

    def _state_types(self, item: etree._Element, subject: Node) -> str | None:
        """The vocabulary of the first type."""
        types = [name for name in (item.get("itemtype") or "").split() if is_absolute(name)]
        for name in types:
            node = self._statements.node(name)
            if node is not None:
                self._statements.add(subject, _TYPE, node)
        return _vocabulary(types[0]) if types else None

    def _state(self, element: etree._Element, subject: Node, vocabulary: str | None, value: Term) -> None:
        for name in (element.get("itemprop") or "").split():
            for predicate in self._predicates(name, vocabulary):
                if predicate != _TYPE or not isinstance(value, Literal):
                    self._statements.add(subject, predicate, value)
        if isinstance(value, Literal):
            return
        for name in (element.get("itemprop-reverse") or "").split():
            for predicate in self._predicates(name, vocabulary):
                self._statements.add(value, predicate, subject)

    def _predicates(self, name: str, vocabulary: str | None) -> Iterator[NamedNode]:
        if is_absolute(name):
            iris = [name]
        elif vocabulary is None:
            iris = [f"{self._base}#{name}"]
        else:
            implied = REGISTRY.get(vocabulary, {}).get(name)
            iris = [vocabulary + name, implied] if implied else [vocabulary + name]
        return filter(None, map(self._statements.node, iris))

    def _value(self, element: etree._Element) -> Term | None:
        if element.get("itemscope") is not None:
            if element in self._open:
                self._statements.complain("an item is a part of itself by itemref, left out there")
                return None
            return self._subject(element)
        tag = str(element.tag).rpartition("}")[2]
        address = element.get(_ADDRESSES[tag]) if tag in _ADDRESSES else None
        if address is not None:
            return self._statements.reference(address, self._base)
        return self._literal(element, tag)

    def _literal(self, element: etree._Element, tag: str) -> Literal:
        content = element.get("content")
        if content is not None:
            return self._statements.literal(content, language=self._language_of(element))
        if tag in ("data", "meter") and (number := element.get("value")) is not None:
            kinds = (datatype for datatype, looks in _NUMBERS if looks.fullmatch(number))
            return self._statements.literal(number, datatype=next(kinds, None))
        text = element.get("datetime") if tag == "time" else None
        text = text_of(element) if text is None else text
        datatype = date_type(text) if tag == "time" else None
        return self._statements.literal(text, language=self._language_of(element), datatype=datatype)

    def _language_of(self, element: etree._Element) -> str | None:
        above: _Elements = []
        around: etree._Element | None = element
        while around not in self._language:
            above.append(cast("etree._Element", around))
            around = cast("etree._Element", around).getparent()
        language = self._language[around]
        for one in reversed(above):
            declared = next((one.get(name) for name in _LANGUAGES if one.get(name) is not None), language)
            self._language[one] = language = declared
        return language


class _Properties:
    """The elements that are properties of each item."""

    def __init__(self, page: MarkupPage) -> None:
        self._page = page
        self.items = [element for element, names in page.telling if "itemscope" in names]
        self._all = [element for element, names in page.telling if not _PROPERTY.isdisjoint(names)]
        self._own: dict[etree._Element, _Elements] = {item: [] for item in self.items}
        self._referenced: dict[str, _Elements] = {}
        for element in self._all:
            owner = self._owner(element)
            if owner is not None:
                self._own[owner].append(element)

    def of(self, item: etree._Element) -> Iterator[etree._Element]:
        """Yield the properties in the item, and those that it refers to, each once."""
        found = dict.fromkeys(self._own[item])
        for reference in dict.fromkeys((item.get("itemref") or "").split()):
            found.update(dict.fromkeys(self._at(reference)))
        return iter(found)

    def _owner(self, element: etree._Element) -> etree._Element | None:
        """The item around an element."""
        parent = element.getparent()
        while parent is not None and parent not in self._own:
            parent = parent.getparent()
        return parent

    @cached_property
    def _places(self) -> dict[str, etree._Element]:
        found = [(element.get("id") or "", element) for element, names in self._page.marked if "id" in names]
        return dict(reversed(found))

    def _at(self, reference: str) -> _Elements:
        """The properties in the element of that `id`, and itself, but for those of items in it."""
        place = self._places.get(reference)
        if place is None:
            return []
        if reference not in self._referenced:
            around = {self._owner(place)}
            inside = (
                each for each in place.iter("*") if not _PROPERTY.isdisjoint(cast("list[str]", each.keys()))
            )
            self._referenced[reference] = [
                each
                for each in inside
                if each is place or (place not in self._own and self._owner(each) in around)
            ]
        return self._referenced[reference]


def _vocabulary(kind: str) -> str:
    """The namespace of a type."""
    known = next((space for space in REGISTRY if kind.startswith(space)), None)
    return known or kind[: max(kind.rfind("#"), kind.rfind("/")) + 1] or kind
