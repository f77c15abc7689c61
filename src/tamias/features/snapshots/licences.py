"""The licences that the sources of a snapshot declare: portals for files, documents for themselves."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

MOST_ROWS: Final = 10_000
"""Of a summary; what follows is counted together."""
MOST_OF_A_DOCUMENT: Final = 20
_LONGEST: Final = 500
_OTHERS: Final = "others"
_WORDS: Final = (b"icense>", b"rights>")
_DECLARED: Final = re.compile(
    rb" <(?:http://purl\.org/dc/(?:terms/(?:license|rights)|elements/1\.1/rights)"
    rb"|http://creativecommons\.org/ns#license|https?://schema\.org/license"
    rb"|http://www\.w3\.org/1999/xhtml/vocab#license|http://usefulinc\.com/ns/doap#license)>"
    rb' (?:<([^>]*)>|"((?:[^"\\]|\\.)*)")'
)


class DeclaredLicence(msgspec.Struct, kw_only=True):
    """The amount that a source gave under a licence."""

    source: str
    """The URL of a portal, or a host."""
    declared_by: str | None
    """`portal` or `document`; null where nobody declares anything."""
    licence: str | None
    versions: int = 0
    graphs: int = 0


class LicenceSummary:
    """Counts as the content of a snapshot passes by."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str | None, str | None], DeclaredLicence] = {}

    def add_version(self, host: str, declared: Iterable[tuple[str, str | None]]) -> None:
        """A version, and what portals declare of its file: portal and licence."""
        said = {(portal, licence) for portal, licence in declared if licence}
        for portal, licence in said:
            self._row(portal, "portal", licence).versions += 1
        if not said:
            self._row(host, None, None).versions += 1

    def add_graph(self, host: str, licences: Iterable[str]) -> None:
        """A document, and what it declares itself."""
        said = set(licences)
        for licence in said:
            self._row(host, "document", licence).graphs += 1
        if not said:
            self._row(host, None, None).graphs += 1

    def rows(self) -> list[DeclaredLicence]:
        """The counts, by source and licence."""
        return sorted(
            self._rows.values(), key=lambda row: (row.source, row.declared_by or "", row.licence or "")
        )

    def _row(self, source: str, by: str | None, licence: str | None) -> DeclaredLicence:
        key = (source, by, licence)
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            key = (_OTHERS, None, None)
        return self._rows.setdefault(key, DeclaredLicence(source=key[0], declared_by=key[1], licence=key[2]))


def licences_in(lines: bytes) -> list[str]:
    """The licences that lines of N-Quads declare of anything.

    >>> licences_in(b'<http://a/> <http://purl.org/dc/terms/license> <http://l/> <http://a/> .\\n')
    ['http://l/']
    """
    if not any(word in lines for word in _WORDS):
        return []
    found = (iri or text for iri, text in _DECLARED.findall(lines))
    return [each.decode("utf-8", "replace")[:_LONGEST] for each in dict.fromkeys(found)][:MOST_OF_A_DOCUMENT]
