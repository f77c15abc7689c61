"""Signposts in RDF: statements that say what stands at an address, such as a SPARQL endpoint.

Called for every batch of quads: one look at each predicate, and more only for those few that are signs.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from tamias.content.quad_lines import QuadLines
from tamias.model.finding import Links

_VOID: Final = "http://rdfs.org/ns/void#"
_SD: Final = "http://www.w3.org/ns/sparql-service-description#"
_DCAT: Final = "http://www.w3.org/ns/dcat#"
_HYDRA: Final = "http://www.w3.org/ns/hydra/core#"
_TREE: Final = "https://w3id.org/tree#"
_ENDPOINT: Final = _DCAT + "endpointURL"
_CONFORMS: Final = "http://purl.org/dc/terms/conformsTo"
_DATASET: Final = _DCAT + "dataset"
_FIRST: Final = (_HYDRA + "first", _HYDRA + "firstPage")
_NEXT: Final = (_HYDRA + "next", _HYDRA + "nextPage")

_KINDS: Final[dict[str, str | None]] = {
    _VOID + "sparqlEndpoint": "sparql",
    _SD + "endpoint": "sparql",
    _VOID + "dataDump": None,
    _DCAT + "downloadURL": None,
    _DCAT + "accessURL": None,
    "http://schema.org/contentUrl": None,
    "https://schema.org/contentUrl": None,
    _VOID + "inDataset": None,
    _VOID + "rootResource": None,
    _TREE + "view": "ldes",
}
_SIGNS: Final = frozenset({*_KINDS, *_FIRST, *_NEXT, _ENDPOINT, _CONFORMS, _DATASET})
_SIGN_WORDS: Final = frozenset(f"<{sign}>".encode() for sign in _SIGNS)
_WEB = ("http://", "https://", "ftp://", "ftps://")

Found = dict[str | None, dict[str, None]]
Signs = dict[str, list[Quad]]
"""The quads that are signs, by predicate."""


def kinds_in(quads: Sequence[Quad], base: str) -> list[Links]:
    """The addresses whose kind the quads tell, those of each kind together; `base` is the document's.

    Addresses stand as IRIs or, as often, as literals.
    """
    signs = _signs(quads)
    if not signs:
        return []
    found: Found = {}
    for predicate, matching in signs.items():
        if predicate in _KINDS:
            _take(found, _KINDS[predicate], matching)
    _take(found, "sparql", _sparql_services(signs))
    _take(found, "dcat", _catalogue_pages(signs))
    return [Links(list(references), base, kind) for kind, references in found.items()]


def _signs(quads: Sequence[Quad]) -> Signs:
    signs: Signs = {}
    for quad in quads.saying(_SIGN_WORDS) if isinstance(quads, QuadLines) else quads:
        predicate = quad.predicate.value
        if predicate in _SIGNS:
            signs.setdefault(predicate, []).append(quad)
    return signs


def _sparql_services(signs: Signs) -> Iterable[Quad]:
    """The endpoints of services that conform to SPARQL, or that are called so."""
    conforming = {sign.subject for sign in signs.get(_CONFORMS, ()) if "sparql" in _address(sign).lower()}
    for sign in signs.get(_ENDPOINT, ()):
        name = _address(sign).partition("?")[0].rstrip("/").rpartition("/")[2]
        if sign.subject in conforming or name.lower() == "sparql":
            yield sign


def _catalogue_pages(signs: Signs) -> list[Quad]:
    """Return the first pages of paged catalogues, or the next ones where the first are not named."""
    following = _all(signs, _NEXT)
    return (_all(signs, _FIRST) or following) if following and _DATASET in signs else []


def _all(signs: Signs, predicates: Iterable[str]) -> list[Quad]:
    return [sign for predicate in predicates for sign in signs.get(predicate, ())]


def _take(found: Found, kind: str | None, signs: Iterable[Quad]) -> None:
    for sign in signs:
        address = _address(sign)
        if address.startswith(_WEB):
            found.setdefault(kind, {})[address] = None


def _address(sign: Quad) -> str:
    stands = sign.object
    return stands.value.strip() if isinstance(stands, NamedNode | Literal) else ""
