"""Harvester for event streams (LDES) and TREE collections: page after page, and of members only the new
ones.

Pages that cannot change are requested once, and only their digest is kept; others with the validators of the
last harvest, and with the digests of their members.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from typing import Final

import msgspec
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.content.formats import JSON_LD, NQUADS, NTRIPLES, RDF_XML, TRIG, TURTLE
from tamias.model.capture import Capture, Outcome, Request
from tamias.model.errors import UrlError
from tamias.model.finding import Finding, Harvest, HarvestEnd, HarvestStep, Links, Problem, Quads
from tamias.model.url import host_key, resolve
from tamias.protocols import PoliteClient

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
                    bounds[url] = min(bounds.get(url, lead), lead, key=_end_of_page)
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


def _end_of_page(lead: Lead) -> tuple[bool, float, bool]:
    """Return a key for the narrowest of several bounds; none is the widest."""
    return lead.until is None, lead.until.timestamp() if lead.until else 0, lead.inclusive


def _line(quad: Quad) -> str:
    """A statement in words that are the same whatever its blank nodes are called."""
    terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
    return " ".join("_" if isinstance(term, BlankNode) else str(term) for term in terms)


MOST_DIGESTS = 50_000
"""Members remembered of pages that may still change; those of the pages met first are forgotten first.

A member that is forgotten comes again, which is repetition, but no loss.
"""
MOST_SETTLED = 200_000
MOST_LEFT = 10_000
MOST_WAITING = 20_000
"""Pages waiting to be asked for."""


class OpenPage(msgspec.Struct, array_like=True):
    """A page that may still change, as it was last seen."""

    etag: str | None = None
    last_modified: str | None = None
    members: list[bytes] = msgspec.field(default_factory=list)
    lead: Lead | None = None


class Bookmark(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The bookmark that one harvest leaves for the next."""

    open: dict[str, OpenPage] = {}
    settled: list[bytes] = []
    """Digests of the addresses of pages that will not change."""
    latest: datetime | None = None
    """The date of the latest member."""
    dated_by: str | None = None
    left: list[Lead] = []
    """Pages that were not read."""


class StreamTally(msgspec.Struct, array_like=True):
    """Figures of a harvest, for people."""

    requested: int = 0
    members: int = 0
    known: int = 0
    unchanged: int = 0
    gone: int = 0
    passed_over: int = 0
    in_part: int = 0
    """Pages that could not be read to their end, or led to more than can be kept waiting."""
    retention: bool = False
    trouble: str | None = None
    """Why the last of the pages that could not be had was not."""
    trouble_outcome: int = 0


class StreamState(msgspec.Struct, kw_only=True):
    """The state of a harvest."""

    todo: list[Lead]
    met: set[bytes]
    """Digests of the addresses of all pages that were asked for, are still to be, or are settled."""
    settled: set[bytes]
    open: dict[str, OpenPage] = msgspec.field(default_factory=dict)
    latest: datetime | None = None
    dated_by: str | None = None
    left: list[Lead] = msgspec.field(default_factory=list)
    tally: StreamTally = msgspec.field(default_factory=StreamTally)

    def meet(self, lead: Lead) -> bool:
        """Add a page to the harvest, unless it is known; return False when there is no room for it."""
        digest = page_digest(lead.url)
        if digest in self.met:
            return True
        if len(self.todo) >= MOST_WAITING:
            return False
        self.met.add(digest)
        self.todo.append(lead)
        return True

    def bookmark(self, before: Bookmark) -> Bookmark:
        """Return the bookmark. Pages whose members are all of the past are settled, too."""
        left = [*self.left, *self.todo][:MOST_LEFT]
        still_open = {lead.url: before.open[lead.url] for lead in left if lead.url in before.open}
        past = {url for url, page in self.open.items() if page.lead and page.lead.is_before(self.latest)}
        settled = self.settled | {page_digest(url) for url in past}
        return Bookmark(
            open={url: page for url, page in (still_open | self.open).items() if url not in past},
            settled=sorted(settled)[:MOST_SETTLED],
            latest=self.latest,
            dated_by=self.dated_by,
            left=left,
        )

    def forget(self) -> None:
        """Forget members beyond the limit."""
        count = sum(len(page.members) for page in self.open.values())
        for page in self.open.values():
            if count <= MOST_DIGESTS:
                return
            count -= len(page.members)
            page.members = []


