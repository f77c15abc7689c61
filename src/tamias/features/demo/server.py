"""Serves a web: one process, one port, an address for every node, HTTP/1.1 with keep-alive, and a log.

Only loopback addresses are bound, one by one, so that nobody outside the machine can reach it.
"""

import errno
import hashlib
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
from pyoxigraph import RdfFormat

from tamias.features.demo.plan import WebPlan
from tamias.features.demo.web import DemoPage, DemoSite, build_web, expected_of, written

OFFERED = {
    syntax.media_type: syntax
    for syntax in (RdfFormat.TURTLE, RdfFormat.N_TRIPLES, RdfFormat.JSON_LD, RdfFormat.RDF_XML)
}
"""What data can be had as, the server's favourite first."""
PORT_TRIALS = 20
LATENCY = 0.002
"""Seconds before an answer: from a server that answers at once nobody learns that two came together."""
LOOK_SECONDS = 0.05
"""How often it is seen that the web is to end."""


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request, from its last header line until its response was written, in seconds."""

    host: str
    """Address and port."""
    path: str
    status: int
    """0 if the client left before the answer."""
    start: float
    end: float
    in_flight: int
    """Requests in progress at this host when it came, itself included."""
    agent: str

    @property
    def url(self) -> str:
        """The address asked for."""
        return f"http://{self.host}{self.path}"


def max_in_flight(log: Iterable[LoggedRequest]) -> dict[str, int]:
    """Return the most requests at once, by host."""
    most: dict[str, int] = {}
    for visit in log:
        most[visit.host] = max(visit.in_flight, most.get(visit.host, 0))
    return most


def requests_of_disallowed(log: Iterable[LoggedRequest], disallowed: Collection[str]) -> list[LoggedRequest]:
    """The visits that should never have been."""
    return [visit for visit in log if visit.url in disallowed]


def negotiate(accept: str, offered: Sequence[str]) -> str | None:
    """The offered media type of the highest quality, the first among equals; None if none will do.

    >>> negotiate("text/turtle;q=0.5, application/*;q=0.8", ["text/turtle", "application/rdf+xml"])
    'application/rdf+xml'
    """
    qualities: dict[str, float] = {}
    for text in accept.split(","):
        name, *parameters = (part.strip().lower() for part in text.split(";"))
        given = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        qualities[name] = 0.0  # for what cannot be read
        with suppress(ValueError):
            qualities[name] = float(given)

    def quality(media_type: str) -> float:
        group = media_type.partition("/")[0] + "/*"
        return next((qualities[name] for name in (media_type, group, "*/*") if name in qualities), 0.0)

    best = max(offered, key=quality)
    return best if quality(best) > 0 else None


class DataWeb:
    """A running web, and what its visitors did."""

    def __init__(self, plan: WebPlan, port: int, latency: float) -> None:
        self.latency = latency
        self.log: list[LoggedRequest] = []
        self.in_flight: Counter[str] = Counter()
        self.request_counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self.servers = bind([node.address for node in plan.nodes], port)
        self.port = self.servers[0].server_port
        self.web = build_web(plan, self.port)
        self.expected = expected_of(self.web)
        self.is_ending = False
        for server, site in zip(self.servers, self.web.sites.values(), strict=True):
            server.web, server.site = self, site

    @property
    def seeds(self) -> tuple[str, ...]:
        """The URLs from which all the rest can be reached."""
        return self.web.seeds

    def serve(self) -> None:
        """Take connections on all addresses until the end; each is served by a thread of its own."""
        with selectors.DefaultSelector() as selector:
            for server in self.servers:
                selector.register(server, selectors.EVENT_READ, server.handle_request)
            while not self.is_ending:
                for key, _ in selector.select(LOOK_SECONDS):
                    key.data()


class _SiteServer(ThreadingHTTPServer):
    """The server of one address."""

    request_queue_size = 1024
    timeout = 0
    daemon_threads = True
    web: DataWeb
    site: DemoSite

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that leave."""


