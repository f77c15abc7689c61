"""Link headers (RFC 8288), and which of the links are to be followed.

Followed: what describes a thing, another form of it in RDF, its parts, its neighbours in a list, lists of
links, and the address to cite it by. Not followed: what many share (`license`, `type`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tamias.content.formats import is_rdf
from tamias.model.finding import Links

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
