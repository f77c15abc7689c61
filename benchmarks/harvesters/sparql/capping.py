"""A process before a SPARQL server that gives no more rows at once than a cap, as public endpoints do.

`python -m benchmarks.harvesters.sparql.capping TARGET CAP` prints the address to ask.
"""

import http.client
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

_WINDOW = re.compile(r"\bLIMIT\s+(\d+)(\s+OFFSET\s+\d+)?\s*$")


def capped(query: str, cap: int) -> str:
    """The query with a LIMIT that is within the cap.

    >>> capped("SELECT * { ?s ?p ?o } LIMIT 50000 OFFSET 7", 10)
    'SELECT * { ?s ?p ?o } LIMIT 10 OFFSET 7'
    """
    window = _WINDOW.search(query)
    if window is None:
        return f"{query} LIMIT {cap}"
    return f"{query[: window.start()]}LIMIT {min(int(window[1]), cap)}{window[2] or ''}"


def serve(target: str, cap: int) -> None:
    """Serves on a free port of the loopback address until the process ends."""
    place = urlsplit(target)

    class CappingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._pass_on(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def _pass_on(self, form: str) -> None:
            asked = parse_qs(form).get("query")
            body = urlencode({"query": capped(asked[0], cap)}) if asked else None
            server = http.client.HTTPConnection(place.hostname or "", place.port)
            headers = {"Accept": self.headers["Accept"], "Content-Type": "application/x-www-form-urlencoded"}
            server.request("POST" if body else "GET", place.path, body, headers)
            answer = server.getresponse()
            content = answer.read()
            server.close()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"] or "text/plain")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), CappingHandler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/sparql\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
