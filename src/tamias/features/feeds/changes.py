"""New versions, newest first, as JSON, Atom or JSON Feed, also of what a SELECT names, which is good for
seconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, Literal
from urllib.parse import urlencode
from xml.sax.saxutils import escape, quoteattr

import msgspec
from pyoxigraph import NamedNode, QueryResultsFormat, QuerySolutions, parse_query_results
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.moments import rfc3339
from tamias.features.catalogue.exchange import Answer
from tamias.features.feeds.sentences import sentences
from tamias.features.service.http.endpoints import FOR_TRAINING, PAGED, EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import (
    ListPage,
    base_of,
    cursor,
    limit,
    page_answer,
    parameter,
    preferred_by,
    since,
    until,
)
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.search import LONGEST_SEARCH, find_words, query
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import SEARCH, bulk_words, unlisted
from tamias.features.service.service import Service
from tamias.features.service.sparql.endpoint import sparql_of
from tamias.features.service.sparql.routes import Named, named, result_of


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a feed."""

    id: str
    title: str
    updated: str
    page: str
    """For people."""
    data: str
    """The same for programs."""
    summary: str
    download: str | None = None
    """The file, where the news is one."""
    media_type: str | None = None
    byte_size: int = 0


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of news, newest first."""

    id: str
    title: str
    home: str
    here: str
    further: str | None
    entries: tuple[FeedEntry, ...]


ATOM = "application/atom+xml"
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(feed: Feed) -> bytes:
    """The feed as XML."""
    return "\n".join(_lines(feed)).encode()


def _lines(feed: Feed) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield '<feed xmlns="http://www.w3.org/2005/Atom">'
    yield _element("id", feed.id)
    yield _element("title", feed.title)
    yield _element("updated", feed.entries[0].updated if feed.entries else "1970-01-01T00:00:00Z")
    yield "<author><name>Tamias</name></author>"
    yield _link("self", feed.here, ATOM)
    yield _link("alternate", feed.home, "text/html")
    if feed.further is not None:
        yield _link("next", feed.further, ATOM)
    for entry in feed.entries:
        yield from _atom_entry(entry)
    yield "</feed>"


def _atom_entry(entry: FeedEntry) -> Iterator[str]:
    yield "<entry>"
    yield _element("id", entry.id)
    yield _element("title", entry.title)
    yield _element("updated", entry.updated)
    yield _link("alternate", entry.page, "text/html")
    yield _link("related", entry.data, "application/json")
    if entry.download is not None:
        kind = entry.media_type or "application/octet-stream"
        yield _link("enclosure", entry.download, kind, f' length="{entry.byte_size}"')
    yield _element("summary", entry.summary)
    yield "</entry>"


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(_UNFIT.sub('�', text))}</{name}>"


def _link(relation: str, address: str, media_type: str, more: str = "") -> str:
    return f'<link rel="{relation}" href={_quoted(address)} type={_quoted(media_type)}{more}/>'


def _quoted(text: str) -> str:
    return quoteattr(_UNFIT.sub("�", text))


JSON_FEED = "application/feed+json"


def json_feed(feed: Feed) -> bytes:
    """The feed as JSON."""
    document: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.home,
        "feed_url": feed.here,
        "items": [_item(entry) for entry in feed.entries],
    }
    return msgspec.json.encode(document if feed.further is None else {**document, "next_url": feed.further})


def _item(entry: FeedEntry) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": entry.id,
        "url": entry.page,
        "title": entry.title,
        "content_text": entry.summary,
        "date_published": entry.updated,
    }
    if entry.download is None:
        return item
    file = {
        "url": entry.download,
        "mime_type": entry.media_type or "application/octet-stream",
        "size_in_bytes": entry.byte_size,
    }
    return {**item, "attachments": [file]}


LOOKED_AT = 20
"""Versions that are looked at for each that a page has."""
_ABOUT = ("dataset", "host", "portal", "q")
Row = tuple[Any, ...]
_CURSOR = re.compile(r"([0-9]{1,18})-([0-9a-f]{24})-(-1|[0-9]{1,9})")


class VersionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A new version, with its resource."""

    kind: Literal["new", "changed", "noise"]
    """`noise`: other bytes, the same content."""
    url: str
    title: str | None
    dataset: str
    id: str
    number: int
    captured_at: str
    sha256: str
    byte_size: int
    media_type: str | None
    noise: str | None
    """Why only its bytes differ from those of the version before."""
    download: str
    missed: int
    """On the newest version: how many were probably missed between visits, so far."""


