"""Watches how deep a text is nested before a parser sees it.

Parsers recurse, or take time and memory that grow with the depth: pyoxigraph dies of JSON 10,000 deep, and
of triple terms, `<<( … )>>`, 20,000 deep.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec

from tamias.analyse.chunks import RefusedError, times
from tamias.settings import AnalyseSettings

MAX_TOKEN = 1 << 20
"""A token larger than this is no longer waited for."""

# Each alternative starts with its own sign, so that there is one way to match and nothing to backtrack.
# Possessive groups would say it better, but Python 3.11.4 and older get them wrong (gh-100061, gh-106052).
_TURTLE_TOKEN = (
    rb'"""(?:[^"\\]++|\\.|"(?!""))*"""'
    rb'|""(?=[^"])|"\n|"(?:[^"\\\n]|\\.)(?:[^"\\\n]++|\\.)*["\n]'
    rb"|'''(?:[^'\\]++|\\.|'(?!''))*'''"
    rb"|''(?=[^'])|'\n|'(?:[^'\\\n]|\\.)(?:[^'\\\n]++|\\.)*['\n]"
    rb'|<<|<(?:[^<>"{}|^`\\\s]++|\\[uU])*(?:>|(?=[<"{}|^`\\\s]))'
    rb"|#[^\n]*+\n|\\."
)
_XML_OPAQUE = rb"<!--(?:[^-]++|-(?!->))*-->|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*\]\]>|<\?(?:[^?]++|\?(?!>))*\?>"
_XML_TAG = rb"""<(?!!--|!\[CDATA\[|\?)(?:[^>"']++|"[^"]*+"|'[^']*+')*>"""
_XML_EMPTY_TAG = rb"""<(?=[^!?/])(?:[^>"'/]++|"[^"]*+"|'[^']*+'|/(?!>))*/>"""

_TURTLE_SKIP = re.compile(_TURTLE_TOKEN, re.DOTALL)
_TURTLE_WHOLE = re.compile(rb"(?:[^\"'<#\\]++|" + _TURTLE_TOKEN + rb")*", re.DOTALL)
_XML_SKIP = re.compile(_XML_OPAQUE + rb"|<![^>]*+>|" + _XML_EMPTY_TAG)
_XML_WHOLE = re.compile(rb"(?:[^<]++|" + _XML_OPAQUE + rb"|" + _XML_TAG + rb")*")

_TO_PARENTHESES = bytes.maketrans(b"[{]}\1\2", b"(())()")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[](){}"))
_NO_TAGS = bytes(set(range(256)) - {1, 2})


class Outlined(NamedTuple):
    """The nesting of some text, up to its last whole token."""

    opening: int
    closing: int
    shape: Callable[[], bytes]
    """The same as ( and ), in their order."""
    rest: bytes
    """What follows the last whole token."""


Outline = Callable[[bytes], Outlined]
"""Takes text from the start of a token."""


def turtle_outline(text: bytes) -> Outlined:
    """The brackets of Turtle, TriG and N3 outside strings, IRIs and comments."""
    end = text.rfind(b"\n") + 1
    if end == 0 or b'"""' in text or b"'''" in text:  # else nothing goes on past the end of a line
        end = _end(_TURTLE_WHOLE, text)
    whole = text[:end]
    shape = _brackets(whole)
    return _outlined(_brackets(_TURTLE_SKIP.sub(b"", whole)) if shape else shape, text[end:])


def json_outline(text: bytes) -> Outlined:
    """The brackets of JSON outside strings."""
    bare = text.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if b"\\" in text else text
    pieces = bare.split(b'"')
    begun = len(pieces[-1]) + 1 if len(pieces) % 2 == 0 else 0
    return _outlined(_brackets(b"".join(pieces[::2])), text[len(text) - begun :])


def xml_outline(text: bytes) -> Outlined:
    """The elements of XML."""
    end = max(0, text.rfind(b"<"))
    whole = text[:end]
    tags = times(b"<", whole)
    if b"<!" in whole or b"<?" in whole or times(b">", whole) != tags:
        end = _end(_XML_WHOLE, text)
        return _outlined(_tags(_XML_SKIP.sub(b"", text[:end])), text[end:])
    # Here every > ends a tag, so every /> ends an empty one.
    ends, empty = whole.count(b"</"), whole.count(b"/>")
    return Outlined(tags - ends, ends + empty, lambda: _tags(whole.replace(b"/>", b"\2")), text[end:])


def _outlined(shape: bytes, rest: bytes) -> Outlined:
    opening = shape.count(b"(")
    return Outlined(opening, len(shape) - opening, lambda: shape, rest)


def _end(pattern: re.Pattern[bytes], text: bytes) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _brackets(text: bytes) -> bytes:
    return text.translate(_TO_PARENTHESES, _NO_BRACKETS)


def _tags(text: bytes) -> bytes:
    return text.replace(b"</", b"\2").replace(b"<", b"\1").translate(_TO_PARENTHESES, _NO_TAGS)


class Syntax(msgspec.Struct, frozen=True):
    """The brackets of a syntax, and the setting that limits their depth."""

    outline: Outline
    word: str
    setting: str


TURTLE = Syntax(turtle_outline, "brackets", "turtle_depth")
JSON = Syntax(json_outline, "brackets", "json_depth")
XML = Syntax(xml_outline, "elements", "xml_depth")


class Nesting:
    """The depth of a document, as far as it has been read."""

    def __init__(self, syntax: Syntax, limits: AnalyseSettings) -> None:
        self._syntax = syntax
        self._limit: int = getattr(limits, syntax.setting)
        self.depth = 0

    def watched(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks; raises `RefusedError` before the one that nests deeper than the limit."""
        waiting, wanted = b"", 0
        for chunk in chunks:
            waiting += chunk
            # A long unfinished token is looked at again only when it has doubled: linear time over all.
            if len(waiting) >= wanted:
                outlined = self._syntax.outline(waiting)
                self._go_through(outlined)
                waiting = outlined.rest if len(outlined.rest) < MAX_TOKEN else b""
                wanted = 2 * len(waiting)
            yield chunk
        # The end of the text ends any token that the end of a line, or the next tag, would end.
        self._go_through(self._syntax.outline(waiting + b"\n<"))

    def _go_through(self, outlined: Outlined) -> None:
        if self.depth + outlined.opening <= self._limit:
            self.depth = max(0, self.depth + outlined.opening - outlined.closing)
            return
        for sign in outlined.shape():
            self.depth = self.depth + 1 if sign == ord("(") else max(0, self.depth - 1)
            if self.depth > self._limit:
                raise RefusedError(
                    f"{self._syntax.word} nested more than {self._limit} deep"
                    f" (limit analyse.{self._syntax.setting}), the rest was not read"
                )
