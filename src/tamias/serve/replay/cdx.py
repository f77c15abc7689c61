"""`/cdx`: versions as lines of a capture index, the way other web archives are asked."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.model.url import fetch_url, host
from tamias.serve.http.endpoints import Endpoint, Parameter, ResponseSpec
from tamias.serve.http.params import cursor, number, parameter, since, until
from tamias.serve.http.problems import HttpProblem
from tamias.serve.http.responses import json_answer
from tamias.serve.http.secret import may_read_all
from tamias.serve.queries.thread_pool import ServiceSession
from tamias.serve.replay.delivery import UNKNOWN
from tamias.serve.replay.timemaps import digits
from tamias.serve.replay.usage import unlisted
from tamias.serve.service import Service
from tamias.sinks.warc.cdxj import surt

MOST = 10_000
_SCHEMES = ("http", "https", "ftp")
_MATCHES = ("exact", "prefix", "host", "domain")
_CURSOR = re.compile(r"([0-9]{1,9}) (.{1,4000})")
_FILTER = re.compile(r"(!?)(=?)([a-z]{1,20}):(.{1,1000})")
_END = "\U0010ffff"

Span = tuple[str, str]
Row = tuple[Any, ...]


class CdxLine(msgspec.Struct, frozen=True):
    """One version, in the order of fields that tools expect."""

    urlkey: str
    timestamp: str
    original: str
    mimetype: str
    statuscode: str
    digest: str
    length: str


_FIELDS = CdxLine.__struct_fields__


async def query(request: Request, service: Service) -> Response:
    """Versions in the order of their URLs."""
    named = parameter(request, "url")
    if named is None:
        raise HttpProblem(400, "name a URL: ?url=URL")
    match, bare = _match(named, parameter(request, "matchType"))
    spans, domain = _spans(bare, match)
    most = number(request, "limit", MOST, 1, MOST)
    after = cursor(request, _CURSOR)
    asked = {
        "low": [low for low, _ in spans],
        "high": [high for _, high in spans],
        "domain": domain,
        "url": after[2] if after else "",
        "number": int(after[1]) if after else 0,
        "since": since(request, "from"),
        "until": until(request, "to"),
        "limit": most,
    }
    filters = [_filter(each) for each in request.query_params.getlist("filter")[:10]]
    finds = match != "exact" and not may_read_all(request)
    rows, hidden = await service.pool.run(partial(_rows, asked=asked, finds=finds))
    lines = [_line(row) for row in rows if row[-1] not in hidden]
    lines = [line for line in lines if all(fits(line) for fits in filters)]
    if parameter(request, "collapse") == "digest":
        lines = list(_collapsed(lines))
    last = f"{rows[-1][1]} {rows[-1][0]}" if len(rows) == most else None
    return _answer(request, lines, last)


def _rows(db: ServiceSession, asked: dict[str, Any], *, finds: bool) -> tuple[list[Row], frozenset[str]]:
    """The versions, and which of their resources are not to be found by anything but their addresses."""
    rows = db.rows("cdx", asked)
    return rows, unlisted(db, (row[-1] for row in rows)) if finds else frozenset()


def _match(named: str, told: str | None) -> tuple[str, str]:
    """How URLs are compared, as told by a word or by a star."""
    if named.startswith("*."):
        return "domain", named[2:]
    if named.endswith("*"):
        return "prefix", named[:-1]
    if told is not None and told not in _MATCHES:
        raise HttpProblem(400, f"'matchType' is one of {', '.join(_MATCHES)}")
    return told or "exact", named


def _spans(named: str, match: str) -> tuple[list[Span], str | None]:
    """Between which texts the URLs lie, and the domain where that is not enough."""
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


def _filter(told: str) -> Callable[[CdxLine], bool]:
    """`field:part`, `=field:text`, and `!` before either for the opposite."""
    found = _FILTER.fullmatch(told)
    field = found[3] if found else ""
    names = {"mime": "mimetype", "status": "statuscode", "url": "original"}
    field = names.get(field, field)
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
    url, _, captured_at, digest, size, media_type, _ = row
    status = "200" if url.startswith("http") else "-"
    return CdxLine(
        surt(url), digits(captured_at), url, media_type or UNKNOWN, status, f"sha256:{digest}", str(size)
    )


def _collapsed(lines: Iterable[CdxLine]) -> Iterator[CdxLine]:
    """Of neighbours with one digest, the first."""
    before = ("", "")
    for line in lines:
        here = (line.original, line.digest)
        if here != before:
            yield line
        before = here


def _answer(request: Request, lines: list[CdxLine], last: str | None) -> Response:
    form = parameter(request, "output") or "text"
    headers = {"X-Cursor": last.encode("ascii", "replace").decode()} if last else {}
    if form == "json":
        rows = [list(_FIELDS), *(msgspec.structs.astuple(line) for line in lines)]
        return json_answer(request, rows, headers=headers)
    if form not in ("text", "cdxj"):
        raise HttpProblem(400, "'output' is one of text, json, cdxj")
    write = _cdxj if form == "cdxj" else _text
    content = b"".join(write(line) for line in lines)
    return Response(content, headers=headers, media_type="text/x-cdxj" if form == "cdxj" else "text/plain")


def _text(line: CdxLine) -> bytes:
    return (" ".join(msgspec.structs.astuple(line)) + "\n").encode()


def _cdxj(line: CdxLine) -> bytes:
    about = {
        "url": line.original,
        "mime": line.mimetype,
        "status": line.statuscode,
        "digest": line.digest,
        "length": line.length,
    }
    return f"{line.urlkey} {line.timestamp} ".encode() + msgspec.json.encode(about) + b"\n"


ENDPOINTS = [
    Endpoint(
        path="/cdx",
        handle=query,
        about="Versions as lines of a capture index",
        parameters=(
            Parameter(
                "url",
                "a URL; with * at the end, all URLs with this prefix; *.host for a domain",
                required=True,
            ),
            Parameter("matchType", "how it is compared", {"enum": list(_MATCHES)}),
            Parameter("from", "captured at this time or later"),
            Parameter("to", "captured at this time or earlier"),
            Parameter("filter", "[!][=]FIELD:TEXT", {"type": "array", "items": {"type": "string"}}),
            Parameter(
                "collapse", "adjacent lines with the same digest become one line", {"enum": ["digest"]}
            ),
            Parameter("output", "the output format", {"enum": ["text", "json", "cdxj"]}),
            Parameter(
                "limit", "how many versions are examined", {"type": "integer", "minimum": 1, "maximum": MOST}
            ),
            Parameter("cursor", "the X-Cursor header of the previous response"),
        ),
        answers={200: ResponseSpec("Lines", list[list[str]], ("text/plain", "text/x-cdxj"))},
    )
]
