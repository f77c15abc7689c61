"""JSON as it is found: wrapped in comments, with commas too many, one object after another, cut off.

What is mended is told; the objects that can be had come with their places.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tamias.analyse.rdf.recover import TextPlace
from tamias.model.finding import Problem

MAX_BAD_OBJECTS = 100

_COMMENT = r"//[ \t]{0,9}(?=\n|\Z)|/\*[ \t]{0,9}\*/"
"""What is left of a wrapper where XML has taken `<![CDATA[` away."""
_BEFORE = re.compile(r"(?:(?://|/\*)[ \t]{0,9})?(?:<!\[CDATA\[|<!--)(?:[ \t]{0,9}\*/)?|" + _COMMENT)
_AFTER = re.compile(r"(?:(?:(?://|/\*)[ \t]{0,9})?(?:\]\]>|-->)(?:[ \t]{0,9}\*/)?|;|" + _COMMENT + r")\Z")
_LONGEST_WRAPPER = 40
_EXTRA = re.compile(
    r'"(?:[^"\\]++|\\.)*"|,(?=\s*[\]}])|//[^\n]{0,10000}|/\*(?:[^*]|\*(?!/)){0,10000}\*/', re.DOTALL
)
_BETWEEN = re.compile(r"[\s,;]*")
_CONTEXT = re.compile(r'\{\s*"@context"\s*:\s*')
_GRAPH = re.compile(r'\s*,\s*"@graph"\s*:\s*\[')
_NEXT_OBJECT = re.compile(r"\}\s*+(?:,\s*+)?(?=\{)")
_DECODER = json.JSONDecoder(strict=False)


class Value(NamedTuple):
    """A JSON value and where it begins."""

    value: Any
    place: TextPlace


def values(text: str) -> Iterator[Value | Problem]:
    """The objects of a text, mended where it is clear how; a problem for each thing that is wrong.

    Those of an array, or of a graph under one context, come each as a document of its own.
    """
    text = unwrapped(text)
    try:
        json.loads(text)
    except json.JSONDecodeError as fault:
        yield Problem(f"{fault.msg}; read as far as possible", fault.lineno, fault.colno)
        if "&quot;" in text or "&#34;" in text:
            text = html.unescape(text)
        text = _mended(text) or text
    yield from _one_by_one(text)


def _mended(text: str) -> str | None:
    """The text without commas and comments that do not belong there, if nothing else is wrong with it."""
    text = _without_extra(text)
    try:
        _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return text


def unwrapped(text: str) -> str:
    """Blanks for what stands around the JSON, so that places stay."""
    start, end = len(text) - len(text.lstrip("\ufeff \t\r\n\f\v")), len(text.rstrip())
    if before := _BEFORE.match(text, start):
        start = before.end()
    tail = max(start, end - _LONGEST_WRAPPER)
    if after := _AFTER.search(text[tail:end]):
        end = tail + after.start()
    return _blank(text[:start]) + text[start:end].rstrip()


def _blank(text: str) -> str:
    return re.sub(r"\S", " ", text)


def _without_extra(text: str) -> str:
    """Twice, for a comma may be hidden by the comment after it."""
    return _EXTRA.sub(_without_comma, _EXTRA.sub(_without_comma, text))


def _without_comma(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith('"') else _blank(found[0])


def _one_by_one(text: str) -> Iterator[Value | Problem]:
    """Object after object, at the top or in the one array there; after a bad one from the next on."""
    start, wrap = _into_array(text)
    place, seen, bad = TextPlace(), 0, 0
    while bad < MAX_BAD_OBJECTS:
        start = _after(_BETWEEN, text, start)
        if start >= len(text) or text[start] in "]}":
            return
        place, seen = place.after(text[seen:start].encode("utf-8", "replace")), start
        try:
            value, start = _DECODER.raw_decode(text, start)
        except (json.JSONDecodeError, RecursionError) as fault:
            bad += 1
            following = _NEXT_OBJECT.search(text, start + 1)
            end = following.end() if following else len(text)
            start, slip = end, text[start:end]
            try:
                value, _ = _DECODER.raw_decode(_without_extra(slip))
            except (json.JSONDecodeError, RecursionError):
                yield Problem(f"object left out: {getattr(fault, 'msg', 'nested too deep')}", *place)
                continue
        yield Value({**wrap, "@graph": [value]} if wrap else value, place)


def _into_array(text: str) -> tuple[int, dict[str, Any]]:
    """Return where the first object of the array begins, and the context of all objects."""
    start = _after(_BETWEEN, text, 0)
    if text.startswith("[", start):
        return start + 1, {}
    head = _CONTEXT.match(text, start)
    if head is not None:
        try:
            context, end = _DECODER.raw_decode(text, head.end())
        except (json.JSONDecodeError, RecursionError):
            return start, {}
        items = _GRAPH.match(text, end)
        if items is not None and _ends_with_graph(text, start):
            return items.end(), {"@context": context}
    return start, {}


def _ends_with_graph(text: str, start: int) -> bool:
    """Return whether only the graph follows the context: another key could give the graph a name."""
    try:
        value, _ = _DECODER.raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError):
        return True
    return set(value) == {"@context", "@graph"}


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start
