"""Style, scripts and what comes from npm: read once, named with a digest, kept by browsers for ever."""

import gzip
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.serve.http.problems import HttpProblem
from tamias.serve.pages.html.negotiation import takes_gzip

PATH = "/static/{name}"
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDERS = ("static", "libraries")
"""Ours, and those that `make browser` fetches: absent where it was not run."""
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
_UNNAMED = {**_FOR_EVER, "Cache-Control": "no-cache"}


def address(name: str) -> str:
    """Where a file is to be had; another address when it is another file."""
    digest = blake2b(_FILES[name], digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


def has_library(name: str) -> bool:
    """Whether a file that comes from npm is there."""
    return name in _FILES


def static_route() -> Route:
    """One for all of them."""
    return Route(PATH, _sent, methods=["GET"])


async def _sent(request: Request) -> Response:
    request.scope["tamias.route"] = PATH
    name = request.path_params["name"]
    content = _FILES.get(name)
    if content is None:
        return HttpProblem(404, "there is no such file").response()
    headers = _FOR_EVER if "v" in request.query_params else _UNNAMED
    if takes_gzip(request):
        content, headers = _packed(name), {**headers, "Content-Encoding": "gzip"}
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])


@cache
def _packed(name: str) -> bytes:
    return gzip.compress(_FILES[name], mtime=0)


def _in(folder: Traversable) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    found = [each for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES]
    return {each.name: each.read_bytes() for each in found}


_PAGES = files("tamias.serve.pages")
_FILES = {name: body for folder in _FOLDERS for name, body in _in(_PAGES.joinpath(folder)).items()}
