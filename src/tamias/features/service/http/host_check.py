"""Turns away requests under a name that is not ours: a page elsewhere could give this machine its own name.

Only where the service listens on the loopback address, which is open to every page in the user's browser.
"""

from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from tamias.features.service.http.problems import HttpProblem
from tamias.permit.addresses import is_address, is_loopback


class KnownNames:
    """Middleware: `Host` must be an IP address, `localhost`, or the name in `serve.address`."""

    def __init__(self, app: ASGIApp, address: str) -> None:
        self._app = app
        self._names = {"localhost", (urlsplit(address).hostname or "").lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is not None:
            await refusal.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> HttpProblem | None:
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            return HttpProblem(400, "a request has one Host header (RFC 9112, section 3.2)")
        if is_loopback((scope.get("server") or ("",))[0]) and not self._knows(scope):
            return HttpProblem(421, "this is not the name of the service; if it is, set serve.address")
        return None

    def _knows(self, scope: Scope) -> bool:
        given = next((value for name, value in scope["headers"] if name == b"host"), b"")
        if not given:
            return True
        host = given.decode("latin-1").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        return name.rstrip(".") in self._names or is_address(name)
