"""Answers: JSON by msgspec, pages of lists, conditions on what the client has already."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.features.service.http.params import base_of

T = TypeVar("T")


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
    return Encoded(content, f'W/"{blake2b(content, digest_size=12).hexdigest()}"', cursor)


def encoded_page(items: Sequence[Any], cursor: str | None) -> Encoded:
    """A page of a list as JSON."""
    return encoded(ListPage(items, cursor), cursor)


def json_answer(
    request: Request, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A value as JSON; nothing new is told to a client that has it."""
    return send_encoded(request, encoded(value), status, headers)


def send_encoded(
    request: Request, answer: Encoded, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The same of what is JSON already."""
    sent = {"ETag": answer.tag, "Cache-Control": "no-cache", **(headers or {})}
    if status == 200 and request.method in ("GET", "HEAD") and has_already(request, answer.tag):
        return Response(status_code=304, headers=sent)
    return Response(answer.content, status, headers=sent, media_type="application/json")


def page_answer(request: Request, items: Sequence[Any], cursor: str | None) -> Response:
    """A page of a list, with a link to the next one."""
    return send_page(request, encoded_page(items, cursor))


def send_page(request: Request, page: Encoded) -> Response:
    """The same of what is JSON already."""
    if page.cursor is None:
        return send_encoded(request, page)
    parameters = {**request.query_params, "cursor": page.cursor}
    parameters.pop("secret", None)
    path = request.scope["raw_path"].decode("latin-1")
    link = f'<{base_of(request)}{path}?{urlencode(parameters)}>; rel="next"'
    return send_encoded(request, page, headers={"Link": link})


def has_already(request: Request, tag: str) -> bool:
    """Return whether the client already has the content with this tag."""
    known = request.headers.get("if-none-match")
    if known is None:
        return False
    return known.strip() == "*" or _bare(tag) in {_bare(each) for each in known.split(",")}


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/")