_WENT = ("gone", "gone", "its server says that it is gone; the archived versions stay")
_REOPENED = ("back", "back again", "its server has it again")
WRITERS = {ATOM: atom, JSON_FEED: json_feed}


ENDPOINTS = EndpointTable()
_PARAMETERS = (
    Parameter("since", "from this time on: RFC 3339 or YYYYMMDDhhmmss"),
    Parameter("until", "up to this time"),
    Parameter("host", "of this host"),
    Parameter("portal", "only resources that this portal lists"),
    Parameter("dataset", "only this resource, by its id or URL"),
    Parameter("q", "only resources that match these words"),
    FOR_TRAINING,
    *PAGED,
)


@ENDPOINTS.get(
    "/api/v1/changes", ResponseSpec("Changes", ListPage[VersionChange], (ATOM, JSON_FEED)), *_PARAMETERS
)
async def as_json(request: Request, service: Service) -> Response:
    """New versions, from the newest to the oldest."""
    accept = request.headers.get("accept", "")
    if ATOM in accept and "json" not in accept:
        return await as_atom(request, service)
    if JSON_FEED in accept:
        return await as_json_feed(request, service)
    rows, hidden, most = await _changes(request, service)
    base = base_of(request)
    changes = [_version(row, base) for row in rows if row[0] not in hidden]
    return page_answer(request, changes, after_last(rows, most))


@ENDPOINTS.get("/api/v1/changes.atom", ResponseSpec("A feed", media_types=(ATOM,)), *_PARAMETERS)
async def as_atom(request: Request, service: Service) -> Response:
    """The same as an Atom feed."""
    return await _feed(request, service, "/api/v1/changes.atom", ATOM)


@ENDPOINTS.get("/api/v1/changes.feed.json", ResponseSpec("A feed", media_types=(JSON_FEED,)), *_PARAMETERS)
async def as_json_feed(request: Request, service: Service) -> Response:
    """The same as a JSON Feed."""
    return await _feed(request, service, "/api/v1/changes.feed.json", JSON_FEED)


async def _feed(request: Request, service: Service, path: str, form: str) -> Response:
    rows, hidden, most = await _changes(request, service, states=True)
    parameters = request.query_params
    about = ", ".join(f"{name} {parameters[name]}" for name in _ABOUT if parameters.get(name))
    shown = [row for row in rows if row[0] not in hidden]
    content = await feed_of(request, service, path, form, about, shown, after_last(rows, most))
    return Response(content, media_type=form, headers={"Cache-Control": "no-cache"})


async def feed_of(
    request: Request,
    service: Service,
    path: str,
    form: str,
    about: str,
    rows: Sequence[Row],
    after: str | None,
) -> bytes:
    """Write a page of changes as a feed; `about` says which changes these are.

    Rows are versions, or with the numbers 0 and -1 resources that went and came back.
    """
    base = base_of(request)
    found = [_version(row, base) if row[1] > 0 else _state_entry(row, base) for row in rows]
    versions = [each for each in found if isinstance(each, VersionChange)]
    said = await sentences(service, [each.id for each in versions if each.kind == "changed"])
    parameters = {key: value for key, value in request.query_params.items() if key != "secret"}
    feed = Feed(
        id=f"urn:tamias:changes:{about}" if about else "urn:tamias:changes",
        title=f"What changed in the archive: {about}" if about else "What changed in the archive",
        home=f"{base}/",
        here=f"{base}{path}" + (f"?{urlencode(parameters)}" if parameters else ""),
        further=f"{base}{path}?{urlencode({**parameters, 'cursor': after})}" if after else None,
        entries=tuple(
            _entry(each, base, said.get(each.id)) if isinstance(each, VersionChange) else each
            for each in found
        ),
    )
    return WRITERS[form](feed)


def span(request: Request) -> dict[str, Any]:
    """Return the page and the time span that are asked for."""
    after = cursor(request, _CURSOR)
    at, resource, number = after.groups() if after else (until(request, "until") + 1, "", 0)
    return {
        "at": int(at),
        "resource": resource,
        "number": int(number),
        "since": since(request, "since"),
        "limit": limit(request),
    }


