"""Which host language and which version of RDFa a document is written in."""

import re
from enum import Enum

import msgspec

from tamias.analyse.markup.page import MarkupPage
from tamias.analyse.markup.rdfa.terms import LINK_TERMS, OPEN_GRAPH, PREFIXES, TERMS, XHTML_TERMS

_PAGE_PREFIXES = {**OPEN_GRAPH, **PREFIXES}
_RDFA_VERSION = re.compile(r"(?i)\bX?HTML\+RDFa\s+(1\.[01])")


class Language(Enum):
    """A host language: a family of them with the same rules."""

    HTML = "HTML 4, HTML5 and XHTML5"
    XHTML = "XHTML 1"
    XML = "SVG and other XML"


class HostLanguage(msgspec.Struct, frozen=True):
    """What the document's language decides."""

    language: Language
    is_old: bool
    """RDFa 1.0 rather than 1.1."""
    prefixes: dict[str, str]
    terms: dict[str, str]

    @property
    def has_head(self) -> bool:
        return self.language is not Language.XML


def host_of(page: MarkupPage) -> HostLanguage:
    """The host language by media type and document type; the version by what the document says of itself."""
    told = page.tree.get("version") or ""
    said = _RDFA_VERSION.search(told) or _RDFA_VERSION.search(page.doctype)
    language = _language(page, told)
    if said and said[1] == "1.0":
        return HostLanguage(language, True, {}, LINK_TERMS)
    prefixes = PREFIXES if language is Language.XML else _PAGE_PREFIXES
    return HostLanguage(language, False, prefixes, XHTML_TERMS if language is Language.XHTML else TERMS)


def _language(page: MarkupPage, told: str) -> Language:
    if page.is_xml:
        return Language.XML
    doctype = page.doctype.upper()
    if "XHTML+RDFA" in doctype or told.upper().startswith("XHTML+RDFA"):
        return Language.XHTML
    return Language.XHTML if page.is_xhtml and "DTD XHTML" in doctype else Language.HTML
