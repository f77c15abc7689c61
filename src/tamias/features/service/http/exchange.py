"""Read requests and write responses: parameters, bodies, lists, formats, conditions, all within limits."""

import asyncio
import gzip
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlencode

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.archive.moments import first_millisecond, milliseconds
from tamias.content.formats import media_type_of
from tamias.features.catalogue.result_formats import preferred, weighed
from tamias.features.service.http.problems import UNREAD, HttpProblem, problem_of
from tamias.plugins import load_all

T = TypeVar("T")
LONGEST_TEXT = 4096
MOST_ITEMS = 1000
BODY_SECONDS = 60.0
LATEST = 2**62
"""Later than all that can be asked for, in milliseconds."""
USUAL_ITEMS = 100
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_VERSION = re.compile(r"[1-9][0-9]{0,8}")
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]{1,255}")


def base_of(request: Request) -> str:
    """Return the address of the service as the client wrote it, with which links begin."""
    host = request.headers.get("host") or "{}:{}".format(*request.scope["server"])
    if not _HOST.fullmatch(host):
        raise HttpProblem(400, "the Host header is not a host")
    return f"{request.scope['scheme']}://{host}"


def url_behind(request: Request, prefix: str) -> str:
    """The URL that follows a prefix of the path: as it is, query string and all, or percent-encoded.

    One that is percent-encoded leaves the query string to the route.
    """
    raw = request.scope["raw_path"].decode("latin-1")
    tail = raw[len(prefix) :] if raw.startswith(prefix) else request.scope["path"][len(prefix) :]
    if not _SCHEME.match(tail):
        return _text("the URL", unquote(tail))
    query = request.scope["query_string"].decode("latin-1")
    return _text("the URL", f"{tail}?{query}" if query else tail)


def own_parameters(request: Request, prefix: str) -> dict[str, str]:
    """The route's own parameters: none where the query string belongs to the URL in the path."""
    raw = request.scope["raw_path"].decode("latin-1")
    return {} if _SCHEME.match(raw[len(prefix) :]) else dict(request.query_params)


def path_behind(request: Request, prefix: str) -> str:
    """The text that follows a prefix of the path, decoded."""
    return _text("the path", request.scope["path"][len(prefix) :])


def parameter(request: Request, name: str) -> str | None:
    """A parameter; None where it is absent or empty."""
    value = request.query_params.get(name)
    return _text(f"'{name}'", value) if value else None


def number(request: Request, name: str, usual: int, least: int, most: int) -> int:
    """A whole number between two others."""
    given = request.query_params.get(name)
    if given is None:
        return usual
    if not (given.isascii() and given.isdecimal() and len(given) < 10 and least <= int(given) <= most):
        raise HttpProblem(400, f"'{name}' must be a whole number from {least} to {most}")
    return int(given)


def limit(request: Request) -> int:
    """Return how many items a page has."""
    return number(request, "limit", USUAL_ITEMS, 1, MOST_ITEMS)


def cursor(request: Request, form: re.Pattern[str]) -> re.Match[str] | None:
    """Return the cursor that the previous page gave."""
    given = parameter(request, "cursor")
    if given is None:
        return None
    found = form.fullmatch(given)
    if found is None:
        raise HttpProblem(400, "'cursor' is not one that this list returned")
    return found


def until(request: Request, name: str) -> int:
    """A time up to which something is wanted, in milliseconds UTC: the end of its day or second."""
    given = parameter(request, name)
    return LATEST if given is None else milliseconds(given)


def since(request: Request, name: str) -> int:
    """A time from which on something is wanted: the beginning of its year, day or second."""
    given = parameter(request, name)
    return 0 if given is None else first_millisecond(given)


def media_type(text: str) -> str:
    """A media type from itself or a short name."""
    found = media_type_of(text)
    if found is None:
        raise HttpProblem(
            400, f"{text[:100]!r} is neither a media type nor the short name of one, such as csv"
        )
    return found


async def body(request: Request, most: int) -> bytes:
    """The body of a request, so many bytes at most."""
    length = request.headers.get("content-length", "0")
    too_large = HttpProblem(413, f"the body may have {most} bytes at most", UNREAD)
    if length.isdecimal() and int(length[:20]) > most:
        raise too_large
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in request.stream():
                content += piece
                if len(content) > most:
                    raise too_large
    except ClientDisconnect:
        raise HttpProblem(400, "the connection ended within the body") from None
    except TimeoutError:
        raise HttpProblem(408, f"the body did not come within {BODY_SECONDS:g} seconds", UNREAD) from None
    return bytes(content)


async def json_body(request: Request, form: type[T], most: int) -> T:
    """The body as a value of some form."""
    content = await body(request, most)
    try:
        return msgspec.json.decode(content, type=form)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HttpProblem(400, f"the body is not the expected JSON: {error}") from None


def _text(what: str, value: str) -> str:
    if len(value) > LONGEST_TEXT:
        raise HttpProblem(400, f"{what} is longer than {LONGEST_TEXT} characters")
    if _CONTROL.search(value):
        raise HttpProblem(400, f"{what} has control characters")
    return value


def stored_text(what: str, value: str | None, most: int) -> str | None:
    """A text that is fit to be stored: so many bytes at most."""
    if value is not None and len(value.encode("utf-8", "surrogatepass")) > most:
        raise HttpProblem(400, f"{what} is longer than {most} bytes")
    return value


def version_number(text: str | None) -> int | None:
    """A number of a version; None for what can be none.

    >>> version_number("7"), version_number("9" * 5000), version_number("²")
    (7, None, None)
    """
    return int(text) if text and _VERSION.fullmatch(text) else None


