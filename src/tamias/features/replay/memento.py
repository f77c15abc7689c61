"""Time travel over HTTP (RFC 7089): TimeGate, TimeMaps and Mementos, also of what stands in WARC files.

A Memento never varies and a TimeMap is never negotiated by time: only the TimeGate is. Responses from WARC
files are found by the index, read at their places, and checked by digests.
"""

import re
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tamias.archive.blobs import BlobDamaged, BlobMissing
from tamias.archive.closed import CLOSED, closing_rules
from tamias.archive.file_store import FileStore, file_store
from tamias.archive.moments import digits, milliseconds, rfc3339
from tamias.archive.reader.library import NotArchived
from tamias.archive.stored_files import find_warc
from tamias.archive.tombstones import Forgotten, Tombstone, check_gone, tombstones_of
from tamias.features.service.files.delivery import (
    FOR_NOBODY,
    IN_MEMORY,
    content_type,
    deliver,
    headers_of,
    http_date,
    memento_path,
    part_of,
    read_http_date,
    refuse_unchanged,
    timestamps,
    wanted_part,
)
from tamias.features.service.http.callers import may_read
from tamias.features.service.http.endpoints import URL, EndpointTable, Parameter, ResponseSpec, path_parameter
from tamias.features.service.http.exchange import base_of, url_behind
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import id_of_url
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import check_owner
from tamias.features.service.service import Service
from tamias.features.warc.index import WarcExtent, records_of, records_with
from tamias.features.warc.messages import MessageHead, read_response
from tamias.model.errors import UrlError
from tamias.model.resource import Version
from tamias.model.url import fetch_url, resolve
from tamias.model.usage import SHOWING, refusal, verdict
from tamias.permit.signals import signals_of

PAGE = 1000
MOST_HEADER_BYTES = 16_384
"""Of an archived response that are shown."""
_ORIGINAL = "X-Archive-Orig-"
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


class Memento(msgspec.Struct, frozen=True):
    """A version at its address."""

    address: str
    stamp: str
    captured_at: int


