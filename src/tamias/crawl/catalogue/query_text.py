"""The words of a SPARQL query, as far as they decide where it goes and what it is asked of."""

import re
from collections.abc import Iterator
from typing import Final

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_TOKEN: Final = re.compile(
    r"""<[^<>"{}|^`\\\s]*>
    | \"{3}(?:[^"\\]|\\.|"(?!""))*\"{3} | '{3}(?:[^'\\]|\\.|'(?!''))*'{3}
    | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*'
    | \#[^\n\r]*
    | [?$@][\w-]+
    | [\w.\-]*:[\w.\-:%\\]*
    | (?P<word>\w+)""",
    re.VERBOSE | re.DOTALL,
)


def asks_elsewhere(query: str) -> bool:
    """Whether a query would have the server ask another one.

    >>> asks_elsewhere("SELECT * { SERVICE <http://elsewhere.example/> { ?s ?p ?o } }")
    True
    >>> asks_elsewhere("SELECT ?service { ?service ex:service 'SERVICE' } # SERVICE")
    False
    """
    return "SERVICE" in keywords(query)


def names_graphs(query: str) -> bool:
    """Whether a query says itself which graphs it is about, with FROM.

    >>> names_graphs("SELECT * FROM <http://a.example/> { ?s ?p ?o }"), names_graphs("SELECT ?from { }")
    (True, False)
    """
    return "FROM" in keywords(query)


def keywords(query: str) -> set[str]:
    """The bare words of a query, in capitals."""
    return {found.upper() for found in _words(unescaped(query))}


def unescaped(query: str) -> str:
    r"""A query after the first thing that SPARQL does with it: `\u0041` is `A`, wherever it stands."""
    return _ESCAPE.sub(_character, query)


def _words(query: str) -> Iterator[str]:
    return (found["word"] for found in _TOKEN.finditer(query) if found["word"])


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2], 16)
    return chr(code) if code < 0x110000 else found[0]
