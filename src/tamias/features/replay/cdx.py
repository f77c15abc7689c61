"""`/cdx`: versions and records of WARC files as lines of a capture index, as other web archives are asked."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.archive.closed import closing_rules
from tamias.archive.moments import digits, first_millisecond
from tamias.archive.tombstones import check_gone
from tamias.features.service.files.delivery import UNKNOWN
from tamias.features.service.http.callers import may_read, may_read_all
from tamias.features.service.http.endpoints import EndpointTable, Parameter, ResponseSpec
from tamias.features.service.http.exchange import cursor, json_answer, number, parameter, since, until
from tamias.features.service.http.problems import HttpProblem
from tamias.features.service.queries.history import id_of_url
from tamias.features.service.queries.thread_pool import ServiceSession
from tamias.features.service.queries.usage import unlisted, usages
from tamias.features.service.service import Service
from tamias.features.warc.cdxj import REVISIT, surt
from tamias.model.url import fetch_url, host

MOST = 10_000
_SCHEMES = ("http", "https", "ftp")
_MATCHES = ("exact", "prefix", "host", "domain")
BLOCK = 1000
"""Lines that a page is measured in."""
FIRST_ORIGINS = 2
MOST_ORIGINS = 2048
"""Hosts of a domain that are looked at together, at first and at most."""
_SORTS = ("default", "reverse", "closest")
_CURSOR = re.compile(r"([0-9]{1,16}) ([0-9]{1,16}) ([^ /]{0,200}) (.{1,4000})")
_FILTER = re.compile(r"(!?)(=?)([a-z]{1,20}):(.{1,1000})")
_NAMES = {"mime": "mimetype", "status": "statuscode", "url": "original"}
"""As other archives call them."""
_END = "\U0010ffff"

Span = tuple[str, str]
Row = tuple[Any, ...]


class CdxLine(msgspec.Struct, frozen=True):
    """A capture, in the order of fields that tools expect."""

    urlkey: str
    timestamp: str
    original: str
    mimetype: str
    statuscode: str
    digest: str
    length: str
    offset: str = ""
    filename: str = ""
    """Set for what stands in a WARC file: its name, which is no path."""


_FIELDS = CdxLine.__struct_fields__
_SHOWN = _FIELDS[:7]


ENDPOINTS = EndpointTable()


@ENDPOINTS.get(
    "/cdx",
    ResponseSpec("Lines", list[list[str]] | dict[str, int], ("text/plain", "text/x-cdxj")),
    Parameter(
        "url",
        "a URL; with * at the end, all URLs with this prefix; *.host for a domain",
        required=True,
    ),
    Parameter("matchType", "how it is compared", {"enum": list(_MATCHES)}),
    Parameter("from", "captured at this time or later: a year, a day, a second, as precise as you like"),
    Parameter("to", "captured at this time or earlier: a year includes all of it"),
    Parameter("sort", "the order: by URL and time, newest first, or nearest first", {"enum": list(_SORTS)}),
    Parameter("closest", "a time; captures that are nearest to it come first"),
    Parameter("filter", "[!][=]FIELD:TEXT", {"type": "array", "items": {"type": "string"}}),
    Parameter("collapse", "adjacent lines with the same digest become one line", {"enum": ["digest"]}),
    Parameter("output", "the output format", {"enum": ["text", "json", "cdxj"]}),
    Parameter("limit", "how many captures are examined", {"type": "integer", "minimum": 1, "maximum": MOST}),
    Parameter("fl", "the fields, separated by commas; offset and filename only if you name them"),
    Parameter("page", "a page of the captures, from 0", {"type": "integer", "minimum": 0}),
    Parameter(
        "pageSize",
        f"the size of a page, in blocks of {BLOCK} captures",
        {"type": "integer", "minimum": 1, "maximum": MOST // BLOCK},
    ),
    Parameter("showNumPages", "returns only how many pages there are", {"enum": ["true"]}),
    Parameter("cursor", "the X-Cursor header of the previous response"),
    for_people=True,
)
async def query(request: Request, service: Service) -> Response:
    """Versions and records of WARC files as lines of a capture index."""
    named = parameter(request, "url")
    if named is None:
        raise HttpProblem(400, "name a URL: ?url=URL")
    match, bare = _match(named, parameter(request, "matchType"))
    spans, domain = _spans(bare, match)
    low, high = map(list, zip(*spans, strict=True))
    values: dict[str, Any] = {
        "low": low,
        "high": high,
        "domain": domain,
        "since": since(request, "from"),
        "until": until(request, "to"),
    }
    if parameter(request, "showNumPages") in ("true", "1"):
        # The number of pages, as other archives write it.
        size = _page_size(request)
        pages = await _page_count(service, values, size)
        found = {"pages": pages, "pageSize": size // BLOCK, "blocks": pages * size // BLOCK}
        return json_answer(request, found)
    most = number(request, "limit", MOST, 1, MOST)
    statement, values = await _ordered(request, service, {**values, "limit": most})
    filters = [_filter(each) for each in request.query_params.getlist("filter")[:10]]
    finds = match != "exact" and not may_read_all(request)
    rows, hidden = await service.pool.run(partial(_rows, statement=statement, values=values, finds=finds))
    if not rows and match == "exact":
        await service.pool.run(partial(_check_gone, urls=low))
    rules = closing_rules(service.settings.archive.closed)
    shown = (
        _line(row)
        for row in rows
        if hidden.isdisjoint((row[8], row[10])) and (may_read(request, row[0]) or not rules.closes(*row[:2]))
    )
    lines = _select(shown, filters, collapse=parameter(request, "collapse") == "digest")
    url, at, file, position, *_ = rows[-1] if statement == "cdx" and len(rows) == most else ("",) * 4
    return _answer(request, lines, f"{at} {position} {file} {url}" if url else None)


async def _ordered(request: Request, service: Service, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement for the order that is wanted, and its parameters."""
    closest, sort = parameter(request, "closest"), parameter(request, "sort")
    if sort is not None and sort not in _SORTS:
        raise HttpProblem(400, f"'sort' is one of {', '.join(_SORTS)}")
    if sort == "closest" and closest is None:
        raise HttpProblem(400, "'sort=closest' needs 'closest', a time")
    paged = parameter(request, "page") is not None
    if closest is None and sort != "reverse" and not paged:
        after = cursor(request, _CURSOR)
        at, position, file, url = after.groups() if after else ("0", "0", "", "")
        return "cdx", {**values, "at": int(at), "position": int(position), "file": file, "url": url}
    if parameter(request, "cursor") is not None:
        raise HttpProblem(400, "'cursor' is for the usual order; use 'page' with 'sort', 'closest' or 'page'")
    size = _page_size(request)
    page = number(request, "page", 0, 0, 10**6)
    if page and page >= await _page_count(service, values, size):
        raise HttpProblem(400, f"there is no page {page}; 'showNumPages=true' says how many there are")
    values |= {
        "closest": first_millisecond(closest) if closest is not None and sort != "reverse" else None,
        "reverse": sort == "reverse",
        "limit": min(values["limit"], size) if paged else values["limit"],
        "offset": page * size,
    }
    return "cdx_sorted", values