class ListPage(msgspec.Struct, Generic[T], frozen=True):
    """A page of a list; `cursor` is the parameter for the next page, null at the end."""

    items: Sequence[T]
    cursor: str | None


class Encoded(msgspec.Struct, frozen=True):
    """A value as JSON, ready to be sent."""

    content: bytes
    tag: str
    cursor: str | None = None
    """Of a page: where the next one begins."""


def encoded(value: Any, cursor: str | None = None) -> Encoded:
    """A value as JSON, with its tag."""
    content = msgspec.json.encode(value)
    return Encoded(content, tag_of(content), cursor)


def encoded_page(items: Sequence[Any], cursor: str | None) -> Encoded:
    """A page of a list as JSON."""
    return encoded(ListPage(items, cursor), cursor)


def json_answer(
    request: Request, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A value as JSON, or what is JSON already, with a link to the next page if it is one of a list."""
    answer = value if isinstance(value, Encoded) else encoded(value)
    sent = {"ETag": answer.tag, "Cache-Control": "no-cache", **(headers or {})}
    if answer.cursor is not None:
        parameters = {**request.query_params, "cursor": answer.cursor}
        parameters.pop("secret", None)
        path = request.scope["raw_path"].decode("latin-1")
        sent["Link"] = f'<{base_of(request)}{path}?{urlencode(parameters)}>; rel="next"'
    return tagged_answer(request, answer.content, "application/json", sent, status)


def page_answer(request: Request, items: Sequence[Any], cursor: str | None) -> Response:
    """A page of a list, with a link to the next one."""
    return json_answer(request, encoded_page(items, cursor))


def tag_of(content: bytes) -> str:
    """Return a weak tag of content."""
    return f'W/"{blake2b(content, digest_size=12).hexdigest()}"'


def tagged_answer(
    request: Request, content: bytes, media_type: str, headers: Mapping[str, str], status: int = 200
) -> Response:
    """Content with its tag among the headers; nothing new for a client that has it."""
    if status == 200 and request.method in ("GET", "HEAD") and has_already(request, headers["ETag"]):
        return Response(status_code=304, headers=dict(headers))
    return Response(content, status, headers=dict(headers), media_type=media_type)


def has_already(request: Request, tag: str) -> bool:
    """Return whether the client already has the content with this tag."""
    known = request.headers.get("if-none-match")
    if known is None:
        return False
    return known.strip() == "*" or _bare(tag) in {_bare(each) for each in known.split(",")}


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/")


Answer = Callable[[Request], Awaitable[Response]]
ProblemPage = Callable[[Request, HttpProblem], Response]
"""Shows an error to people, who prefer HTML."""

FORMS = {"html": "text/html", "json": "application/json", "csv": "text/csv"}
_JSON = ("application/problem+json", "application/json")
_LONGEST_ACCEPT = 4096
_WORTH_PACKING = 1400
"""Bytes; less fits into one packet anyway."""
_LEVEL = 5


def preferred_by(request: Request, offered: list[str]) -> str | None:
    """Return which of some media types a client likes best by its Accept header; None where it likes none."""
    return preferred(request.headers.get("accept", "")[:_LONGEST_ACCEPT], offered)


def wanted_form(request: Request) -> str:
    """`html`, `json` or `csv`: as `?format=` says, else as the Accept header does."""
    given = request.query_params.get("format")
    if given is None:
        liked = preferred_by(request, [*FORMS.values()])
        return next((form for form, kind in FORMS.items() if kind == liked), "html")
    if given not in FORMS:
        raise HttpProblem(400, f"'format' must be one of {', '.join(FORMS)}")
    return given


def show_problem(request: Request, error: Exception) -> Response:
    """Return an error as a page for whoever prefers that, else as a problem document."""
    problem = problem_of(error)
    pages: list[ProblemPage] = [*load_all("problem_pages").values()]
    liked = preferred_by(request, [*_JSON, FORMS["html"]])
    answer = pages[0](request, problem) if pages and liked == FORMS["html"] else problem.response()
    answer.headers["Vary"] = "Accept"
    return answer


async def show_missing_route(request: Request, error: Exception) -> Response:
    """Return what Starlette itself refuses: no such route, no such method."""
    path, problem = request.url.path, problem_of(error)
    details = {
        404: f"there is no page {path} here; /api lists all routes",
        405: f"{path} takes no {request.method}",
    }
    detail = details.get(problem.status, problem.detail)
    return show_problem(request, HttpProblem(problem.status, detail, problem.headers))


def guarded_route(path: str, answer: Answer, method: str = "GET") -> Route:
    """Return a route that packs its responses and shows errors as a page or a problem document."""

    async def guarded(request: Request) -> Response:
        request.scope["tamias.route"] = path
        try:
            return packed(request, await answer(request))
        except Exception as error:  # noqa: BLE001 - every error has a page
            return packed(request, show_problem(request, error))

    return Route(path, guarded, methods=[method])


def packed(request: Request, answer: Response) -> Response:
    """The same answer, smaller where the client takes gzip."""
    content = bytes(getattr(answer, "body", b""))  # what is streamed has none
    if len(content) < _WORTH_PACKING or "content-encoding" in answer.headers or not takes_gzip(request):
        return answer
    answer.body = gzip.compress(content, _LEVEL, mtime=0)
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Content-Length"] = str(len(answer.body))
    answer.headers.setdefault("Vary", "Accept-Encoding")
    return answer


def takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip."""
    accepted = request.headers.get("accept-encoding", "")[:_LONGEST_ACCEPT].split(",")
    return any(name == "gzip" and weight > 0 for name, weight in map(weighed, accepted))
