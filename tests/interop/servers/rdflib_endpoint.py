"""rdflib-endpoint: rdflib's own SPARQL engine over a file."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from servers.packages import pip
from servers.running import Endpoint, free_port, running


class FileEndpoint(Endpoint):
    """Is started anew for each file."""

    def __init__(self, folder: Path, programs: Path, stack: ExitStack) -> None:
        self._port = free_port()
        super().__init__(f"http://127.0.0.1:{self._port}/", "", union=True)
        self._folder = folder
        self._programs = programs
        self._stack = stack

    def load(self, quads: Path) -> None:
        self._stack.close()
        words = [self._programs / "rdflib-endpoint", "serve", "--host", "127.0.0.1", "--port", self._port]
        self._stack.enter_context(running([*map(str, words), str(quads)], self.url, self._folder))


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """It runs from the first load on."""
    with ExitStack() as stack:
        yield FileEndpoint(folder, pip("rdflib-endpoint[cli]==0.6.3", "uvicorn"), stack)
