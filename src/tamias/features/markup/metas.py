"""Dublin Core and Open Graph in the head of a page, each a statement about the page.

`<meta name="DC.title">` is dc:title, in the namespace that `<link rel="schema.DC">` gives; DC.date.created is
dcterms:created. Open Graph stands in `property`, which is RDFa's; here is what others put into `name`.
"""

from collections.abc import Iterator

from lxml import etree
from pyoxigraph import NamedNode

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup.rdfa.names import OPEN_GRAPH
from tamias.features.markup.statements import MarkupStatements
from tamias.model.finding import Finding

_ELEMENTS = "http://purl.org/dc/elements/1.1/"
_TERMS = "http://purl.org/dc/terms/"
_SPACES = {"dc": _ELEMENTS, "dcterms": _TERMS, "dct": _TERMS}
_COLON_SPACES = {"og": "http://ogp.me/ns#", **OPEN_GRAPH, **_SPACES}
_OF_DUBLIN = (_ELEMENTS, _TERMS)
_LANGUAGES = ("{http://www.w3.org/XML/1998/namespace}lang", "xml:lang", "lang")
_QUALIFIERS = (
    "abstract accessRights accrualMethod alternative audience available bibliographicCitation conformsTo"
    " created dateAccepted dateCopyrighted dateSubmitted educationLevel extent hasFormat hasPart hasVersion"
    " isFormatOf isPartOf isReferencedBy isReplacedBy isRequiredBy issued isVersionOf license mediator medium"
    " modified provenance references replaces requires rightsHolder spatial tableOfContents temporal valid"
)
_REFINEMENTS = {name.lower(): name for name in _QUALIFIERS.split()}
"""The terms that once were written as qualifiers of an element."""


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The statements of the page's metas and links."""
    statements = MarkupStatements(page, "Metas")
    with statements.bounded():
        _PageHead(page, statements).read()
    yield from statements.findings()


class _PageHead:
    """The metadata in the head of a page."""

    def __init__(self, page: MarkupPage, statements: MarkupStatements) -> None:
        self._page = page
        self._statements = statements
        self._subject = statements.node(page.url.partition("#")[0])
        self._links = _those(page, "link", "rel", "href")
        self._spaces = {**_SPACES, **_declared(self._links)}
        self._language = _language(page.tree)

    def read(self) -> None:
        for meta in _those(self._page, "meta", "name", "content"):
            predicate = self._predicate(meta.get("name") or "")
            if predicate is not None and self._subject is not None:
                self._state(self._subject, predicate, meta)
        for link in self._links:
            predicates = map(self._dublin_core, (link.get("rel") or "").split())
            for predicate in filter(None, predicates):
                target = self._statements.reference(link.get("href") or "", self._page.base)
                if target is not None and self._subject is not None:
                    self._statements.add(self._subject, predicate, target)

    def _state(self, subject: NamedNode, predicate: NamedNode, meta: etree._Element) -> None:
        datatype = self._dublin_core(meta.get("scheme") or "", is_property=False)
        language = None if datatype else _language(meta) or self._language
        value = self._statements.literal(meta.get("content") or "", language=language, datatype=datatype)
        self._statements.add(subject, predicate, value)

    def _predicate(self, name: str) -> NamedNode | None:
        prefix, colon, local = name.strip().partition(":")
        if not colon:
            return self._dublin_core(name.strip())
        space = _COLON_SPACES.get(prefix.lower())
        return self._statements.node(space + local) if space and local else None

    def _dublin_core(self, name: str, *, is_property: bool = True) -> NamedNode | None:
        prefix, dot, local = name.partition(".")
        space = self._spaces.get(prefix.lower()) if dot and local else None
        if space is None:
            return None
        if is_property and space in _OF_DUBLIN:
            space, local = _refined(space, local)
        return self._statements.node(space + local) if "." not in local else None


def _those(page: MarkupPage, tag: str, name: str, value: str) -> list[etree._Element]:
    return [
        element
        for element, names in page.telling
        if name in names and value in names and str(element.tag).rpartition("}")[2] == tag
    ]


def _declared(links: list[etree._Element]) -> dict[str, str]:
    """The namespaces by their prefixes in lower case, which few pages get right."""
    found = {}
    for link in links:
        prefix, dot, name = (link.get("rel") or "").strip().partition(".")
        if dot and prefix.lower() == "schema":
            found[name.lower()] = (link.get("href") or "").strip()
    return found


def _refined(space: str, name: str) -> tuple[str, str]:
    """The term for an element with its qualifier, and for one that begins with a capital."""
    term = _REFINEMENTS.get(name.rpartition(".")[2].lower())
    if term is not None:
        return _TERMS, term
    return space, name[:1].lower() + name[1:]


def _language(element: etree._Element) -> str | None:
    return next((element.get(name) for name in _LANGUAGES if element.get(name)), None)
