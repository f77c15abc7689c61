"""Comunica's SPARQL endpoint over a file."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from servers.node import BEFORE
from servers.packages import npm, program
from servers.running import Endpoint, FileEndpoint, free_port

PACKAGE = "@comunica/query-sparql-file@4.5.0"


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An endpoint that runs from the first load on."""
    script = npm(PACKAGE) / "node_modules/.bin/comunica-sparql-file-http"
    port = str(free_port())
    words = [program("node"), "--require", BEFORE, script, "-p", port, "-t", "300"]
    url = f"http://127.0.0.1:{port}/sparql"
    with closing(FileEndpoint(url, folder, lambda quads: [*words, quads])) as endpoint:
        yield endpoint
