"""N-Triples and N-Quads so plain that they need no parser: they are already as one would write them.

What has an escape, a sign or a name that takes thought is left to the parser; a dump seldom has much of it.
"""

import re
from collections.abc import Iterator
from itertools import groupby

from pyoxigraph import DefaultGraph, NamedNode

from tamias.content.quad_lines import QuadLines

# Possessive, so that a long literal takes no memory to match; but not where a group could fail half-way and
# something could follow there, for then early releases of Python 3.11 forget to go back.
_SIGNS = rb"A-Za-z0-9._~!$&'()*+,;=:@/%\-\x80-\xbf\xc3-\xec"
"""Letters of Unicode up to U+CFFF, with the bytes known to be UTF-8: none of them is refused in an IRI."""
_IRI = rb"<https?://[A-Za-z0-9.\-]++/[%b?]*+(?:#[%b?]*+)?>" % (_SIGNS, _SIGNS)
_BAD_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_BLANK = rb"_:[A-Za-z0-9][A-Za-z0-9_]*+"
_STRING = rb'"(?:[^"\\\x00-\x1f\x7f]++|\\[nr"\\])*+"'
_OTHER_TYPE = rb"(?!<http://www\.w3\.org/(?:2001/XMLSchema#string>|1999/02/22-rdf-syntax-ns#))"
"""Of no literal that is written with its type."""
_LITERAL = rb"%b(?:@[a-z]{2}(?:-[A-Z]{2})?|\^\^%b%b)?" % (_STRING, _OTHER_TYPE, _IRI)
_TRIPLE = rb"(?:%b|%b) %b (?:%b|%b|%b)" % (_IRI, _BLANK, _IRI, _IRI, _LITERAL, _BLANK)
_TRIPLES = re.compile(rb"(?:%b \.\n)*+" % _TRIPLE)
_QUADS = re.compile(rb"(?:%b %b \.\n)*+" % (_TRIPLE, _IRI))


def plain_lines(block: bytes, *, has_graphs: bool) -> list[QuadLines]:
    """The statements up to the first that is not plain: the same that parsing and writing them would give."""
    if _BAD_PERCENT.search(block) or not _is_utf8(block):
        return []
    if end := _end(_TRIPLES, block):
        return [QuadLines(block[:end], DefaultGraph())]
    end = _end(_QUADS, block) if has_graphs else 0
    return list(_runs(block[:end])) if end else []


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _end(grammar: re.Pattern[bytes], block: bytes) -> int:
    """Return where the first line begins that does not fit; the match may end inside of it."""
    found = grammar.match(block)
    return block.rfind(b"\n", 0, found.end()) + 1 if found else 0


def _runs(text: bytes) -> Iterator[QuadLines]:
    """Lines that all name a graph, cut where the next names another."""
    name = _graph(text[: text.index(b"\n") + 1])
    if text.count(name) == text.count(b" .\n"):
        yield _in_graph(text, name)
        return
    for name, lines in groupby(text.splitlines(keepends=True), _graph):
        yield _in_graph(b"".join(lines), name)


def _graph(line: bytes) -> bytes:
    """Return the end of a line from the space before the graph."""
    return line[line.rindex(b" ", 0, -3) :]


def _in_graph(text: bytes, name: bytes) -> QuadLines:
    return QuadLines(text, NamedNode(name[2:-4].decode()))