def with_states(db: ServiceSession, versions: list[Row], values: Mapping[str, Any]) -> list[Row]:
    """Rows of versions, and between them when the same resources went and came back."""
    unset = {"datasets": None, "addresses": None, "host": None, "portal": None, "words": None}
    states: list[Row] = db.rows("absences_of", {**unset, **values})
    in_order = sorted([*versions, *states], key=lambda row: (row[2], row[0], row[1]), reverse=True)
    return in_order[: values["limit"]]


def after_last(rows: Sequence[Row], most: int) -> str | None:
    """Return where the next page begins."""
    last = rows[-1] if len(rows) == most else None
    return f"{last[2]}-{last[0]}-{last[1]}" if last else None


async def _changes(
    request: Request, service: Service, *, states: bool = False
) -> tuple[list[Row], frozenset[str], int]:
    """A page of rows, the resources that are left out of it, and how many rows a page has."""
    dataset = parameter(request, "dataset")
    values = {
        **span(request),
        "dataset": (await service.histories.find(dataset)).resource.id if dataset else None,
        "host": parameter(request, "host"),
        "portal": parameter(request, "portal"),
    }
    words = parameter(request, "q")
    if words is not None and len(words) > LONGEST_SEARCH:
        raise HttpProblem(400, f"'q' may have {LONGEST_SEARCH} characters at most")
    withheld = bulk_words(request, () if words is None else SEARCH)
    found = partial(_found, values=values, words=words, withheld=withheld, states=states)
    rows, hidden = await service.pool.run(found)
    return rows, hidden, values["limit"]


def _found(
    db: ServiceSession, values: dict[str, Any], words: str | None, withheld: tuple[str, ...], *, states: bool
) -> tuple[list[Row], frozenset[str]]:
    """The changes, or those that a search for words finds; and resources that are left out of them."""
    parts = None if words is None else find_words(db, words)
    if words is not None and not parts:
        return [], frozenset()
    values = {**values, "words": query(parts, " & ") if parts else None}
    if values["dataset"] and not (values["host"] or values["portal"] or parts):
        # By its key: a plan for any of these conditions would read all versions.
        places = {"dataset": [values["dataset"]], "address": [], "version": []}
        rows = db.rows("changes_named", {**values, **places})
    else:
        rows = _versions(db, values)
    if states:
        rows = with_states(db, rows, {**values, "datasets": values["dataset"] and [values["dataset"]]})
    return rows, unlisted(db, (row[0] for row in rows), withheld)


def _versions(db: ServiceSession, values: dict[str, Any]) -> list[Row]:
    """A page of versions. Where few of the newest ones fit, those that fit are found by what is asked for."""
    rows: list[Row] = db.rows("changes_of", {**values, "most": values["limit"] * LOOKED_AT})
    if len(rows) < values["limit"] and any(values[name] for name in ("dataset", "host", "portal", "words")):
        return db.rows("changes_among", values)
    return rows


def _version(row: Row, base: str) -> VersionChange:
    resource, number, captured_at, digest, size, media_type, noise, url, title, missed = row
    return VersionChange(
        kind="new" if number == 1 else "noise" if noise else "changed",
        url=url,
        title=title,
        dataset=f"{base}/api/v1/get/dataset/{resource}",
        id=f"{resource}_{number}",
        number=number,
        captured_at=rfc3339(captured_at),
        sha256=digest,
        byte_size=size,
        media_type=media_type,
        noise=noise,
        download=f"{base}/api/v1/get/file/id/{resource}_{number}",
        missed=missed,
    )


def _entry(change: VersionChange, base: str, sentence: str | None) -> FeedEntry:
    noise = f"the same content ({change.noise})"
    kinds = {"new": "first seen", "changed": "changed", "noise": noise}
    what = noise if change.noise else sentence or kinds[change.kind]
    missed = f"; about {change.missed:,} versions were probably missed between visits"
    return FeedEntry(
        id=f"urn:tamias:version:{change.id}",
        title=f"{change.title or change.url}: version {change.number}",
        updated=change.captured_at,
        page=f"{base}/dataset/{change.id.replace('_', '/')}",
        data=change.dataset,
        download=change.download,
        media_type=change.media_type,
        byte_size=change.byte_size,
        summary=f"{change.url}: {what}, {change.byte_size} bytes, sha256 {change.sha256}"
        + (missed if change.missed else ""),
    )


