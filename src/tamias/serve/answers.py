"""Answers: JSON by msgspec, pages of lists, conditions on what the client has already."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tamias.serve.asked import base_of

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some items of a list. With `cursor` as parameter the next page is to be had; null ends the list."""

    items: Sequence[T]
    cursor: str | None


def json_answer(
    request: Request, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A value as JSON; nothing new is told to a client that has it."""
    content = msgspec.json.encode(value)
    tag = f'W/"{blake2b(content, digest_size=12).hexdigest()}"'
    told = {"ETag": tag, "Cache-Control": "no-cache", **(headers or {})}
    if status == 200 and request.method in ("GET", "HEAD") and has_already(request, tag):
        return Response(status_code=304, headers=told)
    return Response(content, status, headers=told, media_type="application/json")


def page_answer(request: Request, items: Sequence[Any], cursor: str | None) -> Response:
    """A page of a list, with a link to the next one."""
    headers = {}
    if cursor is not None:
        asked = {**request.query_params, "cursor": cursor}
        asked.pop("secret", None)
        path = request.scope["raw_path"].decode("latin-1")
        headers["Link"] = f'<{base_of(request)}{path}?{urlencode(asked)}>; rel="next"'
    return json_answer(request, Page(items, cursor), headers=headers)


def has_already(request: Request, tag: str) -> bool:
    """Whether the client says that it has what has this tag."""
    told = request.headers.get("if-none-match", "")
    return told.strip() == "*" or _bare(tag) in {_bare(each) for each in told.split(",")}


def _bare(tag: str) -> str:
    return tag.strip().removeprefix("W/")
