"""The peer: Starlette with one handler that says the same few bytes, under the server that Tamias runs under.

`python -m benchmarks.serve.bare PORT`
"""

import sys

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tamias.serve.run import web_server


async def _answer(_: Request) -> Response:
    return Response(b'{"ok":true}', media_type="application/json")


if __name__ == "__main__":
    app = Starlette(routes=[Route("/", _answer)])
    uvloop.run(web_server("127.0.0.1", int(sys.argv[1]), app).serve())
