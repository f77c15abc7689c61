"""Links that headers (RFC 8288), linksets (RFC 9264) and statements name, and which of them are followed.

Of headers is followed: what describes a thing, another form of it in RDF, its parts, its neighbours in a
list, lists of links, and the address to cite it by. Not followed: what many share (`license`, `type`).
Linksets are links about other things, as JSON or as text; among them API catalogues (RFC 9727). Signs in RDF
say what stands at an address, such as a SPARQL endpoint: of every batch of quads one look at each predicate,
and more only for those few that are signs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from pyoxigraph import Literal, NamedNode, Quad

from tamias.content.formats import is_rdf, read_by
from tamias.content.quad_lines import QuadLines
from tamias.model.document import Document
from tamias.model.finding import Finding, Links, Problem
from tamias.settings import AnalyseSettings

MOST_CHARACTERS = 64 * 1024
MOST_LINKS = 1000

LINKSETS = ("application/linkset", "application/linkset+json")

JSON_LD_CONTEXT = "http://www.w3.org/ns/json-ld#context"
_PLAIN = frozenset(
    {
        *("describedby", "cite-as", "canonical", "linkset", "api-catalog", "item", "collection"),
        *("next", "prev", "previous"),
        "http://www.w3.org/ns/solid/terms#storagedescription",
        "http://rdfs.org/ns/void#datadump",
        "http://rdfs.org/ns/void#indataset",
    }
)
_OF_A_TYPE = frozenset({"alternate", "meta"})
KINDS = {
    "sitemap": "sitemap",
    "sparql": "sparql",
    "http://rdfs.org/ns/void#sparqlendpoint": "sparql",
    "http://www.w3.org/ns/sparql-service-description#endpoint": "sparql",
    "void:sparqlendpoint": "sparql",
    "https://w3id.org/tree#view": "ldes",
}
"""The kinds of addresses that relations lead to."""

_TARGET = re.compile(r"<([^<>]*)>")
_PARAMETER = re.compile(
    r"[ \t\r\n]*;[; \t\r\n]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t\r\n]*"
    r'(?:=[ \t\r\n]*("(?:[^"\\]|\\.)*"|[^\s;,"]*))?',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class WebLink(msgspec.Struct, frozen=True):
    """A link as it stands; the relations are in lower case, as they are compared."""

    target: str
    relations: tuple[str, ...]
    media_type: str | None
    parameters: Mapping[str, str]


def parsed_links(text: str, most: int = MOST_LINKS) -> list[WebLink]:
    """The links of one header, or of several joined by commas. What is no link is passed over.

    >>> [(link.target, link.relations) for link in parsed_links('</a>; rel="next item", b, <c>;rel=x')]
    [('/a', ('next', 'item')), ('c', ('x',))]
    """
    found: list[WebLink] = []
    at = 0
    while len(found) < most and (target := _TARGET.search(text, at)):
        at = target.end()
        parameters: dict[str, str] = {}
        while parameter := _PARAMETER.match(text, at):
            at = parameter.end()
            parameters.setdefault(parameter[1].lower(), _unquoted(parameter[2] or ""))
        found.append(web_link(target[1].strip(), parameters))
    return found


def web_link(target: str, parameters: Mapping[str, str]) -> WebLink:
    """A link with its relations and type picked out of its parameters."""
    media_type = parameters.get("type", "").partition(";")[0].strip().lower()
    return WebLink(target, tuple(parameters.get("rel", "").lower().split()), media_type or None, parameters)


def discovery_links(headers: Iterable[tuple[str, str]], base: str) -> list[Links]:
    """The links of an answer's headers that are followed, those of each kind together."""
    return followed(_of_headers(headers), base)


def followed(links: Iterable[WebLink], base: str, also: frozenset[str] = frozenset()) -> list[Links]:
    """Return the web links that are followed; `also` names further relations."""
    by_kind: dict[str | None, dict[str, None]] = {}
    for link in links:
        for kind in _kinds(link, also) if link.target else ():
            by_kind.setdefault(kind, {})[link.target] = None
    return [Links(list(references), base, kind) for kind, references in by_kind.items()]