async def _page_count(service: Service, values: dict[str, Any], size: int) -> int:
    return -(-(await service.pool.run(partial(_count, terms=values))) // size)


def _count(db: ServiceSession, terms: dict[str, Any]) -> int:
    spans = [(terms["low"], terms["high"])] if terms["domain"] is None else _origins(db, terms["domain"], "")
    return sum(db.rows("cdx_count", {**terms, "low": low, "high": high})[0][0] for low, high in spans)


def _origins(db: ServiceSession, domain: str, url: str) -> Iterator[tuple[list[str], list[str]]]:
    """Spans of the URLs of a domain in their order, from a URL on: a few, then more and more at once."""
    size = FIRST_ORIGINS
    while True:
        found = db.rows("cdx_origins", {"url": url, "end": _END, "limit": size})
        spans = [(low, high) for low, high in found if _is_in(domain, low)]
        if spans:
            yield [low for low, _ in spans], [high for _, high in spans]
        if len(found) < size:
            return
        url, size = found[-1][1], min(size * 4, MOST_ORIGINS)


def _is_in(domain: str, url: str) -> bool:
    """Return whether a URL is on a host of a domain, by either way of reading its host."""
    names = (host(url), url.split("/", 3)[2].split(":", maxsplit=1)[0] if url.count("/") > 1 else "")
    return any(name == domain or name.endswith(f".{domain}") for name in names)


def _lines_of_domain(db: ServiceSession, statement: str, values: dict[str, Any]) -> list[Row]:
    """Origin by origin, so that no more is read than is wanted: their order is the order of the lines."""
    rows: list[Row] = []
    for low, high in _origins(db, values["domain"], values.get("url", "")):
        left = values["limit"] - len(rows)
        rows += db.rows(statement, {**values, "low": low, "high": high, "limit": left})
        if len(rows) >= values["limit"]:
            break
    return rows


def _page_size(request: Request) -> int:
    """Lines on a page."""
    return number(request, "pageSize", MOST // BLOCK, 1, MOST // BLOCK) * BLOCK


def _rows(
    db: ServiceSession, statement: str, values: dict[str, Any], *, finds: bool
) -> tuple[list[Row], frozenset[str]]:
    """The lines, and which of their resources and captures are found by nothing but their addresses."""
    in_order = statement == "cdx" or (values["closest"] is None and not values["offset"])
    if values["domain"] is not None and in_order:
        rows = _lines_of_domain(db, statement, values)
    else:
        rows = db.rows(statement, values)
    if not finds:
        return rows, frozenset()
    said = usages(db, [row[10] for row in rows if row[8] is None and row[10] is not None])
    unfound = {capture for capture, terms in said.items() if terms.noindex}
    return rows, unlisted(db, (row[8] for row in rows if row[8] is not None)) | unfound


def _check_gone(db: ServiceSession, urls: list[str]) -> None:
    """Raises `Forgotten` where one of them was archived."""
    for url in urls:
        check_gone(db.session, id_of_url(db, url), None)


def _select(
    lines: Iterable[CdxLine], filters: Sequence[Callable[[CdxLine], bool]], *, collapse: bool
) -> list[CdxLine]:
    """Return the lines that fit all filters; of adjacent ones with the same digest the first, to collapse."""
    found = [line for line in lines if all(fits(line) for fits in filters)]
    if not collapse:
        return found
    return [next(group) for _, group in groupby(found, key=lambda line: (line.original, line.digest))]


def _match(named: str, word: str | None) -> tuple[str, str]:
    """Return how URLs are compared, by a word or a star."""
    if named.startswith("*."):
        return "domain", named[2:]
    if named.endswith("*"):
        return "prefix", named[:-1]
    if word is not None and word not in _MATCHES:
        raise HttpProblem(400, f"'matchType' is one of {', '.join(_MATCHES)}")
    return word or "exact", named


def _spans(named: str, match: str) -> tuple[list[Span], str | None]:
    """Return the ranges of URLs, and the domain where ranges are not enough."""
    complete = [named] if "://" in named else [f"{scheme}://{named}" for scheme in _SCHEMES[:2]]
    urls = [fetch_url(each) for each in complete]
    if match == "exact":
        return [(url, url + "\x01") for url in urls], None
    if match == "prefix":
        return [(url, url + _END) for url in urls], None
    name = host(urls[0])
    if match == "domain":
        return [("", _END)], name
    starts = [f"{scheme}://{name}{end}" for scheme in _SCHEMES for end in "/:"]
    return [(start, start + _END) for start in starts], None


def _filter(text: str) -> Callable[[CdxLine], bool]:
    """`field:part`, `=field:text`, and `!` before either for the opposite."""
    found = _FILTER.fullmatch(text)
    field = found[3] if found else ""
    field = _NAMES.get(field, field)
    if found is None or field not in _FIELDS:
        raise HttpProblem(
            400, "a filter is [!][=]FIELD:TEXT, without regular expressions, such as =mimetype:text/csv"
        )

    def fits(line: CdxLine) -> bool:
        value = getattr(line, field)
        same = value == found[4] if found[2] else found[4] in value
        return same is not bool(found[1])

    return fits


def _line(row: Row) -> CdxLine:
    url, captured_at, file, position, length, status, digest, media_type, _, revisit, _ = row
    return CdxLine(
        surt(url),
        digits(captured_at),
        url,
        REVISIT if revisit else media_type or UNKNOWN,
        "-" if status is None else str(status),
        f"sha256:{digest}" if digest else "-",
        str(length),
        str(position) if file else "",
        file,
    )


def _answer(request: Request, lines: list[CdxLine], last: str | None) -> Response:
    form = parameter(request, "output") or "text"
    fields = _wanted_fields(parameter(request, "fl") or parameter(request, "fields"))
    headers = {"X-Cursor": last.encode("ascii", "replace").decode()} if last else {}
    if form == "json":
        rows = [list(fields), *([getattr(line, field) for field in fields] for line in lines)]
        return json_answer(request, rows, headers=headers)
    if form not in ("text", "cdxj"):
        raise HttpProblem(400, "'output' is one of text, json, cdxj")
    write = _cdxj if form == "cdxj" else partial(_text, fields=fields)
    content = b"".join(write(line) for line in lines)
    return Response(content, headers=headers, media_type="text/x-cdxj" if form == "cdxj" else "text/plain")


def _wanted_fields(text: str | None) -> tuple[str, ...]:
    if text is None:
        return _SHOWN
    fields = tuple(_NAMES.get(field, field) for field in text.split(","))
    if wrong := next((field for field in fields if field not in _FIELDS), None):
        raise HttpProblem(400, f"there is no field {wrong[:50]!r}; fields are {', '.join(_FIELDS)}")
    return fields


def _text(line: CdxLine, fields: tuple[str, ...]) -> bytes:
    return (" ".join(getattr(line, field) or "-" for field in fields) + "\n").encode()


def _cdxj(line: CdxLine) -> bytes:
    about = {"url": line.original, "mime": line.mimetype, "status": line.statuscode}
    about |= {"digest": line.digest, "length": line.length}
    about |= {"offset": line.offset, "filename": line.filename} if line.filename else {}
    return f"{line.urlkey} {line.timestamp} ".encode() + msgspec.json.encode(about) + b"\n"