def page_digest(url: str) -> bytes:
    """Return a digest of a page's address in eight bytes."""
    return blake2b(url.encode(), digest_size=8).digest()


def read_bookmark(data: bytes | None) -> Bookmark:
    """Return the bookmark of the last harvest; an empty one where there is none that can be read."""
    try:
        return msgspec.msgpack.decode(data, type=Bookmark) if data else Bookmark()
    except msgspec.DecodeError:
        return Bookmark()


def begun(root: str, before: Bookmark) -> StreamState:
    """Begin a harvest: what may have changed, what was left, and the first page if there is nothing else."""
    state = StreamState(todo=[], met=set(before.settled), settled=set(before.settled))
    state.latest, state.dated_by = before.latest, before.dated_by
    for lead in (*(page.lead or Lead(url) for url, page in before.open.items()), *before.left):
        state.meet(lead)
    if not state.todo:
        state.met.discard(page_digest(root))
        state.meet(Lead(root))
    return state


def resumed(data: bytes | None) -> StreamState | None:
    """Return the state of a harvest that was under way; None where there is none that can be read."""
    try:
        return msgspec.msgpack.decode(data, type=StreamState) if data else None
    except msgspec.DecodeError:
        return None


MOST_PAGES = 10_000
"""Of one harvest; the next one goes on from there."""
MOST_QUADS = 1_000_000
"""Of one page; what is behind them is not read."""
_BATCH = 10_000
_MOST_PROBLEMS = 100
_ACCEPT = f"{NQUADS}, {TRIG}, {NTRIPLES}, {TURTLE}, {JSON_LD};q=0.9, {RDF_XML};q=0.5"


class LdesHarvester:
    """Follows `tree:relation` from page to page. A harvest repeats at most the page it was killed at."""

    kinds = frozenset({"ldes"})

    def __init__(self, most_pages: int = MOST_PAGES) -> None:
        self._most_pages = most_pages

    async def harvest(self, harvest: Harvest, client: PoliteClient) -> AsyncIterator[HarvestStep]:
        before = read_bookmark(harvest.bookmark)
        state = resumed(harvest.state) or begun(harvest.url, before)
        while state.todo and state.tally.requested < self._most_pages:
            lead = state.todo.pop(0)
            known = before.open.get(lead.url, OpenPage())
            since = known.last_modified
            request = Request(url=lead.url, accept=_ACCEPT, etag=known.etag, last_modified=since)
            capture = await client.ask(request)
            if capture.outcome is Outcome.FAILED and capture.retry:
                # The others go first when the harvest goes on.
                state.todo.append(lead)
                yield HarvestStep(state=_packed(state))
                yield HarvestStep(state=_packed(state), end=_interrupted(capture, state, before))
                return
            state.tally.requested += 1
            findings = _taken_in(harvest, client, state, before, lead, capture)
            yield HarvestStep(state=_packed(state), findings=findings)
        yield HarvestStep(state=_packed(state), end=_end(state, before, self._most_pages))


def _taken_in(
    harvest: Harvest, client: PoliteClient, state: StreamState, before: Bookmark, lead: Lead, capture: Capture
) -> list[Finding]:
    """Return the findings of a response, and update the state."""
    known = before.open.get(lead.url)
    if capture.outcome is Outcome.UNCHANGED and known is not None:
        state.tally.unchanged += 1
        state.open[lead.url] = known
        return []
    if capture.outcome is Outcome.GONE:
        state.tally.gone += 1
        return []
    if capture.outcome is not Outcome.OK:
        return [_failed(state, lead, capture)]
    quads, problems = _read(client, capture)
    names = {lead.url, capture.final_url} | ({harvest.url} if lead.url == harvest.url else set())
    page = tree_page(quads, names, state.dated_by)
    elsewhere, whole = _follow(harvest, state, before, page)
    _remember(state, lead, capture, page, whole=whole and not problems)
    return [*_new(state, known, page), *elsewhere, *problems]


def _read(client: PoliteClient, capture: Capture) -> tuple[list[Quad], list[Problem]]:
    quads: list[Quad] = []
    problems: list[Problem] = []
    for finding in client.read(capture):
        if isinstance(finding, Problem):
            problems.append(finding)
        elif isinstance(finding, Quads):
            quads += finding.quads
        if len(quads) > MOST_QUADS:
            problems.append(Problem(f"only the first {MOST_QUADS} statements of {capture.url} were read"))
            break
    return quads, problems[:_MOST_PROBLEMS]


