"""One running SPARQL server: the `oxigraph` program on one folder, started as a child, ready, stopped."""

import os
import resource
import shutil
import signal
import socket
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from tamias.crawl.catalogue.errors import StoreError
from tamias.database.child_server import ChildServer
from tamias.database.embedded.account import ServerAccount

START_SECONDS = 120.0
_STOP_SECONDS = 20.0
_CLOSE_WAIT = "08"


class StoreServer(ChildServer):
    """The owner of a store. It ends with its parent."""

    def __init__(self, folder: Path, log: Path, port: int, seconds: float) -> None:
        """`seconds` is how long a query may take."""
        super().__init__(log)
        self._folder = folder
        self._port = port
        self._seconds = seconds

    def start(self) -> None:
        """Returns when it takes connections. Raises `StoreError`."""
        self.spawn(self._command(), _in_child())
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if not self.is_running() or time.monotonic() > deadline:
                self.kill()
                raise StoreError(
                    f"the SPARQL server does not start on {self._folder}; {self.log} says why, and "
                    "'tamias check --rebuild' rebuilds the catalogue"
                )
            time.sleep(0.01)

    def connection(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self._port), timeout=5)

    def stop(self) -> None:
        """It holds nothing that is not on its disk, so any end is a clean one; it is given time to say so."""
        self.end(signal.SIGTERM, signal.SIGKILL, _STOP_SECONDS)

    def kill(self) -> None:
        """At once."""
        self.end(signal.SIGKILL, signal.SIGKILL, _STOP_SECONDS)

    def deserted(self) -> set[str]:
        """Connections whose client has gone, while the server is still at work for it.

        The server looks at its time limit in most steps of a query, but not while it sorts; nor does it
        notice then that nobody waits for it any more.
        """
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        rows = [line.split() for line in lines]
        here = f":{self._port:04X}"
        return {row[2] for row in rows if row[1].endswith(here) and row[3] == _CLOSE_WAIT}

    def _answers(self) -> bool:
        try:
            self.connection().close()
        except OSError:
            return False
        return self.is_running()

    def _command(self) -> list[str]:
        words = ["serve", "--location", str(self._folder), "--bind", f"127.0.0.1:{self._port}"]
        return [program(), *words, "--union-default-graph", "--timeout-s", str(max(1, round(self._seconds)))]


def program() -> str:
    """The `oxigraph` program, that of this installation first. Raises `StoreError`."""
    beside = Path(sysconfig.get_path("scripts")) / "oxigraph"
    found = str(beside) if beside.exists() else shutil.which("oxigraph")
    if found is None:
        raise StoreError(
            "there is no SPARQL server: install the package 'oxigraph', or name one with [serve] sparql"
        )
    return found


def _in_child() -> Callable[[], None]:
    enter = ServerAccount("self").enter(ends_with_parent=True)
    most = max(1 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)

    def in_child() -> None:
        # A query that sorts the whole store ends the server, not the machine; it is started again.
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        enter()

    return in_child
