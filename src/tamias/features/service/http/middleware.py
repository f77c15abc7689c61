"""Middleware for every request: known host names, counts and the access log."""

import logging
import time
from collections import Counter, defaultdict
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tamias.features.service.http.problems import HttpProblem
from tamias.model.log_lines import log_fields, loggable
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


_LOG = logging.getLogger("tamias.serve.access")
_SAFE_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class RequestCounts:
    """Counts and durations of requests, by route."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By method, route and status."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        """By route, until the last byte was handed over."""
        self.open = 0


class TrafficCounter:
    """Middleware that counts and logs requests."""

    def __init__(self, app: ASGIApp, traffic: RequestCounts) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 499
        begun = time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_SAFE_HEADERS]
            await send(message)

        self._traffic.open += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._traffic.open -= 1
            self._note(scope, status, time.perf_counter() - begun)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        route = scope.get("tamias.route", "none")
        self._traffic.requests[method, route, status] += 1
        self._traffic.seconds[route] += seconds
        if _LOG.isEnabledFor(logging.INFO):
            path = loggable(scope["path"])[:300]
            fields = {
                "method": method,
                "path": path,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
            }
            log_fields(_LOG, "%s %s %d %.1f ms", *fields.values(), **fields)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