def _state_entry(row: Row, base: str) -> FeedEntry:
    resource, number, at, url, title = row
    kind, word, sentence = _REOPENED if number else _WENT
    return FeedEntry(
        id=f"urn:tamias:state:{resource}:{kind}:{rfc3339(at)}",
        title=f"{title or url}: {word}",
        updated=rfc3339(at),
        page=f"{base}/dataset/{resource}",
        data=f"{base}/api/v1/get/dataset/{resource}",
        summary=f"{url}: {sentence}",
    )


PATH: Final = "/feed"
FORMS: Final = {"atom": ATOM, "json": JSON_FEED}
MOST_NAMED: Final = 10_000
CACHE_SECONDS: Final = 30.0


@ENDPOINTS.get(
    PATH,
    ResponseSpec("A feed", media_types=tuple(FORMS.values())),
    Parameter("sparql", "a SELECT whose rows name datasets or versions", required=True),
    Parameter("format", "instead of the Accept header", {"enum": list(FORMS)}),
    Parameter("since", "from this time on: RFC 3339 or YYYYMMDDhhmmss"),
    Parameter("until", "up to this time"),
    FOR_TRAINING,
    *PAGED,
)
async def answer(request: Request, service: Service) -> Response:
    """New versions of the results of a query, newest first, as an Atom feed or a JSON Feed."""
    text, form, page = request.query_params.get("sparql", ""), _form(request), span(request)
    if not text.strip():
        raise HttpProblem(400, "say what to follow: ?sparql=SELECT…; /api/v1/changes.atom follows the rest")
    read = partial(result_of, sparql_of(service), text, wanted_of)
    wanted = await service.recent.get(f"feed {text}", CACHE_SECONDS, read)
    withheld = bulk_words(request, SEARCH)
    rows, hidden = await service.pool.run(
        partial(_found_by_query, values={**page, **wanted}, withheld=withheld)
    )
    about = f"query {blake2b(text.encode(), digest_size=4).hexdigest()}"
    shown = [row for row in rows if row[0] not in hidden]
    content = await feed_of(request, service, PATH, form, about, shown, after_last(rows, page["limit"]))
    headers = {"Cache-Control": f"max-age={CACHE_SECONDS:.0f}", "Vary": "Accept"}
    return Response(content, media_type=form, headers=headers)


def wanted_of(answer: Answer) -> dict[str, list[str]]:
    """Return what a result names, by kind; in a row that names versions, its datasets do not count."""
    found: dict[Named, None] = {}
    for row in _rows(answer):
        names = [named(iri) for iri in row]
        found |= dict.fromkeys([each for each in names if each.version] or names)
        if len(found) > MOST_NAMED:
            raise HttpProblem(422, f"the result names more than {MOST_NAMED} things; ask for less")
    kinds = Named.__struct_fields__
    return {kind: [name for each in found if (name := getattr(each, kind))] for kind in kinds}


def _rows(answer: Answer) -> Iterator[list[str]]:
    """The IRIs of each row. Raises `HttpProblem` where there are no rows."""
    with answer.content as content:
        if answer.media_type.startswith("application/sparql-results+json"):
            found = parse_query_results(content, format=QueryResultsFormat.JSON)
            if isinstance(found, QuerySolutions):
                for row in found:
                    yield [term.value for term in row if isinstance(term, NamedNode)]
                return
    raise HttpProblem(400, "a feed is made of the rows of a SELECT that names datasets or versions")


def _found_by_query(
    db: ServiceSession, values: dict[str, object], withheld: tuple[str, ...]
) -> tuple[list[Row], frozenset[str]]:
    rows = db.rows("changes_named", values)
    rows = with_states(db, rows, {**values, "datasets": values["dataset"], "addresses": values["address"]})
    return rows, unlisted(db, (row[0] for row in rows), withheld)


def _form(request: Request) -> str:
    given = request.query_params.get("format")
    if given is None:
        liked = preferred_by(request, [ATOM, JSON_FEED, "application/json"])
        return ATOM if liked in (ATOM, None) else JSON_FEED
    if given not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return FORMS[given]
