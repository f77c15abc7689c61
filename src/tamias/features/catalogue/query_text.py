"""SPARQL queries as text: tokens, the graphs and servers they name, another dialect. This is no parser."""

import re
from typing import Final

from tamias.features.dcat.terms import ARC, PREFIXES

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


_THEIR_ARC: Final = "<https://archiver.ai.wu.ac.at/ns/csvw#"
_TYPE: Final = r"(?:xsd:dateTime(?:Stamp)?\b|<http://www\.w3\.org/2001/XMLSchema#dateTime(?:Stamp)?>)"
_ZONE: Final = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_NO_SECONDS: Final = re.compile(
    rf"""(["'])([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}})({_ZONE})\1(?=\s*\^\^\s*{_TYPE})"""
)
_STRDT: Final = re.compile(rf"\bstrdt\s*\(\s*([?$]\w+)\s*,\s*{_TYPE}\s*\)", re.IGNORECASE)
_NO_TERMS: Final = re.compile(r"(\bprefix\s+\w*:\s*)<http://purl\.org/dc/elements/1\.1>", re.IGNORECASE)


def rewrite_query(query: str) -> str:
    """The query with these put right; any other is left as it is.

    >>> rewrite_query('strdt(?d, xsd:dateTimeStamp) >= "2020-05-10T00:00Z"^^xsd:dateTimeStamp')
    '<http://www.w3.org/2001/XMLSchema#dateTime>(STR(?d)) >= "2020-05-10T00:00:00Z"^^xsd:dateTimeStamp'
    """
    query = _NO_SECONDS.sub(r"\1\2:00\3\1", query)
    query = _STRDT.sub(rf"<{PREFIXES['xsd']}dateTime>(STR(\1))", query)
    return _NO_TERMS.sub(rf"\1<{PREFIXES['dct']}>", query).replace(_THEIR_ARC, f"<{ARC}")
