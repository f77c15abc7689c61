"""Time travel over HTTP (RFC 7089): TimeGate, TimeMaps and Mementos.

A Memento never varies and a TimeMap is never negotiated by time: only the TimeGate is.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.forgetting.tombstones import Forgotten, Tombstone, check_gone, tombstones_of
from tamias.archive.moments import digits, milliseconds
from tamias.archive.reader.library import NotArchived
from tamias.model.resource import Version, resource_id
from tamias.model.url import fetch_url, url_key
from tamias.serve.http.endpoints import URL, Endpoint, Parameter, ResponseSpec, path_parameter
from tamias.serve.http.params import base_of, url_behind
from tamias.serve.http.problems import HttpProblem
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.delivery import deliver, http_date, read_http_date
from tamias.serve.replay.timemaps import FORMS, PAGE, Memento, TimeMap
from tamias.serve.replay.warc_replay import warc_versions
from tamias.serve.service import Service

_GATE = "/timegate/"
_MEMENTO = re.compile(r"/memento/([0-9]{4}(?:[0-9]{2}){0,5}|[0-9]{17})/")
_MAP = re.compile(r"/timemap/(link|json|cdxj)/(?:([1-9][0-9]{0,6})/(?=[A-Za-z][A-Za-z0-9+.-]*(?::|%3[Aa])))?")


class Travels(msgspec.Struct, frozen=True):
    """A URL and the addresses of its Mementos, oldest first: versions, and what stands in WARC files."""

    original: str
    """The address that was archived."""
    versions: Sequence[Version]
    base: str

    @property
    def gate(self) -> str:
        """Where times are negotiated."""
        return f"{self.base}{_GATE}{self.original}"

    def time_map(self, form: str, page: int = 1) -> str:
        """Where the Mementos are listed."""
        part = f"{page}/" if page > 1 else ""
        return f"{self.base}/timemap/{form}/{part}{self.original}"

    def stamps(self) -> list[str]:
        """The times in the addresses: to the second, or finer where one second has two versions."""
        seconds = [digits(version.captured_at) for version in self.versions]
        crowded = {second for second, n in Counter(seconds).items() if n > 1}
        return [
            f"{second}{version.captured_at % 1000:03d}" if second in crowded else second
            for second, version in zip(seconds, self.versions, strict=True)
        ]

    def address(self, stamp: str) -> str:
        """Of a Memento."""
        return f"{self.base}/memento/{stamp}/{self.original}"

    def mementos(self) -> list[Memento]:
        """All of them."""
        pairs = zip(self.stamps(), self.versions, strict=True)
        return [Memento(self.address(stamp), stamp, version.captured_at) for stamp, version in pairs]

    def place_at(self, moment: int) -> int:
        """Which version held at a moment; the first, before there was any."""
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


async def gate(request: Request, service: Service) -> Response:
    """Leads to the version that held at the wanted time."""
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
        "Location": travels.address(travels.stamps()[place]),
        "Link": travels.link(place, with_gate=False),
        "Cache-Control": "no-cache",
    }
    return Response(status_code=302, headers=headers)


async def memento(request: Request, service: Service) -> Response:
    """A version by the time at which it was captured; another time leads to the version that held then."""
    found = _MEMENTO.match(request.scope["raw_path"].decode("latin-1"))
    if found is None:
        raise HttpProblem(404, "a Memento's time is YYYYMMDDhhmmss, or the beginning of it")
    travels = await _travels(request, service, url_behind(request, found[0]))
    stamps = travels.stamps()
    if found[1] not in stamps:
        await _check_forgotten(service, travels.original, found[1])
        place = travels.place_at(_moment(found[1]))
        return Response(status_code=302, headers={"Location": travels.address(stamps[place])})
    place = stamps.index(found[1])
    version = travels.versions[place]
    headers = {
        "Memento-Datetime": http_date(version.captured_at),
        "Link": travels.link(place, with_gate=True),
    }
    return await deliver(request, service, version, headers)


async def time_map(request: Request, service: Service) -> Response:
    """The list of all versions, in one of three forms, a thousand at a time."""
    found = _MAP.match(request.scope["raw_path"].decode("latin-1"))
    if found is None:
        raise HttpProblem(404, "a TimeMap has one of the forms link, json and cdxj")
    form, page = found[1], int(found[2] or 1)
    travels = await _travels(request, service, url_behind(request, found[0]))
    mementos = travels.mementos()
    pages = -(-len(mementos) // PAGE)
    if page > pages:
        raise HttpProblem(404, f"this TimeMap has {pages} pages")
    told = TimeMap(
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
    return Response(write(told), media_type=media_type, headers={"Cache-Control": "no-cache"})


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
    versions += [
        each
        for each in recorded
        if (each.captured_at, each.sha256) not in known and not _is_covered(each.captured_at, gone)
    ]
    if not versions:
        name = _name(service, original)
        await service.pool.run(lambda db: check_gone(db.session, name, None))
        there = "has no version yet" if found is not None else "is not in the archive"
        raise NotArchived(f"{original[:200]} {there}")
    versions.sort(key=lambda each: each.captured_at)
    return Travels(original, versions, base_of(request))


def _name(service: Service, url: str) -> str:
    return resource_id(url_key(url, frozenset(service.settings.filters.session_names)))


def _tombstones(db: ServiceSession, url: str) -> list[Tombstone]:
    names = frozenset(db.settings.filters.session_names)
    return tombstones_of(db.session, [resource_id(url_key(url, names))])


def _is_covered(captured_at: int, tombstones: list[Tombstone]) -> bool:
    """Whether what was captured at a time is forgotten, though its record may still be there."""
    return any(
        each.captured_at == captured_at if each.number is not None else each.covers(0, captured_at)
        for each in tombstones
    )


async def _check_forgotten(service: Service, url: str, stamp: str) -> None:
    """Raises `Forgotten` where a version was captured at that very time."""
    for each in await service.pool.run(partial(_tombstones, url=url)):
        if each.captured_at is not None and digits(each.captured_at) == stamp[:14]:
            raise Forgotten(each)


def _moment(stamp: str) -> int:
    """Raises `UsageError` for digits that are no time."""
    found = milliseconds(stamp[:14])
    return found - 999 + int(stamp[14:]) if stamp[14:] else found


_URL = path_parameter("URL", "the URL of the original", URL)
_ELSEWHERE = ResponseSpec("The address of the Memento is in the Location header")

ENDPOINTS = [
    Endpoint(
        path=_GATE + "{URL}",
        handle=gate,
        about="TimeGate: redirects to the version that was current at Accept-Datetime",
        parameters=(_URL, Parameter("Accept-Datetime", "an HTTP date", where="header")),
        answers={302: _ELSEWHERE},
    ),
    Endpoint(
        path="/memento/{time}/{URL}",
        handle=memento,
        about="Memento: a version by the time of its capture",
        parameters=(
            path_parameter(
                "time",
                "YYYYMMDDhhmmss, or the beginning of it",
                {"type": "string", "pattern": "^[0-9]{4,17}$"},
            ),
            _URL,
        ),
        answers={
            200: ResponseSpec("The bytes, exactly as they were captured", media_types=("*/*",)),
            206: ResponseSpec("The requested part", media_types=("*/*",)),
            302: _ELSEWHERE,
            304: ResponseSpec("The client has it already"),
        },
    ),
    Endpoint(
        path="/timemap/{form}/{URL}",
        handle=time_map,
        about="TimeMap: all versions of a URL; further pages as /timemap/{form}/2/{URL}",
        parameters=(path_parameter("form", "the output format", {"enum": list(FORMS)}), _URL),
        answers={
            200: ResponseSpec("A page of the TimeMap", media_types=tuple(each for each, _ in FORMS.values()))
        },
    ),
]
