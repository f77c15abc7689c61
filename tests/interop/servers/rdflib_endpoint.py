"""rdflib-endpoint: rdflib's own SPARQL engine over a file."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from servers.packages import pip
from servers.running import Endpoint, FileEndpoint, free_port


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An endpoint that runs from the first load on."""
    program, port = pip("rdflib-endpoint[cli]==0.6.3", "uvicorn") / "rdflib-endpoint", str(free_port())
    words = [program, "serve", "--host", "127.0.0.1", "--port", port]
    url = f"http://127.0.0.1:{port}/"
    with closing(FileEndpoint(url, folder, lambda quads: [*words, quads], union=True)) as endpoint:
        yield endpoint
