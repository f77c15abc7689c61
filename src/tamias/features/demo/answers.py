"""Responses of demo pages: negotiation, validators, redirects. Pure; `server` has the sockets."""

import hashlib
from collections.abc import Sequence

import msgspec
from pyoxigraph import RdfFormat

from tamias.features.demo.kinds import Busy, Data, File, MissingPage, Page, Redirect, Slow, written

OFFERED = {
    syntax.media_type: syntax
    for syntax in (RdfFormat.TURTLE, RdfFormat.N_TRIPLES, RdfFormat.JSON_LD, RdfFormat.RDF_XML)
}
"""What a `Data` page can be had as, the server's favourite first."""

Headers = tuple[tuple[str, str], ...]


class DemoRequest(msgspec.Struct, frozen=True):
    """A request, with its headers under lower-case names. Without a method it could not be read."""

    method: str
    path: str
    headers: dict[str, str]
    keep_alive: bool = True


class DemoResponse(msgspec.Struct, frozen=True):
    """A response, to be sent after `delay` seconds."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    delay: float = 0.0


def answer(page: Page | None, ask: DemoRequest, earlier: int = 0) -> DemoResponse:
    """The response of a page that has been asked for `earlier` times before."""
    if not ask.method:
        return DemoResponse(400)
    if ask.method not in {"GET", "HEAD"}:
        return DemoResponse(405, (("Allow", "GET, HEAD"),))
    match page:
        case Data():
            return negotiated(page, ask)
        case File():
            return represented(page.body, page.media_type, ask)
        case Redirect():
            return DemoResponse(page.status, (("Location", page.location),))
        case MissingPage():
            return DemoResponse(page.status)
        case Busy() if earlier == 0:
            return DemoResponse(503, (("Retry-After", str(page.retry_after)),))
        case Busy():
            return answer(page.page, ask)
        case Slow():
            return msgspec.structs.replace(answer(page.page, ask), delay=page.seconds)
        case None:
            return DemoResponse(404)


def negotiated(page: Data, ask: DemoRequest) -> DemoResponse:
    """The page in the syntax that the client likes best."""
    chosen = negotiate(ask.headers.get("accept", "*/*"), tuple(OFFERED))
    if chosen is None:
        return DemoResponse(406, (("Vary", "Accept"),))
    return represented(written(page.quads, OFFERED[chosen]), chosen, ask, (("Vary", "Accept"),))


def represented(body: bytes, media_type: str, ask: DemoRequest, headers: Headers = ()) -> DemoResponse:
    """The bytes, or word that the client has them already."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers += (("ETag", etag),)
    known = ask.headers.get("if-none-match", "")
    if known.strip() == "*" or etag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return DemoResponse(304, headers)
    return DemoResponse(200, (("Content-Type", media_type), *headers), body)


def negotiate(accept: str, offered: Sequence[str]) -> str | None:
    """The offered media type of the highest quality, the first among equals; None if none will do.

    >>> negotiate("text/turtle;q=0.5, application/*;q=0.8", ["text/turtle", "application/rdf+xml"])
    'application/rdf+xml'
    """
    qualities = dict(map(media_range, accept.split(",")))

    def quality(media_type: str) -> float:
        group = media_type.partition("/")[0] + "/*"
        return next((qualities[name] for name in (media_type, group, "*/*") if name in qualities), 0.0)

    best = max(offered, key=quality)
    return best if quality(best) > 0 else None


def media_range(text: str) -> tuple[str, float]:
    """A media range of an Accept header and its quality; one that cannot be read counts for nothing."""
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    given = next((value[2:] for value in parameters if value.startswith("q=")), "1")
    try:
        return name, float(given)
    except ValueError:
        return name, 0.0
