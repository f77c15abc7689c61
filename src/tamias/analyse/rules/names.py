"""Prefixed names in rule files, and the variables of their templates."""

import re
from typing import Final

PREFIXES: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "schema": "https://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
"""Known without being declared; a file may give them another meaning."""

VARIABLES: Final = frozenset({"page", "host", "last", "parent", "n"})

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_WHOLE = ("http://", "https://", "urn:", "mailto:")


def expanded(name: str, prefixes: dict[str, str]) -> str:
    """`dct:title` or a whole IRI as an IRI. Raises `ValueError` that names the prefix nobody declared.

    >>> expanded("dct:title", PREFIXES)
    'http://purl.org/dc/terms/title'
    """
    if name.startswith(_WHOLE):
        return name
    prefix, colon, local = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is neither an IRI nor a prefixed name such as dct:title")
    if prefix not in prefixes:
        known = ", ".join(sorted(prefixes))
        raise ValueError(f"the prefix {prefix!r} is not declared; add it to [prefixes] (known: {known})")
    return prefixes[prefix] + local


def check_template(text: str) -> None:
    """Raises `ValueError` for a variable that there is not."""
    for variable in _VARIABLE.findall(text):
        if variable not in VARIABLES:
            known = ", ".join(f"{{{each}}}" for each in sorted(VARIABLES))
            raise ValueError(f"there is no variable {{{variable}}}; there are {known}")


def filled(template: str, values: dict[str, str]) -> str:
    """The template with its variables replaced.

    >>> filled("{page}#file-{n}", {"page": "http://example.org/a", "n": "3"})
    'http://example.org/a#file-3'
    """
    return _VARIABLE.sub(lambda found: values.get(found[1], ""), template) if "{" in template else template