def alternates(headers: Iterable[tuple[str, str]]) -> list[str]:
    """The choices that a 300 offers: those in RDF, or all where none is."""
    found = [link for link in _of_headers(headers) if "alternate" in link.relations and link.target]
    in_rdf = [link for link in found if _is_worth_a_request(link.media_type)]
    return list(dict.fromkeys(link.target for link in in_rdf or found))


def json_ld_context(headers: Iterable[tuple[str, str]]) -> str | None:
    """The context that makes plain JSON of an answer JSON-LD (JSON-LD 1.1, section 6.1); None without one."""
    targets = [link.target for link in _of_headers(headers) if JSON_LD_CONTEXT in link.relations]
    return targets[0] if len(targets) == 1 else None


def _of_headers(headers: Iterable[tuple[str, str]]) -> list[WebLink]:
    values = [value for name, value in headers if name.lower() == "link"]
    return parsed_links(", ".join(values)[:MOST_CHARACTERS]) if values else []


def _kinds(link: WebLink, also: frozenset[str]) -> Iterator[str | None]:
    for relation in link.relations:
        elsewhere = relation == "canonical" and "anchor" in link.parameters
        typed = relation in _OF_A_TYPE and _is_worth_a_request(link.media_type)
        if relation in KINDS:
            yield KINDS[relation]
        elif typed or (relation in _PLAIN | also and not elsewhere):
            yield None


def _is_worth_a_request(media_type: str | None) -> bool:
    """Return whether an alternate has more than the page: the page in another language has not."""
    return is_rdf(media_type) or media_type in LINKSETS


def _unquoted(value: str) -> str:
    return _ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value


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


MOST_LINKSET_LINKS = 100_000
_OF_A_CATALOGUE = frozenset({"service-desc", "service-meta"})
"""What a catalogue says of an API besides where it is."""


class LinksetAnalyser:
    """Reads the links; a linkset holds no statements of its own."""

    media_types = read_by(__name__)

    def __init__(self, limits: AnalyseSettings | None = None) -> None:
        self._limits = limits or AnalyseSettings()

    def analyse(self, document: Document) -> Iterator[Finding]:
        most = self._limits.jsonld_bytes
        data = document.stream.read(most)
        if document.stream.read(1):
            yield Problem(f"a linkset of more than {most} bytes (limit analyse.jsonld_bytes), not read")
            return
        is_json = document.media_type == "application/linkset+json" or data.lstrip()[:1] == b"{"
        try:
            links = (
                _of_json(data)
                if is_json
                else parsed_links(data.decode("utf-8", "replace"), MOST_LINKSET_LINKS)
            )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
            yield Problem(f"no linkset: {fault}")
            return
        yield from followed(links, document.base, _OF_A_CATALOGUE)
        if len(links) >= MOST_LINKSET_LINKS:
            yield Problem(f"only the first {MOST_LINKSET_LINKS} links of the linkset were read")


class _Linkset(msgspec.Struct):
    linkset: list[dict[str, Any]]


def _of_json(data: bytes) -> list[WebLink]:
    found: list[WebLink] = []
    for context in msgspec.json.decode(data, type=_Linkset).linkset:
        anchor = context.pop("anchor", None)
        for relation, targets in context.items():
            for target in targets if isinstance(targets, list) else ():
                if len(found) < MOST_LINKSET_LINKS and isinstance(target, dict):
                    found.append(_link(relation, target, anchor))
    return found


def _link(relation: str, target: dict[str, Any], anchor: object) -> WebLink:
    parameters = {key: value for key, value in target.items() if isinstance(value, str)}
    if isinstance(anchor, str):
        parameters["anchor"] = anchor
    return web_link(parameters.pop("href", "").strip(), {**parameters, "rel": relation})


"""What a catalogue says of an API besides where it is."""
