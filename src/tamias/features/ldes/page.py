"""A page of a TREE collection or an event stream (LDES): its members, and where it leads. Pure.

A member's statements are those about it and about what only it refers to; all others are the page's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.model.errors import UrlError
from tamias.model.url import resolve

_TREE: Final = "https://w3id.org/tree#"
_LDES: Final = "https://w3id.org/ldes#"
_RDF_TYPE: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_MEMBER: Final = NamedNode(_TREE + "member")
_RELATION: Final = NamedNode(_TREE + "relation")
_NODE: Final = NamedNode(_TREE + "node")
_PATH: Final = NamedNode(_TREE + "path")
_VALUE: Final = NamedNode(_TREE + "value")
_VIEW: Final = NamedNode(_TREE + "view")
_IMMUTABLE: Final = NamedNode(_LDES + "immutable")
_TIMESTAMP: Final = NamedNode(_LDES + "timestampPath")
_RETENTION: Final = NamedNode(_LDES + "retentionPolicy")
_EVENT_SOURCE: Final = NamedNode(_LDES + "EventSource")

_LESS: Final = frozenset({_TREE + "LessThanRelation"})
_UP_TO: Final = frozenset(
    _TREE + name for name in ("LessThanOrEqualToRelation", "LessOrEqualThanRelation", "EqualToRelation")
)

Term = NamedNode | BlankNode


class Lead(msgspec.Struct, frozen=True, array_like=True):
    """A page that another leads to, and until when its members can be dated, if that is said."""

    url: str
    until: datetime | None = None
    inclusive: bool = False
    """Whether a member may be dated exactly so."""

    def is_before(self, moment: datetime | None) -> bool:
        """Return whether all members behind it are older than the moment."""
        if self.until is None or moment is None:
            return False
        return self.until < moment if self.inclusive else self.until <= moment


class StreamMember(msgspec.Struct, frozen=True):
    """A member with all its statements, and a digest by which it is known again."""

    digest: bytes
    quads: list[Quad]
    moment: datetime | None = None


class TreePage(msgspec.Struct, kw_only=True):
    """The members and relations of a page."""

    members: list[StreamMember]
    own: list[Quad]
    """Statements about the page, the stream, and what several members share."""
    leads: list[Lead]
    immutable: bool = False
    dated_by: str | None = None
    """The predicate that dates members, where the page says so."""
    retention: bool = False
    """Whether the stream says that it lets go of old members."""


def tree_page(quads: Sequence[Quad], urls: Iterable[str], dated_by: str | None = None) -> TreePage:
    """Reads a page that is known under `urls`; `dated_by` is what earlier pages said."""
    return _TreeReader(quads, frozenset(urls), dated_by).page()


def moment_of(term: object) -> datetime | None:
    """The moment that a literal names; without a time zone it is taken as UTC.

    >>> from pyoxigraph import Literal
    >>> moment_of(Literal("2024-05-01T12:00:00+02:00")).isoformat()
    '2024-05-01T10:00:00+00:00'
    """
    if not isinstance(term, Literal):
        return None
    try:
        moment = datetime.fromisoformat(term.value.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class _TreeReader:
    def __init__(self, quads: Sequence[Quad], urls: frozenset[str], dated_by: str | None) -> None:
        self._quads = quads
        self._urls = urls
        self._about: dict[object, list[Quad]] = {}
        for quad in quads:
            self._about.setdefault(quad.subject, []).append(quad)
        said = (quad.object for quad in quads if quad.predicate == _TIMESTAMP)
        self._dated_by = next((each.value for each in said if isinstance(each, NamedNode)), dated_by)

    def page(self) -> TreePage:
        members, own = self._parted()
        leads = list(self._leads())
        return TreePage(
            members=members,
            own=own,
            leads=leads or list(self._views()),
            immutable=any(
                quad.predicate == _IMMUTABLE
                and isinstance(quad.object, Literal)
                and quad.object.value in ("true", "1")
                and self._is_page(quad.subject)
                for quad in self._quads
            ),
            dated_by=self._dated_by,
            retention=any(quad.predicate == _RETENTION for quad in self._quads),
        )

    def _is_page(self, subject: object) -> bool:
        return isinstance(subject, NamedNode) and subject.value.partition("#")[0] in self._urls

    def _objects(self, subject: object, predicate: NamedNode) -> list[object]:
        return [quad.object for quad in self._about.get(subject, ()) if quad.predicate == predicate]

    def _leads(self) -> Iterator[Lead]:
        """The relations of this page; where none is said to be its own, all there are."""
        all_of_them = [quad for quad in self._quads if quad.predicate == _RELATION]
        own = [quad for quad in all_of_them if self._is_page(quad.subject)] or all_of_them
        bounds: dict[str, Lead] = {}
        for quad in own:
            for node in self._objects(quad.object, _NODE):
                url = self._address(node)
                if url is not None and url not in self._urls:
                    lead = self._bounded(quad.object, url)
                    bounds[url] = min(bounds.get(url, lead), lead, key=_end)
        yield from bounds.values()

    def _bounded(self, relation: object, url: str) -> Lead:
        types = {term.value for term in self._objects(relation, _RDF_TYPE) if isinstance(term, NamedNode)}
        paths = [term.value for term in self._objects(relation, _PATH) if isinstance(term, NamedNode)]
        if self._dated_by is None or paths != [self._dated_by] or types.isdisjoint(_LESS | _UP_TO):
            return Lead(url)
        moments = [moment_of(value) for value in self._objects(relation, _VALUE)]
        until = moments[0] if len(moments) == 1 else None
        return Lead(url, until, inclusive=types.isdisjoint(_LESS))

    def _views(self) -> Iterator[Lead]:
        """Return one of a collection's views, which have the same members: the event source, if any."""
        views = [quad.object for quad in self._quads if quad.predicate == _VIEW]
        if any(self._is_page(view) for view in views):
            return
        sources = [view for view in views if _EVENT_SOURCE in self._objects(view, _RDF_TYPE)]
        addresses = filter(None, map(self._address, sources or views))
        yield from (Lead(url) for url in sorted(addresses)[:1])

    def _address(self, node: object) -> str | None:
        if not isinstance(node, NamedNode):
            return None
        try:
            url = resolve(node.value, node.value)
        except UrlError:
            return None
        return url if url.startswith(("http:", "https:")) else None

    def _parted(self) -> tuple[list[StreamMember], list[Quad]]:
        named = [quad for quad in self._quads if quad.predicate == _MEMBER]
        members = dict.fromkeys(quad.object for quad in named)
        owner = self._owners([member for member in members if isinstance(member, Term)])
        parts: dict[object, list[Quad]] = {member: [] for member in members}
        own: list[Quad] = []
        for quad in self._quads:
            # A statement in a graph that is named like a member is that member's.
            whose = owner.get(quad.subject) or owner.get(quad.graph_name)
            whose = quad.object if quad.predicate == _MEMBER else whose
            parts[whose].append(quad) if whose in parts else own.append(quad)
        return [self._member(member, quads) for member, quads in parts.items()], own

    def _owners(self, members: list[Term]) -> dict[object, object]:
        """Return the member that each node belongs to; a node that two refer to belongs to none.

        Each thing is passed twice at most: when it is first met, and when it turns out to be shared.
        """
        apart: set[object] = {
            quad.subject for quad in self._quads if quad.predicate in (_MEMBER, _RELATION, _VIEW)
        }
        apart |= {quad.object for quad in self._quads if quad.predicate in (_RELATION, _VIEW)}
        fixed = apart.union(members)
        owner: dict[object, object] = {member: member for member in members}
        waiting: list[tuple[object, object]] = [(member, member) for member in members]
        while waiting:
            thing, whose = waiting.pop()
            for quad in self._about.get(thing, ()):
                found = quad.object
                if found in fixed or found not in self._about:
                    continue
                if found not in owner or owner[found] not in (whose, None):
                    owner[found] = whose if found not in owner else None
                    waiting.append((found, owner[found]))
        return owner

    def _member(self, member: object, quads: list[Quad]) -> StreamMember:
        lines = sorted(_line(quad) for quad in quads if quad.predicate != _MEMBER)
        name = member.value if isinstance(member, NamedNode) else ""
        digest = blake2b("\n".join([name, *lines]).encode("utf-8", "replace"), digest_size=8).digest()
        dates = self._objects(member, NamedNode(self._dated_by)) if self._dated_by else []
        moments = [moment for moment in map(moment_of, dates) if moment]
        return StreamMember(digest, quads, max(moments, default=None))


def _end(lead: Lead) -> tuple[bool, float, bool]:
    """Return a key for the narrowest of several bounds; none is the widest."""
    return lead.until is None, lead.until.timestamp() if lead.until else 0, lead.inclusive


def _line(quad: Quad) -> str:
    """A statement in words that are the same whatever its blank nodes are called."""
    terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
    return " ".join("_" if isinstance(term, BlankNode) else str(term) for term in terms)
