"""Web servers from npm: they listen on the loopback address only, and their requests are listed."""

import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.packages import program
from servers.running import free_port, running

BEFORE = Path(__file__).with_suffix(".cjs")


class NodeServer:
    """A running web server."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log

    def get(self, url: str, accept: str) -> bytes:
        """The body of a document."""
        request = urllib.request.Request(url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=60) as response:
            return bytes(response.read())

    def put(self, url: str, body: str, media_type: str) -> None:
        """Makes a document."""
        request = urllib.request.Request(
            url, data=body.encode(), headers={"Content-Type": media_type}, method="PUT"
        )
        urllib.request.urlopen(request, timeout=60).close()

    def requests(self) -> list[str]:
        """The path of each GET request until now."""
        return re.findall(r"^REQUEST GET (\S+)$", self._log.read_text(encoding="utf-8"), re.MULTILINE)


def free_url() -> tuple[str, str]:
    """A root URL that nobody serves, and its port."""
    port = free_port()
    return f"http://127.0.0.1:{port}/", str(port)


@contextmanager
def node(script: Path, words: list[str], url: str, folder: Path) -> Iterator[NodeServer]:
    """Runs a package's script."""
    with running([program("node"), "--require", BEFORE, script, *words], url, folder, seconds=180):
        yield NodeServer(url, folder / "server.log")
