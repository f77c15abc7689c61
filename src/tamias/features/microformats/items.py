"""Microformats 1 and 2 of a page, as the items and relations of the canonical JSON.

Follows https://microformats.org/wiki/microformats2-parsing, on the tree all extractors share.
"""

from copy import deepcopy
from typing import Any

from lxml import etree

from tamias.features.microformats import values
from tamias.features.microformats.values import (
    Property,
    RepeatedTextError,
    Root,
    TextSource,
    Value,
    children,
    date_of,
    is_time,
    matching,
    properties_of,
    read_value,
    root_of,
    tag,
    words,
)

_MAX_INCLUDES = 1000
_COST = 10
"""Characters that an element may as well take, by what copying it costs."""
_INCLUDING = etree.XPath("descendant-or-self::*[@class][@itemref or @headers or contains(@class, 'include')]")


def with_includes(tree: etree._Element, source: TextSource) -> etree._Element:
    """The tree, or a copy of it in which everything included stands where it is wanted."""
    if not _wanted(tree):
        return tree
    copy = deepcopy(tree)
    by_id = {element.get("id"): element for element in reversed(list(copy.iter("*"))) if element.get("id")}
    # All parts are copied before the first is put in, so that nothing grows by including itself.
    parts = [
        (place, [deepcopy(by_id[name]) for name in names if _may_include(by_id.get(name), place, source)])
        for place, names in _wanted(copy)[:_MAX_INCLUDES]
    ]
    for place, found in parts:
        for part in found:
            part.tail = None
            place.append(part)
    return copy


def _wanted(tree: etree._Element) -> list[tuple[etree._Element, list[str]]]:
    """Return the elements that include others, with the ids of these."""
    named = ((element, _names(element)) for element in matching(_INCLUDING, tree))
    return [(element, names) for element, names in named if names]


def _names(element: etree._Element) -> list[str]:
    if "include" in words(element.get("class")):
        target = element.get("href" if tag(element) == "a" else "data") or ""
        return [target[1:]] if target.startswith("#") else []
    root = root_of(element)
    if root is None or not root.classic:
        return []
    return words(element.get("itemref") or (element.get("headers") if tag(element) == "td" else None))


def _may_include(part: etree._Element | None, place: etree._Element, source: TextSource) -> bool:
    if part is None or part is place or any(above is part for above in place.iterancestors()):
        return False
    source.spend(_COST * sum(1 for _ in part.iter()))
    return True


MAX_NESTING = 40
"""Items within items."""
_CLASSED = etree.XPath("descendant-or-self::*[@class]")
_RELATED = etree.XPath("descendant-or-self::*[@rel and @href]")


def microformats(tree: etree._Element, *, base: str, room: int) -> tuple[dict[str, Any], bool]:
    """The items and relations of a page, and whether all of them fitted into `room` characters."""
    source = TextSource(base, room)
    items: list[dict[str, Any]] = []
    complete = True
    try:
        for element, root in _outermost(with_includes(tree, source)):
            items.append(_Item(element, root, source, 0).as_json())
    except RepeatedTextError:
        complete = False
    return {"items": items, "rels": _relations(tree, source)}, complete


def _outermost(tree: etree._Element) -> list[tuple[etree._Element, Root]]:
    """Items that stand in no other item, nor in a template."""
    found: dict[etree._Element, Root] = {}
    for element in matching(_CLASSED, tree):
        root = root_of(element)
        if root is not None and not any(
            above in found or tag(above) == "template" for above in element.iterancestors()
        ):
            found[element] = root
    return list(found.items())


def _relations(tree: etree._Element, source: TextSource) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for element in matching(_RELATED, tree):
        if tag(element) in {"a", "area", "link"}:
            target = source.address(element.get("href") or "")
            for word in words(element.get("rel")):
                found.setdefault(word, {})[target] = None
    return {relation: list(addresses) for relation, addresses in found.items()}


class _Item:
    """An item while it is read."""

    def __init__(self, element: etree._Element, root: Root, source: TextSource, depth: int) -> None:
        self._element = element
        self._root = root
        self._source = source
        self._depth = depth
        self._prefixes: set[str] = set()
        self._first: dict[Property, Value] = {}
        self._date = ""
        self.properties: dict[str, list[Value]] = {}
        self.children: list[dict[str, Any]] = []
        self._has_items = False
        self._walk()
        if not root.classic:
            self._imply()

    def as_json(self) -> dict[str, Any]:
        """The item as in the canonical JSON."""
        item: dict[str, Any] = {"type": list(self._root.types), "properties": self.properties}
        if self.children:
            item["children"] = self.children
        return item

    def _walk(self) -> None:
        waiting = children(self._element)[::-1]
        while waiting:
            child = waiting.pop()
            self._source.spend(1)
            if tag(child) == "template":
                continue
            root = root_of(child, self._root) if "class" in child.attrib else None
            properties = properties_of(child, self._root)
            if root is not None:
                self._take_item(child, root, properties)
                continue
            for each in properties:
                self._add(each, read_value(each.prefix, child, self._source, self._root))
            waiting.extend(children(child)[::-1])

    def _take_item(self, element: etree._Element, root: Root, properties: list[Property]) -> None:
        self._has_items = True
        if self._depth >= MAX_NESTING:
            return
        inner = _Item(element, root, self._source, self._depth + 1)
        if not properties:
            self.children.append(inner.as_json())
        for each in properties:
            self._add(each, {**inner.as_json(), **inner._as_value(each.prefix)})

    def _as_value(self, prefix: str) -> dict[str, Any]:
        """The item's plain value as a property of another: its name, its address, or what it says."""
        own = {"p": Property("p", "name"), "u": Property("u", "url")}.get(prefix)
        value = self._first.get(own) if own else None
        if value is None:
            value = read_value(prefix, self._element, self._source, self._root)
        if isinstance(value, dict) and "properties" in value:  # an item is named by an item
            value = value["value"]
        return value if isinstance(value, dict) and "html" in value else {"value": value}

    def _add(self, each: Property, value: Value) -> None:
        if each.prefix == "dt" and isinstance(value, str):
            value = self._dated(value)
        self._prefixes.add(each.prefix)
        self._first.setdefault(each, value)
        self.properties.setdefault(each.name, []).append(value)

    def _dated(self, value: str) -> str:
        """A time without a date has the date of the one before."""
        if self._date and is_time(value):
            return f"{self._date} {value}"
        self._date = date_of(value) or self._date
        return value

    def _imply(self) -> None:
        element, source = self._element, self._source
        if not (self._has_items or self._prefixes & {"p", "e"} or "name" in self.properties):
            self._add(Property("p", "name"), values.name_of(element, source))
        if self._has_items or "u" in self._prefixes:
            return
        if "photo" not in self.properties and (photo := values.photo(element, source)) is not None:
            self._add(Property("u", "photo"), photo)
        if "url" not in self.properties and (url := values.url(element, source)) is not None:
            self._add(Property("u", "url"), url)
