"""Queries as the paper of the Open Dataset Archive prints them, in SPARQL that a server can answer.

Its times have no seconds, its `dc:` is bound to a namespace that has no terms, its `arc:` to that archive's
own instead of ours, and it gives times their type with `strdt`: an error where they have one already.
"""

import re
from typing import Final

from tamias.features.dcat.terms import ARC, PREFIXES

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
