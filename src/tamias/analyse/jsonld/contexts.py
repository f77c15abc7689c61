"""The contexts of JSON-LD: those known here, those given by others, and what they may cost."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from tamias.analyse.chunks import MIB, RefusedError
from tamias.model.document import DocumentBudget

Contexts = Callable[[str], bytes | None]
"""The document of a remote context by its absolute address, if it is at hand. It must not fetch or wait."""

MAX_CONTEXT = MIB
MAX_ADDED = 16 * MIB
"""What known contexts may add to a document that names them often."""
MAX_TERMS = 2_000_000
"""Terms defined while reading a document: a scoped context is gone through again for each of its nodes."""

_SCHEMA_ORG = re.compile(r"(?i)https?://(?:www\.)?schema\.org(?:/?#?|/docs/jsonldcontext\.json(?:ld)?)")
_DCAT_US = re.compile(r"https?://project-open-data\.cio\.gov/v1\.1/schema/(?:catalog|data)\.jsonld")
_DC, _POD = "http://purl.org/dc/terms/", "https://project-open-data.cio.gov/v1.1/schema#"
_DCAT_US_TERMS = {
    _DC: "title description language license rights spatial publisher identifier temporal format"
    " accrualPeriodicity",
    _POD: "accessLevel bureauCode dataQuality describedByType primaryITInvestmentUII programCode",
    "http://www.w3.org/2006/vcard/ns#": "fn hasEmail",
    "http://xmlns.com/foaf/0.1/": "homepage",
    "http://www.w3.org/ns/org#": "subOrganizationOf",
}
_NAMED = re.compile(rb'("@context"\s*:\s*(?:\[\s*)?)"([^"]{1,200})"(?=\s*[,\]}])')
_NAMES = re.compile(rb'"([A-Za-z][\w-]*)[":]')
_ESCAPED_NAME = re.compile(rb"\\u00(?i:2d|3[0-9a]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])")
"""A sign of a name that is written in another way; the others that are often written so are not."""
_SECONDS_A_TERM = 2e-6
_SHORT = 8192
_CLOSE_LOOK = 200_000_000
"""Nodes times bytes from which on the contexts of a document are looked at more closely."""


class KnownVocabulary(msgspec.Struct, frozen=True):
    """A context that is a vocabulary, but for some terms."""

    vocabulary: str
    terms: dict[str, Any]

    def context(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """The context as far as it concerns these names; all of it without them."""
        used = (
            self.terms if names is None else {name: self.terms[name] for name in names if name in self.terms}
        )
        return {"@vocab": self.vocabulary, **used}


def known(address: str) -> KnownVocabulary | None:
    """The context of that address, if it is one that is known here."""
    if _SCHEMA_ORG.fullmatch(address):
        return _schema_org()
    return _dcat_us() if _DCAT_US.fullmatch(address) else None


@cache
def _schema_org() -> KnownVocabulary:
    """Made by tools/schemaorg_context.py from a release of schema.org."""
    vocabulary, terms = "http://schema.org/", dict[str, Any]()
    for line in files(__package__).joinpath("schemaorg.txt").read_text("utf-8").splitlines():
        kind, name, value = line.split(" ", 2)
        if kind == "term":
            terms[name] = value
        elif kind == "typed":
            datatype = name if name.startswith("@") else vocabulary + name
            terms.update((each, {"@id": vocabulary + each, "@type": datatype}) for each in value.split())
    return KnownVocabulary(vocabulary, terms)


@cache
def _dcat_us() -> KnownVocabulary:
    """The context of the catalogues (`data.json`) of the United States' Project Open Data, version 1.1."""
    dcat, day = "http://www.w3.org/ns/dcat#", "http://www.w3.org/2001/XMLSchema#date"
    terms: dict[str, Any] = {
        "dcat": dcat,
        "dc": _DC,
        "pod": _POD,
        "org": "http://www.w3.org/ns/org#",
        "vcard": "http://www.w3.org/2006/vcard/ns#",
        "foaf": "http://xmlns.com/foaf/0.1/",
        "skos": "http://www.w3.org/2004/02/skos/core#",
        "name": "http://www.w3.org/2004/02/skos/core#prefLabel",
        "describedBy": {"@id": "http://www.w3.org/2007/05/powder#describedby", "@type": "@id"},
        "conformsTo": {"@id": _DC + "conformsTo", "@type": "@id"},
        "issued": {"@id": _DC + "issued", "@type": day},
        "modified": {"@id": _DC + "modified", "@type": day},
        "downloadURL": {"@id": dcat + "downloadURL", "@type": "@id"},
        "accessURL": {"@id": dcat + "accessURL", "@type": "@id"},
    }
    for space, names in _DCAT_US_TERMS.items():
        terms.update((name, space + name) for name in names.split())
    return KnownVocabulary(dcat, terms)


