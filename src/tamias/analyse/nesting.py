"""Watches how deep a text is nested before a parser sees it.

Parsers recurse, or take time and memory that grow with the depth: pyoxigraph dies of JSON 10,000 deep.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from tamias.analyse.limits import RefusedError

MAX_TOKEN = 1 << 24
"""A token larger than this is no longer waited for."""

_TURTLE_TOKEN = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*+"""'
    rb'|""(?=[^"])|"\n|"(?:[^"\\\n]|\\.)(?:[^"\\\n]++|\\.)*+["\n]'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*+'''"
    rb"|''(?=[^'])|'\n|'(?:[^'\\\n]|\\.)(?:[^'\\\n]++|\\.)*+['\n]"
    rb'|<(?:[^<>"{}|^`\\\s]++|\\[uU])*+(?:>|(?=[<"{}|^`\\\s]))'
    rb"|#[^\n]*+\n|\\."
)
_XML_ASIDE = rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
_XML_TAG = rb"""<(?!!--|!\[CDATA\[|\?)(?:[^>"']++|"[^"]*+"|'[^']*+')*+>"""
_XML_EMPTY_TAG = rb"""<(?=[^!?/])(?:[^>"'/]++|"[^"]*+"|'[^']*+'|/(?!>))*+/>"""


class Syntax(msgspec.Struct, frozen=True):
    """How a syntax nests: what to skip, how far a piece of text is whole, and what remains as ( and )."""

    word: str
    setting: str
    skip: re.Pattern[bytes]
    whole: re.Pattern[bytes]
    shape: Callable[[bytes], bytes]


def _brackets(text: bytes) -> bytes:
    return text.translate(_TO_PARENTHESES, _NO_BRACKETS)


def _tags(text: bytes) -> bytes:
    return text.replace(b"</", b"\2").replace(b"<", b"\1").translate(_TO_PARENTHESES, _NO_TAGS)


_TO_PARENTHESES = bytes.maketrans(b"[{]}\1\2", b"(())()")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[](){}"))
_NO_TAGS = bytes(set(range(256)) - {1, 2})

TURTLE = Syntax(
    "brackets",
    "turtle_depth",
    re.compile(_TURTLE_TOKEN, re.DOTALL),
    re.compile(rb"(?:[^\"'<#\\]++|" + _TURTLE_TOKEN + rb")*+", re.DOTALL),
    _brackets,
)
JSON = Syntax(
    "brackets",
    "json_depth",
    re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL),
    re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL),
    _brackets,
)
XML = Syntax(
    "elements",
    "xml_depth",
    re.compile(_XML_ASIDE + rb"|<![^>]*+>|" + _XML_EMPTY_TAG, re.DOTALL),
    re.compile(rb"(?:[^<]++|" + _XML_ASIDE + rb"|" + _XML_TAG + rb")*+", re.DOTALL),
    _tags,
)


def bounded_nesting(chunks: Iterable[bytes], syntax: Syntax, limit: int) -> Iterator[bytes]:
    """The same chunks; raises `RefusedError` before the one that nests deeper than the limit."""
    depth, waiting, wanted = 0, b"", 0
    for chunk in chunks:
        waiting += chunk
        # A long unfinished token is looked at again only when it has doubled: linear time over all.
        if len(waiting) >= wanted:
            end = syntax.whole.match(waiting).end()  # type: ignore[union-attr]
            depth = _deeper(depth, _shape(waiting[:end], syntax), syntax, limit)
            waiting = waiting[end:] if len(waiting) - end < MAX_TOKEN else b""
            wanted = 2 * len(waiting)
        yield chunk


def _shape(text: bytes, syntax: Syntax) -> bytes:
    outline = syntax.shape(text)
    return syntax.shape(syntax.skip.sub(b"", text)) if outline else outline


def _deeper(depth: int, shape: bytes, syntax: Syntax, limit: int) -> int:
    opening = shape.count(b"(")
    if depth + opening <= limit:
        return max(0, depth + 2 * opening - len(shape))
    for sign in shape:
        depth = depth + 1 if sign == ord("(") else max(0, depth - 1)
        if depth > limit:
            raise RefusedError(
                f"{syntax.word} nested more than {limit} deep (limit analyse.{syntax.setting}), not read on"
            )
    return depth
