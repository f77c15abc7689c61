"""A server's process, from its first answer to the end of the block."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from servers.packages import NotRun


class Endpoint:
    """A SPARQL endpoint of a running server, empty at first."""

    nameless: str | None = None
    """The named graph into which the server puts statements without a graph, if it has one."""
    login: tuple[str, str] | None = None
    """The user and the password that it asks for."""
    hides_default = False
    """Whether a default graph of its own cannot be queried."""

    def __init__(self, url: str, store: str, *, union: bool = False) -> None:
        """N-Quads are sent to `store`. `union` says whether the default graph is the union of all graphs."""
        self.url = url
        self.union = union
        self._store = store

    def load(self, quads: Path) -> None:
        """Puts the N-Quads of a file in the place of what it has."""
        request = urllib.request.Request(
            self._store,
            data=quads.read_bytes(),
            headers={"Content-Type": "application/n-quads"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=300).close()


class FileEndpoint(Endpoint):
    """Serves a file; started again for each one."""

    def __init__(
        self, url: str, folder: Path, command: Callable[[Path], list[str | Path]], **options: bool
    ) -> None:
        super().__init__(url, "", **options)
        self._folder = folder
        self._command = command
        self._stack = ExitStack()

    def load(self, quads: Path) -> None:
        self.close()
        self._stack.enter_context(running(self._command(quads), self.url, self._folder))

    def close(self) -> None:
        """Ends the server."""
        self._stack.close()


def free_port() -> int:
    """A port of the loopback address that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path],
    answers: str,
    folder: Path,
    *,
    seconds: float = 90,
    environment: dict[str, str] | None = None,
    unless: int = 0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts it in the folder and waits until the URL `answers` gives an HTTP response, not `unless` 404."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
        )
    try:
        deadline = time.monotonic() + seconds
        while not is_answering(answers, unless=unless):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotRun(f"{command[0]} does not answer: {_end_of(log)}")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def is_answering(url: str, *, unless: int = 0) -> bool:
    """Whether a URL gives any HTTP response, `unless` it has this status."""
    try:
        urllib.request.urlopen(url, timeout=60).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code != unless
    except OSError:
        return False
    return True


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-400:].strip() or "it said nothing"