def with_known_contexts(data: bytes, budget: DocumentBudget) -> bytes:
    """The document with known contexts in place of their addresses, each cut down to what the document uses.

    Raises `RefusedError` when that would make it too large, and as `DocumentBudget.check` does.
    """
    if b'"@context"' not in data:
        return data
    named = {reference for _, reference in _NAMED.findall(data)}
    contexts = {reference: _for_document(reference, data) for reference in named}
    added = sum(len(contexts[reference] or b"") for _, reference in _NAMED.findall(data))
    if added == 0:
        return data
    if added > MAX_ADDED:
        raise RefusedError(f"JSON-LD contexts of more than {MAX_ADDED} bytes, document not read")
    budget.check(added)
    return _NAMED.sub(lambda found: found[1] + (contexts[found[2]] or b'"%b"' % found[2]), data)


def with_linked_context(data: bytes, address: str) -> bytes:
    """A document in the context of that address, before any of its own; the same where it is no JSON."""
    linked = msgspec.json.encode(address)
    if data.lstrip().startswith(b"["):
        return b'{"@context": %b, "@graph": %b}' % (linked, data)
    try:
        members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return data
    own = bytes(members.pop("@context", msgspec.Raw(b"[]"))).strip()
    contexts = own[1:-1].strip() if own.startswith(b"[") else own
    context = b"[%b, %b]" % (linked, contexts) if contexts else linked
    return msgspec.json.encode({"@context": msgspec.Raw(context), **members})


def with_first_context(head: bytes) -> bytes:
    """The beginning of a document that is too large to hold, with its first context put in if it is known."""

    def put(found: re.Match[bytes]) -> bytes:
        context = _for_document(found[2], None)
        return found[0] if context is None else found[1] + context

    return _NAMED.sub(put, head, count=1)


def _for_document(reference: bytes, data: bytes | None) -> bytes | None:
    """The known context of that address for some document; all of it where that is not told."""
    context = known(reference.replace(rb"\/", b"/").decode("utf-8", "replace"))
    if context is None:
        return None
    is_readable = data is not None and not _ESCAPED_NAME.search(data)
    names = {name.decode() for name in _NAMES.findall(data)} if data and is_readable else None
    return msgspec.json.encode(context.context(names))


def check_contexts(data: bytes, budget: DocumentBudget) -> None:
    """Raise `RefusedError` or `NotAtOnce` for a document whose contexts would be gone through too often."""
    contexts = data.count(b'"@context"') + (rb"\u00" in data)
    if contexts <= 1 or data.count(b"{") * len(data) <= _CLOSE_LOOK:
        return
    work = _work(data)
    if work > MAX_TERMS:
        raise RefusedError(f"JSON-LD contexts ask for more than {MAX_TERMS} definitions, document not read")
    budget.expect(seconds=work * _SECONDS_A_TERM)


def check_growth(data: bytes, budget: DocumentBudget) -> None:
    """Raise `NotAtOnce` for what may become large: a parser holds all statements of an object.

    A name is written out wherever it is meant, so they may have the longest string without a space in all
    places. Only what is short cannot become much.
    """
    if len(data) > _SHORT:
        longest = max(map(len, data.replace(b" ", b'"').split(b'"')))
        budget.expect(longest * (data.count(b":") + data.count(b",")))


def _work(data: bytes) -> int:
    """Estimate how many terms are defined, or copied at a tenth of the cost."""
    try:
        waiting = [msgspec.json.decode(data)]
    except (msgspec.DecodeError, RecursionError):
        return 0
    nodes = local = defined = scoped = largest = 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            nodes += 1
            context = value.pop("@context", None)
            waiting += value.values()
            if context is not None:
                all_terms, inner_terms = _sizes(context)
                local, defined, scoped = local + 1, defined + all_terms, scoped + inner_terms
                largest = max(largest, all_terms)
    return nodes * scoped + defined + local * largest // 10


def _sizes(context: Any) -> tuple[int, int]:
    """Return how many terms a context has, and how many of them are in nested contexts."""
    terms = inner = 0
    waiting = [(context, False)]
    while waiting:
        value, is_inner = waiting.pop()
        if isinstance(value, list):
            waiting += [(each, is_inner) for each in value]
        elif isinstance(value, dict):
            terms += len(value)
            inner += len(value) if is_inner else 0
            waiting += [(each, is_inner or name == "@context") for name, each in value.items()]
    return terms, inner
