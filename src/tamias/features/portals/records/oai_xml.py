"""The answers of OAI-PMH, element by element: no entities, no network, and of a damaged one what is whole."""

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, Final, cast

from lxml import etree

from tamias.model.finding import Problem

_CHUNK = 1 << 16
_MOST_PROBLEMS = 100
_MOST_RECORDS = 100_000
_DECLARATION = re.compile(rb"\s*<\?xml[^>]{0,200}\?>")
_ROOT = re.compile(rb"<(?:[\w.-]{1,50}:)?OAI-PMH\b[^>]{0,8000}>")
_RECORD = re.compile(rb"<(?:[\w.-]{1,50}:)?record[\s>]")
_RECORD_END = re.compile(rb"</(?:[\w.-]{1,50}:)?record\s*>")
_TOKEN = re.compile(rb"<(?:[\w.-]{1,50}:)?resumptionToken\b[^>]{0,2000}>")
_IDENTIFIER = re.compile(rb"<(?:[\w.-]{1,50}:)?identifier>([^<]{1,200})<")

Element = etree._Element
SAFE: Final[dict[str, Any]] = {
    "resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False,
}  # fmt: skip
BARE: Final[dict[str, Any]] = {**SAFE, "remove_comments": True, "remove_pis": True}
"""The options of all parsers of answers."""


def elements(raw: bytes) -> Iterator[Element | Problem]:
    """Yield the elements of an answer, and errors: use each before you take the next.

    A damaged answer brings a `Problem`, and then the whole records and the token behind the damage.
    """
    try:
        yield from _elements(raw)
    except _Refused as refusal:
        yield Problem(f"OAI-PMH answer: {refusal}")


def local(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def space(element: Element) -> str:
    """Return the namespace of an element; empty where there is none."""
    return str(element.tag).rpartition("}")[0].removeprefix("{")


def content(element: Element | None) -> str | None:
    """Return all text in an element, stripped; None without any."""
    if element is None:
        return None
    return "".join(str(text) for text in element.itertext()).strip() or None


def inner(element: Element, name: str) -> Element | None:
    """Return the first element of that name anywhere in it, whatever its namespace."""
    return next((each for each in element.iter(f"{{*}}{name}")), None)


class _Refused(Exception):
    pass


def _elements(raw: bytes) -> Iterator[Element | Problem]:
    parser, depth = etree.XMLPullParser(events=("start", "end"), **BARE), _Depth()
    try:
        for start in range(0, len(raw), _CHUNK):
            parser.feed(raw[start : start + _CHUNK])
            yield from depth.through(parser)
        parser.close()
    except etree.XMLSyntaxError as error:
        yield from depth.through(parser)
        said = (error.msg or "damaged").partition(", line ")[0]
        yield Problem(f"OAI-PMH answer: XML: {said}", line=error.lineno or None)
        yield from _behind(raw, depth.records)


class _Depth:
    """Goes through the answer as it is parsed, and cuts off behind itself what was used."""

    def __init__(self) -> None:
        self._depth = 0
        self.records = 0

    def through(self, parser: "etree.XMLPullParser") -> Iterator[Element]:
        for event, found in parser.read_events():
            element = cast("Element", found)
            if event == "start":
                if self._depth == 0:
                    _check(element)
                self._depth += 1
                continue
            self._depth -= 1
            if self._depth == 2 or (self._depth == 1 and local(element) == "error"):
                self.records += local(element) == "record"
                yield element
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]  # type: ignore[union-attr]


def _check(root: Element) -> None:
    """Raises for what is not OAI-PMH, and for a document type, which none needs and entities come with."""
    if root.getroottree().docinfo.internalDTD is not None:
        raise _Refused("it declares a document type; not read")
    if local(root) != "OAI-PMH":
        raise _Refused(f"<{local(root)[:50]}> is not OAI-PMH")


def _behind(raw: bytes, records: int) -> Iterator[Element | Problem]:
    """The records after the first so many, each by itself, and the token."""
    root = _ROOT.search(raw)
    if root is None or b"<!DOCTYPE" in raw[: root.start()]:
        return
    declared = _DECLARATION.match(raw)
    head = (declared[0] if declared else b"") + root[0] + b"<ListRecords>"
    found = islice(_RECORD.finditer(raw, root.end()), records, records + _MOST_RECORDS)
    starts = [record.start() for record in found]
    faults = 0
    for start, end in pairwise([*starts, len(raw)]):
        piece = raw[start:end]
        last = _RECORD_END.search(piece)
        element = _mended(head, piece[: last.end()]) if last else None
        if element is not None:
            yield element
        elif faults < _MOST_PROBLEMS:
            faults += 1
            name = _IDENTIFIER.search(piece)
            yield Problem(f"record {name[1].decode('utf-8', 'replace') if name else '?'} is not whole")
    token = _TOKEN.search(raw, starts[-1] if starts else root.end())
    if token and (element := _mended(head, raw[token.start() :])) is not None:
        yield element


def _mended(head: bytes, piece: bytes) -> Element | None:
    """Parse an element by itself; what XML forbids in it is left out."""
    parser = etree.XMLParser(recover=True, **SAFE)
    try:
        root = etree.fromstring(head + piece, parser)
    except etree.XMLSyntaxError:
        return None
    return root[0][0] if root is not None and len(root) and len(root[0]) else None