class _Visitor(BaseHTTPRequestHandler):
    """Answers the requests of a connection in their order, one at a time."""

    protocol_version = default_request_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _SiteServer

    def setup(self) -> None:
        super().setup()
        self.server.web.connections.add(self.connection)

    def finish(self) -> None:
        self.server.web.connections.discard(self.connection)
        super().finish()

    def do_GET(self) -> None:
        web, host = self.server.web, self.server.site.authority
        url = self.server.site.url(self.path)
        with web.lock:
            page = self.server.site.pages.get(self.path, DemoPage(status=404))
            if page.is_busy and not web.request_counts[url]:
                page = DemoPage(status=503)
            web.request_counts[url] += 1
            web.in_flight[host] += 1
            in_flight = web.in_flight[host]
        start = time.monotonic()
        stayed = self._stays(web.latency + page.delay)
        status, headers, body = self._answer(page)
        with web.lock:  # in the log before its client can know the answer
            web.in_flight[host] -= 1
            web.log.append(
                LoggedRequest(
                    host=host, path=self.path, status=status if stayed else 0, start=start,
                    end=time.monotonic(), in_flight=in_flight, agent=self.headers.get("user-agent", ""),
                )
            )  # fmt: skip
        if not stayed:
            raise ConnectionResetError
        self.send_response(status)
        if status != 304:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    do_HEAD = do_POST = do_GET  # noqa: N815 - as the standard library calls them

    def log_message(self, *_: object) -> None:
        """Print nothing: the web has its own log."""

    def _answer(self, page: DemoPage) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a page for this request."""
        if self.command == "POST":
            self.close_connection = True
            return 405, {"Allow": "GET, HEAD"}, b""
        if page.status != 200:
            fields = {"Location": page.location, "Retry-After": "1" if page.status == 503 else None}
            return page.status, {name: value for name, value in fields.items() if value is not None}, b""
        body, media_type, headers = page.body, page.media_type, dict[str, str]()
        if body is None:
            headers["Vary"] = "Accept"
            chosen = negotiate(self.headers.get("accept", "*/*"), tuple(OFFERED))
            if chosen is None:
                return 406, headers, b""
            body, media_type = written(page.quads, OFFERED[chosen]), chosen
        headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        known = [tag.strip().removeprefix("W/") for tag in self.headers.get("if-none-match", "").split(",")]
        if known == ["*"] or headers["ETag"] in known:
            return 304, headers, b""
        return 200, {"Content-Type": media_type, **headers}, body

    def _stays(self, seconds: float) -> bool:
        """Wait before an answer; return whether the client is still there then."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.connection.settimeout(left)
            with suppress(TimeoutError):
                if not self.connection.recv(1, socket.MSG_PEEK):
                    return False
                time.sleep(min(left, LOOK_SECONDS))  # its next request has come
        self.connection.settimeout(None)
        return True


def bind(addresses: Sequence[str], port: int) -> list[_SiteServer]:
    """A listening server on each address, all on one port; with port 0, one that is free on all of them."""
    for _ in range(PORT_TRIALS if port == 0 else 1):
        servers: list[_SiteServer] = []
        try:
            for address in addresses:
                servers.append(_SiteServer((address, servers[0].server_port if servers else port), _Visitor))
        except OSError as error:
            for server in servers:
                server.server_close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return servers
    raise OSError(errno.EADDRINUSE, f"port {port or 'any'} is not free on {addresses[0]} to {addresses[-1]}")


@contextmanager
def serving(plan: WebPlan, port: int = 0, *, latency: float = LATENCY) -> Iterator[DataWeb]:
    """The web, served by threads of its own. Port 0 takes any that is free."""
    web = DataWeb(plan, port, latency)
    thread = threading.Thread(target=web.serve, name="dataweb", daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.is_ending = True
        thread.join()
        for server in web.servers:
            server.server_close()
        for each in list(web.connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
