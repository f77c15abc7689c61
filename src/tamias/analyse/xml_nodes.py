"""RDF/XML with a fault in it: its node elements one by one, and of a bad one its good properties."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pyoxigraph import Quad, RdfFormat, parse

from tamias.analyse.chunks import times
from tamias.analyse.recover import Faults, Piece, Place, Read, taken_apart

_ASIDE = (
    rb"<!--(?:[^-]++|-(?!->))*(?:-->|\Z)|<!\[CDATA\[(?:[^\]]++|\](?!\]>))*(?:\]\]>|\Z)"
    rb"|<\?(?:[^?]++|\?(?!>))*(?:\?>|\Z)|<!DOCTYPE"
)
TOKEN = re.compile(
    _ASIDE + rb"""|<(/?)([^\s/>"'<=!?]+)((?:[^<>"'/]++|"[^"<]*"|'[^'<]*'|/(?!>))*)(/?)>|(<)""", re.DOTALL
)
"""A tag (whether it ends an element, its name, its attributes, whether it is empty), or what is none."""
_ROOT = re.compile(rb"""<([^\s/>"'<=!?]*:)?RDF(?=[\s>])(?:[^<>"']++|"[^"<]*"|'[^'<]*')*>""")
_ABOUT = re.compile(rb"""\s[^\s=]*:about\s*=""")
_IDENTITY = re.compile(rb"""\s[^\s=]*:(?:about|ID|nodeID)\s*=""")
_RESOURCE = re.compile(rb"""\s[^\s=]*:parseType\s*=\s*["']Resource""")
_BAD_BUT_WHOLE = re.compile(rb"""<([^\s/>"'<=!?]+)[^<]*(?:/>|</\1\s*>|/\s*(?=<))""")
"""A property whose own tag is at fault, without elements in it: what follows stands on the same level."""
_COUNTED = re.compile(rb"<[^\s/>]*:li[\s/>]")


class _Open(NamedTuple):
    """A start tag that waits for its end; `holds_nodes` where nodes, not properties, stand in it."""

    name: bytes
    holds_nodes: bool


class Nodes:
    """One RDF/XML document that has been read in vain."""

    def __init__(self, text: bytes, base: str | None) -> None:
        root = _ROOT.search(text)
        self._base = base
        self._text = text
        self._start = root.end() if root else 0
        self._head = text[: self._start]
        self._tail = b"</%bRDF>" % (root[1] or b"") if root else b""

    def found(self, faults: Faults) -> Iterator[Read]:
        """All good nodes, and the good properties of bad ones."""
        yield from taken_apart(self._pieces(), self, faults)

    def read(self, text: bytes, *, lenient: bool = False) -> list[Quad]:
        source = self._head + text + self._tail
        if has_forbidden(text):
            raise SyntaxError("a character that XML forbids")
        try:
            quads = list(parse(source, format=RdfFormat.RDF_XML, base_iri=self._base, lenient=lenient))
        except SyntaxError as fault:
            raise SyntaxError(fault.msg) from fault  # its place, if any, is not that of this piece
        if ends_early(text):
            raise SyntaxError("an element has no end")
        return quads

    def salvage(self, piece: Piece) -> list[Quad]:
        """Its complete properties before the first doubtful tag, where the node has a name of its own."""
        node = TOKEN.match(piece.text)
        if not node or not node[2] or not _IDENTITY.search(node[3]) or _COUNTED.search(piece.text):
            return []
        quads: dict[Quad, None] = {}
        for content in _children(piece.text, node.end()):
            try:
                quads.update(dict.fromkeys(self.read(b"%b%b</%b>" % (node[0], content, node[2]))))
            except SyntaxError:
                continue
        return list(quads)

    def _pieces(self) -> list[Piece]:
        place = Place().after(self._text[: self._start])
        pieces, end = [], self._start
        for start, stop in _nodes(self._text, self._start):
            place = place.after(self._text[end:start])
            pieces.append(Piece(self._text[start:stop], place))
            place, end = place.after(self._text[start:stop]), stop
        return pieces


def has_forbidden(text: bytes) -> bool:
    """Whether there are control characters, which the parser takes for parts of names."""
    signs = np.frombuffer(text, np.uint8)
    return int(np.count_nonzero(signs < ord(" "))) > sum(times(sign, text) for sign in (b"\t", b"\n", b"\r"))


def ends_early(text: bytes) -> bool:
    """Whether an element is still open at the end, which the parser does not mind."""
    depth = 0
    for token in TOKEN.finditer(text):
        if token[2] and not token[4]:
            depth += -1 if token[1] else 1
    return depth > 0


def _nodes(text: bytes, start: int) -> list[tuple[int, int]]:
    """Where each node element begins and ends, as far as a text with faults can tell."""
    nodes: list[tuple[int, int, bytes]] = []
    stack: list[_Open] = []
    begun = start
    for token in TOKEN.finditer(text, start):
        slash, name, attributes, empty = token[1], token[2], token[3], token[4]
        if name is None:
            continue
        if not slash:
            if stack and not stack[-1].holds_nodes and _must_be_node(name, attributes):
                nodes.append((begun, token.start(), stack[0].name))
                stack.clear()
            if not stack:
                begun = token.start()
            if not empty:
                stack.append(_Open(name, _holds_nodes(stack, attributes)))
            elif not stack:
                nodes.append((begun, token.end(), name))
            continue
        open_names = [each.name for each in stack]
        if name in open_names:
            del stack[open_names.index(name) :]
            if not stack:
                nodes.append((begun, token.end(), name))
        elif not stack:
            # The start of a node is lost, so these are its properties, and perhaps more than those.
            while nodes and nodes[-1][2] != name and not name.endswith(b"RDF"):
                nodes.pop()
    if stack:
        nodes.append((begun, len(text), stack[0].name))
    return [(begin, end) for begin, end, _ in nodes]


def _must_be_node(name: bytes, attributes: bytes) -> bool:
    return name.endswith(b":Description") or _ABOUT.search(attributes) is not None


def _holds_nodes(stack: list[_Open], attributes: bytes) -> bool:
    is_property = bool(stack) and not stack[-1].holds_nodes
    return is_property and not _RESOURCE.search(attributes)


def _children(text: bytes, start: int) -> Iterator[bytes]:
    """The complete elements in an element, up to the first tag that leaves doubt where it belongs."""
    stack: list[bytes] = []
    begun = skipped = start
    for token in TOKEN.finditer(text, start):
        slash, name, empty = token[1], token[2], token[4]
        if token.start() < skipped:
            continue
        if token[5]:
            bad = None if stack else _BAD_BUT_WHOLE.match(text, token.start())
            if bad is None:
                return
            skipped = bad.end()
        elif name is None:
            continue
        elif not slash:
            if len(stack) == 1 and _lost_its_end(text[begun : token.start()]):
                stack.clear()
            begun = begun if stack else token.start()
            if not empty:
                stack.append(name)
            elif not stack:
                yield text[begun : token.end()]
        elif not stack or stack.pop() != name:
            return
        elif not stack:
            yield text[begun : token.end()]


def _lost_its_end(begun: bytes) -> bool:
    """Whether a property has text, after which no element can stand in it."""
    tag, _, content = begun.partition(b">")
    return bool(content.strip()) and b"parseType" not in tag and b"<" not in content