class TimeMap(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list, and its neighbours."""

    original: str
    gate: str
    here: str
    forms: dict[str, str]
    mementos: list[Memento]
    first: Memento
    last: Memento
    before: str | None
    after: str | None


def as_link(timemap: TimeMap) -> bytes:
    """Write a TimeMap as links, one on each line."""
    return ",\n".join(_links(timemap)).encode() + b"\n"


def as_json(timemap: TimeMap) -> bytes:
    """Write a TimeMap as JSON."""
    document: dict[str, Any] = {
        "original_uri": timemap.original,
        "self": timemap.here,
        "timegate_uri": timemap.gate,
        "timemap_uri": {f"{form}_format": address for form, address in timemap.forms.items()},
        "mementos": {
            "first": _pair(timemap.first),
            "list": [_pair(each) for each in timemap.mementos],
            "last": _pair(timemap.last),
        },
    }
    document |= {key: value for key, value in (("prev", timemap.before), ("next", timemap.after)) if value}
    return msgspec.json.encode(document)


def as_cdxj(timemap: TimeMap) -> bytes:
    """Write a TimeMap as CDXJ."""
    return b"".join(line + b"\n" for line in _cdxj_lines(timemap))


def _links(timemap: TimeMap) -> Iterator[str]:
    low, high = timemap.mementos[0], timemap.mementos[-1]
    span = f'; from="{http_date(low.captured_at)}"; until="{http_date(high.captured_at)}"'
    kind = '; type="application/link-format"'
    yield f'<{timemap.original}>; rel="original"'
    yield f'<{timemap.here}>; rel="self"{kind}{span}'
    for neighbour in (timemap.before, timemap.after):
        if neighbour is not None:
            yield f'<{neighbour}>; rel="timemap"{kind}'
    yield f'<{timemap.gate}>; rel="timegate"'
    for each in timemap.mementos:
        yield f'<{each.address}>; rel="{_relation(timemap, each)}"; datetime="{http_date(each.captured_at)}"'


def _cdxj_lines(timemap: TimeMap) -> Iterator[bytes]:
    encode = msgspec.json.encode
    yield b'!context ["http://tools.ietf.org/html/rfc7089"]'
    yield b"!id " + encode({"uri": timemap.here})
    yield b'!keys ["memento_datetime_YYYYMMDDhhmmss"]'
    yield b"!meta " + encode({"original_uri": timemap.original})
    yield b"!meta " + encode({"timegate_uri": timemap.gate})
    yield b"!meta " + encode(
        {"timemap_uri": {f"{form}_format": address for form, address in timemap.forms.items()}}
    )
    for neighbour in (timemap.before, timemap.after):
        if neighbour is not None:
            yield b"!meta " + encode({"timemap_page": neighbour})
    for each in timemap.mementos:
        about = {
            "uri": each.address,
            "rel": _relation(timemap, each),
            "datetime": http_date(each.captured_at),
        }
        yield each.stamp.encode() + b" " + encode(about)


def _relation(timemap: TimeMap, memento: Memento) -> str:
    words = [word for word, each in (("first", timemap.first), ("last", timemap.last)) if each == memento]
    return " ".join([*words, "memento"])


def _pair(memento: Memento) -> dict[str, str]:
    return {"datetime": rfc3339(memento.captured_at), "uri": memento.address}


FORMS: Final[dict[str, tuple[str, Callable[[TimeMap], bytes]]]] = {
    "link": ("application/link-format", as_link),
    "json": ("application/json", as_json),
    "cdxj": ("application/cdxj+ors", as_cdxj),
}
"""The media type of each form, and who writes it."""


_GATE = "/timegate/"
_MEMENTO = re.compile(r"/memento/([0-9]{4}(?:[0-9]{2}){0,5}|[0-9]{17})/")
_MAP = re.compile(r"/timemap/(link|json|cdxj)/(?:([1-9][0-9]{0,6})/(?=[A-Za-z][A-Za-z0-9+.-]*(?::|%3[Aa])))?")


class Travels(msgspec.Struct, frozen=True):
    """A URL and the addresses of its Mementos, oldest first: versions, and what stands in WARC files."""

    original: str
    """The address that was archived."""
    versions: Sequence[Version]
    base: str
    records: Mapping[tuple[int, str], WarcExtent]
    """Where the responses stand in WARC files, by their times and the digests of their bodies."""

    @property
    def gate(self) -> str:
        """Return the address of the TimeGate."""
        return f"{self.base}{_GATE}{self.original}"

    def time_map(self, form: str, page: int = 1) -> str:
        """Return the address of a TimeMap."""
        part = f"{page}/" if page > 1 else ""
        return f"{self.base}/timemap/{form}/{part}{self.original}"

    def mementos(self) -> list[Memento]:
        """Return all Mementos."""
        return [
            Memento(self.base + memento_path(stamp, self.original), stamp, version.captured_at)
            for stamp, version in zip(timestamps(self.versions), self.versions, strict=True)
        ]

    def place_at(self, moment: int) -> int:
        """Return the version that was current at a time; the first, before there was any."""
        return max(0, bisect_right(self.versions, moment, key=lambda version: version.captured_at) - 1)

    def link(self, place: int, *, with_gate: bool) -> str:
        """The Link header of a Memento, or of the answer that leads to it."""
        mementos = self.mementos()
        named: dict[int, list[str]] = {}
        last = len(mementos) - 1
        for relation, at in (("first", 0), ("prev", place - 1), ("next", place + 1), ("last", last)):
            if 0 <= at <= last:
                named.setdefault(at, []).append(relation)
        named.setdefault(place, [])
        links = [f'<{self.original}>; rel="original"']
        links += [f'<{self.gate}>; rel="timegate"'] if with_gate else []
        links.append(f'<{self.time_map("link")}>; rel="timemap"; type="application/link-format"')
        links += [
            f'<{mementos[at].address}>; rel="{" ".join([*words, "memento"])}"; '
            f'datetime="{http_date(mementos[at].captured_at)}"'
            for at, words in sorted(named.items())
        ]
        return ", ".join(links)


ENDPOINTS = EndpointTable()
_URL = path_parameter("URL", "the URL of the original", URL)
_ELSEWHERE = ResponseSpec("The address of the Memento is in the Location header")


@ENDPOINTS.get(
    _GATE + "{URL}",
    {302: _ELSEWHERE},
    _URL,
    Parameter("Accept-Datetime", "an HTTP date", where="header"),
    for_people=True,
)
async def gate(request: Request, service: Service) -> Response:
    """TimeGate: redirects to the version that was current at Accept-Datetime."""
    travels = await _travels(request, service, url_behind(request, _GATE))
    wanted = request.headers.get("accept-datetime")
    moment = 2**62 if wanted is None else read_http_date(wanted)
    vary = {"Vary": "accept-datetime"}
    if moment is None:
        raise HttpProblem(
            400, "Accept-Datetime is not an HTTP date such as 'Tue, 14 Nov 2023 22:13:20 GMT'", vary
        )
    place = travels.place_at(moment)
    headers = {
        **vary,
        "Location": travels.mementos()[place].address,
        "Link": travels.link(place, with_gate=False),
        "Cache-Control": "no-cache",
    }
    return Response(status_code=302, headers=headers)


@ENDPOINTS.get(
    "/memento/{time}/{URL}",
    {
        200: ResponseSpec("The bytes, exactly as they were captured", media_types=("*/*",)),
        206: ResponseSpec("The requested part", media_types=("*/*",)),
        302: _ELSEWHERE,
        304: ResponseSpec("The client has it already"),
    },
    path_parameter(
        "time",
        "YYYYMMDDhhmmss, or the beginning of it",
        {"type": "string", "pattern": "^[0-9]{4,17}$"},
    ),
    _URL,
    for_people=True,
)
async def memento(request: Request, service: Service) -> Response:
    """Memento: a version by the time of its capture."""
    found = _MEMENTO.match(request.scope["raw_path"].decode("latin-1"))
    if found is None:
        raise HttpProblem(404, "a Memento's time is YYYYMMDDhhmmss, or the beginning of it")
    travels = await _travels(request, service, url_behind(request, found[0]))
    mementos = travels.mementos()
    place = next((place for place, each in enumerate(mementos) if each.stamp == found[1]), None)
    if place is None:
        for each in await service.pool.run(partial(_tombstones, url=travels.original)):
            # A version was captured at that very time.
            if each.captured_at is not None and digits(each.captured_at) == found[1][:14]:
                raise Forgotten(each)
        second, thousandths = milliseconds(found[1][:14]), found[1][14:]
        moment = second - 999 + int(thousandths) if thousandths else second
        nearest = mementos[travels.place_at(moment)]
        return Response(status_code=302, headers={"Location": nearest.address})
    version = travels.versions[place]
    headers = {
        "Memento-Datetime": http_date(version.captured_at),
        "Link": travels.link(place, with_gate=True),
    }
    if isinstance(version, WarcVersion):
        return await replay(request, service, version, headers)
    if extent := travels.records.get((version.captured_at, version.sha256)):
        with suppress(BlobMissing, BlobDamaged):  # the body of the version does not depend on them
            headers |= await service.pool.run(partial(_original_headers, data=service.data, extent=extent))
    return await deliver(request, service, version, headers)


@ENDPOINTS.get(
    "/timemap/{form}/{URL}",
    ResponseSpec("A page of the TimeMap", media_types=tuple(each for each, _ in FORMS.values())),
    path_parameter("form", "the output format", {"enum": list(FORMS)}),
    _URL,
    for_people=True,
)
async def time_map(request: Request, service: Service) -> Response:
    """TimeMap: all versions of a URL; further pages as /timemap/{form}/2/{URL}."""
    found = _MAP.match(request.scope["raw_path"].decode("latin-1"))
    if found is None:
        raise HttpProblem(404, "a TimeMap has one of the forms link, json and cdxj")
    form, page = found[1], int(found[2] or 1)
    travels = await _travels(request, service, url_behind(request, found[0]))
    mementos = travels.mementos()
    pages = -(-len(mementos) // PAGE)
    if page > pages:
        raise HttpProblem(404, f"this TimeMap has {pages} pages")
    timemap = TimeMap(
        original=travels.original,
        gate=travels.gate,
        here=travels.time_map(form, page),
        forms={each: travels.time_map(each) for each in FORMS},
        mementos=mementos[(page - 1) * PAGE : page * PAGE],
        first=mementos[0],
        last=mementos[-1],
        before=travels.time_map(form, page - 1) if page > 1 else None,
        after=travels.time_map(form, page + 1) if page < pages else None,
    )
    media_type, write = FORMS[form]
    return Response(write(timemap), media_type=media_type, headers={"Cache-Control": "no-cache"})


async def _travels(request: Request, service: Service, url: str) -> Travels:
    try:
        found = await service.histories.find(url)
    except NotArchived:
        found = None
    original = found.resource.url if found is not None else fetch_url(url)
    versions: list[Version] = list(found.versions) if found is not None else []
    known = {(each.captured_at, each.sha256) for each in versions}
    recorded = await service.pool.run(partial(warc_versions, url=original))
    gone = await service.pool.run(partial(_tombstones, url=original))
    recorded = _not_forgotten(recorded, gone)
    versions += [each for each in recorded if (each.captured_at, each.sha256) not in known]
    if not versions:
        await service.pool.run(lambda db: check_gone(db.session, id_of_url(db, original), None))
        there = "has no version yet" if found is not None else "is not in the archive"
        raise NotArchived(f"{original[:200]} {there}")
    rules = closing_rules(service.settings.archive.closed)
    if not may_read(request, original):
        versions = [each for each in versions if not rules.closes(original, each.captured_at)]
    if not versions:
        raise HttpProblem(403, f"{CLOSED}; a token with the scope 'read' opens it")
    versions.sort(key=lambda each: each.captured_at)
    records = {(each.captured_at, each.sha256): each.extent for each in recorded}
    return Travels(original, versions, base_of(request), records)


def _tombstones(db: ServiceSession, url: str) -> list[Tombstone]:
    return tombstones_of(db.session, [id_of_url(db, url)])


class WarcVersion(Version, frozen=True, kw_only=True):
    """A record of a WARC file in the form of a version."""

    extent: WarcExtent


class WarcBody(msgspec.Struct, frozen=True):
    """A response that was read and checked; whoever has it closes its file."""

    head: MessageHead
    file: IO[bytes]
    size: int


def _not_forgotten(recorded: Sequence[WarcVersion], gone: Sequence[Tombstone]) -> list[WarcVersion]:
    """Return the versions that no tombstone covers: one may be forgotten while its record is still there."""
    covered = {each.captured_at for each in gone if each.number is not None}
    whole = [each for each in gone if each.number is None]
    return [
        each
        for each in recorded
        if each.captured_at not in covered
        and not any(tombstone.covers(0, each.captured_at) for tombstone in whole)
    ]


def warc_versions(db: ServiceSession, url: str) -> list[WarcVersion]:
    """Return the records of a URL in WARC files, oldest first."""
    return [_version(extent) for extent in records_of(db.session, [url])]


def read_body(db: ServiceSession, data: Path, extent: WarcExtent) -> WarcBody:
    """The response of a record, with the body of another where it refers to one.

    Raises `BlobMissing`, `BlobDamaged`.
    """
    store = file_store(db.session, data)
    if not extent.revisit:
        return _read(db, store, extent, with_body=True)
    refers = _read(db, store, extent, with_body=False)
    refers.file.close()
    problem: Exception = BlobMissing(f"no record holds the body {extent.sha256}")
    for original in records_with(db.session, extent.sha256 or ""):
        try:
            return msgspec.structs.replace(_read(db, store, original, with_body=True), head=refers.head)
        except (BlobMissing, BlobDamaged) as error:
            problem = error
    raise problem


def _original_headers(db: ServiceSession, data: Path, extent: WarcExtent) -> dict[str, str]:
    found = _read(db, file_store(db.session, data), extent, with_body=False)
    found.file.close()
    return original_headers(found.head)


def original_headers(head: MessageHead) -> dict[str, str]:
    """Return the headers of an archived response under names that no client acts on."""
    found: dict[str, str] = {}
    size = 0
    for name, value in head.headers:
        size += len(name) + len(value)
        if size > MOST_HEADER_BYTES:
            break
        if _TOKEN.fullmatch(name):
            key = _ORIGINAL + name.lower().removeprefix(_ORIGINAL.lower())
            text = value.encode("latin-1", "replace").decode("latin-1")
            found[key] = f"{found[key]}, {text}" if key in found else text
    return found


async def replay(
    request: Request, service: Service, version: WarcVersion, headers: Mapping[str, str]
) -> Response:
    """The response of a WARC record, with the status that it had."""
    body = await service.pool.run(partial(read_body, data=service.data, extent=version.extent))
    sent = {**headers_of(version), **headers, "Content-Type": content_type(version)}
    sent |= original_headers(body.head)
    try:
        version = msgspec.structs.replace(version, byte_size=body.size)
        said = verdict(signals_of(body.head.headers, (), (), url=version.extent.url))
        known = await service.usages.withheld(version) if version.capture else None
        if reason := known or refusal(said, SHOWING):
            check_owner(request, reason)
            sent["Cache-Control"] = FOR_NOBODY
        status = version.extent.status
        if location := body.head.header("location"):
            target = version.extent.url
            with suppress(UrlError):
                target = resolve(location, target)
            sent["Location"] = base_of(request) + memento_path(digits(version.captured_at), target)
        unchanged = refuse_unchanged(request, version, sent) if status == 200 else None
        if unchanged is not None or request.method == "HEAD":
            body.file.close()
            sent["Content-Length"] = str(version.byte_size)
            return unchanged or Response(status_code=status, headers=sent)
        start, stop, status = wanted_part(request, version, sent, status)
    except BaseException:
        body.file.close()
        raise
    return StreamingResponse(part_of(body.file, start, stop), status, headers=sent)


def _version(extent: WarcExtent) -> WarcVersion:
    declared = (extent.declared_type or "").partition(";")[0].strip().lower()
    return WarcVersion(
        resource="",
        number=0,
        captured_at=extent.captured_at,
        sha256=extent.sha256 or "",
        byte_size=0,  # known when it is read
        media_type=declared or None,
        declared_type=extent.declared_type,
        capture=extent.capture or "",
        extent=extent,
    )


def _read(db: ServiceSession, store: FileStore, extent: WarcExtent, *, with_body: bool) -> WarcBody:
    body: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY, prefix="tamias-serve-")  # noqa: SIM115 (its reader closes it)
    try:
        with store.open(find_warc(db.session, extent.file)) as file:
            head = read_response(file, extent, body.write, with_body=with_body)
    except FileNotFoundError:
        body.close()
        raise BlobMissing(f"the WARC file {extent.file} is not there") from None
    except BaseException:
        body.close()
        raise
    return WarcBody(head, body, body.tell())
