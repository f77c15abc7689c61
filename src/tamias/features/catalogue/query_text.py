"""Tokens of a SPARQL query: enough to know which graphs and servers it is about. This is no parser."""

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_TOKEN: Final = re.compile(
    r"""\s+ | \#[^\n\r]*
    | (?P<iri><[^<>"{}|^`\\\s]*>)
    | (?P<text>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3} | '{3}(?:[^'\\]|\\.|'(?!''))*'{3}
        | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*')
    | (?P<tag>@[A-Za-z][\w-]*)
    | (?P<variable>[?$]\w+)
    | (?P<blank>_:[\w.-]+)
    | (?P<name>(?:[^\W\d_][\w.-]*)?:(?:[\w:%-]|\\.|\.(?=[\w:%-]))*)
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>\w+)
    | (?P<sign>\^\^|&&|\|\||[<>!]=|.)""",
    re.VERBOSE | re.DOTALL,
)

Token = tuple[str, str]
"""Its kind (a group of the expression above) and its text."""


def asks_elsewhere(query: str) -> bool:
    """Return whether a query would have the server ask another one.

    >>> asks_elsewhere("SELECT * { SERVICE <http://elsewhere.example/> { ?s ?p ?o } }")
    True
    >>> asks_elsewhere("SELECT ?service { ?service ex:service 'SERVICE' } # SERVICE")
    False
    """
    return ("word", "SERVICE") in tokenize(query)


def names_graphs(query: str) -> bool:
    """Return whether a query says itself which graphs it is about, with FROM.

    >>> names_graphs("SELECT * FROM <http://a.example/> { ?s ?p ?o }"), names_graphs("SELECT ?from { }")
    (True, False)
    """
    return ("word", "FROM") in tokenize(query)


def tokenize(query: str) -> list[Token]:
    r"""Return the tokens of a query: words in capitals, `\u0041` as `A`, names as IRIs where declared.

    >>> tokenize("PREFIX a: <urn:> ask { a:b ?c $d }")[3:6]
    [('word', 'ASK'), ('sign', '{'), ('iri', '<urn:b>')]
    """
    found: list[Token] = []
    prefixes: dict[str, str] = {}
    for match in _TOKEN.finditer(_ESCAPE.sub(_character, query)):
        kind, value = match.lastgroup, match[0]
        if kind == "word":
            value = value.upper()
        elif kind == "iri" and len(found) > 1 and found[-2] == ("word", "PREFIX"):
            prefixes[found[-1][1]] = value[1:-1]
        elif kind == "name":
            prefix, _, local = value.partition(":")
            if f"{prefix}:" in prefixes and "\\" not in local and found[-1] != ("word", "PREFIX"):
                kind, value = "iri", f"<{prefixes[f'{prefix}:']}{local}>"
        if kind is not None:
            found.append((kind, value))
    return found


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2], 16)
    return chr(code) if code < 0x110000 else found[0]
