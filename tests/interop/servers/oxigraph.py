"""The oxigraph server, which Tamias itself uses for its catalogue."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import NotRun
from servers.running import Endpoint, free_port, running


@contextmanager
def start(folder: Path) -> Iterator[Endpoint]:
    """An empty store in memory."""
    program = Path(sys.executable).with_name("oxigraph")
    if not program.exists():
        raise NotRun("the oxigraph package is not installed")
    server = f"http://127.0.0.1:{free_port()}"
    with running([program, "serve", "--bind", server.removeprefix("http://")], f"{server}/", folder):
        yield Endpoint(f"{server}/query", f"{server}/store")
