"""Version 1's ways to reuse a part of the page elsewhere: `include`, `itemref`, and the headers of a table.

They are carried out on a copy of the tree, which pages that use none of them do not pay for.
"""

from copy import deepcopy

from lxml import etree

from tamias.analyse.markup.microformats.names import root_of
from tamias.analyse.markup.microformats.text import Budget, matching, tag, words

_MAX_INCLUDES = 1000
_COST = 10
"""Characters that an element may as well take, by what copying it costs."""
_INCLUDING = etree.XPath("descendant-or-self::*[@class][@itemref or @headers or contains(@class, 'include')]")


def with_includes(tree: etree._Element, budget: Budget) -> etree._Element:
    """The tree, or a copy of it in which everything included stands where it is wanted."""
    if not _wanted(tree):
        return tree
    copy = deepcopy(tree)
    by_id = {element.get("id"): element for element in reversed(list(copy.iter("*"))) if element.get("id")}
    # All parts are copied before the first is put in, so that nothing grows by including itself.
    parts = [
        (place, [deepcopy(by_id[name]) for name in names if _may_include(by_id.get(name), place, budget)])
        for place, names in _wanted(copy)[:_MAX_INCLUDES]
    ]
    for place, found in parts:
        for part in found:
            part.tail = None
            place.append(part)
    return copy


def _wanted(tree: etree._Element) -> list[tuple[etree._Element, list[str]]]:
    """Where something is to be included, and the ids of what."""
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


def _may_include(part: etree._Element | None, place: etree._Element, budget: Budget) -> bool:
    if part is None or part is place or any(above is part for above in place.iterancestors()):
        return False
    budget.spend(_COST * sum(1 for _ in part.iter()))
    return True