def _new(state: StreamState, known: OpenPage | None, page: TreePage) -> list[Finding]:
    """Return the statements of new members, and those about the page; each member once a page."""
    seen = set(known.members) if known else set()
    fresh = [member for member in page.members if member.digest not in seen]
    state.tally.members += len(fresh)
    state.tally.known += len(page.members) - len(fresh)
    state.latest = max(filter(None, (state.latest, *(member.moment for member in fresh))), default=None)
    quads = iter([*page.own, *(quad for member in fresh for quad in member.quads)])
    return [Quads(batch) for batch in iter(lambda: list(islice(quads, _BATCH)), [])]


def _remember(state: StreamState, lead: Lead, capture: Capture, page: TreePage, *, whole: bool) -> None:
    """A page of which not all could be used is read again by the next harvest, changed or not."""
    state.dated_by = page.dated_by
    state.tally.retention = state.tally.retention or page.retention
    hop = capture.hops[-1]
    cached = {word.strip().lower() for word in (hop.header("cache-control") or "").split(",")}
    if whole and (page.immutable or "immutable" in cached):
        state.settled.add(page_digest(lead.url))
        return
    members = [member.digest for member in page.members]
    validators = (hop.header("etag"), hop.header("last-modified")) if whole else (None, None)
    state.open[lead.url] = OpenPage(*validators, members, lead if whole else Lead(lead.url))
    state.tally.in_part += not whole
    state.forget()


def _follow(
    harvest: Harvest, state: StreamState, before: Bookmark, page: TreePage
) -> tuple[list[Finding], bool]:
    """Add the pages that a page leads to; return links to other hosts, and whether there was room for all.

    What stands on another host's pages is harvested on its own.
    """
    elsewhere = []
    whole = True
    for lead in page.leads:
        if host_key(lead.url) != host_key(harvest.url):
            elsewhere.append(lead.url)
        elif not before.left and lead.url not in before.open and lead.is_before(before.latest):
            state.tally.passed_over += 1
        else:
            whole = state.meet(lead) and whole
    return ([Links(elsewhere, harvest.url, "ldes")] if elsewhere else []), whole


def _failed(state: StreamState, lead: Lead, capture: Capture) -> Problem:
    state.left.append(lead)
    state.tally.trouble = f"{lead.url}: {capture.outcome.word}: {capture.reason}"
    state.tally.trouble_outcome = capture.outcome
    return Problem(state.tally.trouble)


def _interrupted(capture: Capture, state: StreamState, before: Bookmark) -> HarvestEnd:
    return HarvestEnd(
        outcome=Outcome.FAILED,
        reason=f"{capture.url}: {capture.reason}; {_figures(state)}",
        adds=True,
        retry=True,
        retry_after_ms=capture.retry_after_ms,
        bookmark=_packed(state.bookmark(before)),
    )


def _end(state: StreamState, before: Bookmark, most_pages: int) -> HarvestEnd:
    tally = state.tally
    outcome = Outcome.OK
    if not (state.open or state.settled):
        outcome = Outcome(tally.trouble_outcome) if tally.trouble else Outcome.GONE
    said = [_figures(state)]
    if state.todo:
        said.append(f"stopped after {most_pages} pages, {len(state.todo)} are left to the next harvest")
    if tally.trouble:
        said.append(tally.trouble)
    if tally.retention:
        said.append("the stream lets go of old members (ldes:retentionPolicy)")
    return HarvestEnd(
        outcome=outcome,
        reason="; ".join(said),
        adds=True,
        bookmark=_packed(state.bookmark(before)),
        complete=outcome is Outcome.OK and not (state.todo or state.left or tally.in_part),
    )


def _figures(state: StreamState) -> str:
    tally = state.tally
    parts = [f"{tally.requested} pages, {tally.members} new members"]
    counts = {
        "known before": tally.known,
        "pages unchanged": tally.unchanged,
        "pages passed over as older than the last harvest": tally.passed_over,
        "pages gone": tally.gone,
        "pages read in part": tally.in_part,
        "pages not read": len(state.left),
    }
    return ", ".join(parts + [f"{count} {what}" for what, count in counts.items() if count])


def _packed(value: StreamState | Bookmark) -> bytes:
    return msgspec.msgpack.encode(value)
