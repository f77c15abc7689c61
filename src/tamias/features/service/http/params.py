"""Read requests: the URL in a path, parameters, pages and bodies, all within limits."""

import asyncio
import re
from typing import TypeVar
from urllib.parse import unquote

import msgspec
from starlette.requests import ClientDisconnect, Request

from tamias.archive.moments import first_millisecond, milliseconds
from tamias.content.formats import media_type_of
from tamias.features.service.http.problems import UNREAD, HttpProblem

T = TypeVar("T")
LONGEST_TEXT = 4096
MOST_ITEMS = 1000
BODY_SECONDS = 60.0
LATEST = 2**62
"""Later than all that can be asked for, in milliseconds."""
USUAL_ITEMS = 100
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
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
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
