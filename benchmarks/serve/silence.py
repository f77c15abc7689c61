"""Connections that send nothing: whether the service drops them, and answers others meanwhile."""

import http.client
import resource
import select
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress

import msgspec

from benchmarks.serve.servers import HOST, ServerProcess
from tamias.serve.run import HEAD_SECONDS

KEPT_FILES = 512
PATIENCE_SECONDS = 60.0


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """What became of them."""

    connections: int
    dropped: int
    dropped_after: float
    """Seconds from the last of them until the last was dropped."""
    answered: int
    """Honest requests that were answered meanwhile, of so many:"""
    asked: int
    slowest_ms: float

    @property
    def ok(self) -> bool:
        """All dropped in time, and nobody else was refused."""
        return self.dropped == self.connections and self.answered == self.asked


def silence(server: ServerProcess, wanted: int, path: str = "/healthz") -> Silence:
    """Opens as many as wanted, or as the system lets us, and asks for a path while they are open."""
    count = min(wanted, _open_files() - KEPT_FILES)
    with ExitStack() as stack:
        silent = [stack.enter_context(closing(_connected(server))) for _ in range(count)]
        return _watched(server, silent, path)


def _watched(server: ServerProcess, silent: Sequence[socket.socket], path: str) -> Silence:
    started, poll = time.monotonic(), select.poll()
    left = {each.fileno(): each for each in silent}
    for number in left:
        poll.register(number, select.POLLIN | select.POLLHUP)
    times: list[float | None] = []
    while left and time.monotonic() - started < HEAD_SECONDS + PATIENCE_SECONDS:
        times.append(_honest(server, path))
        for number, _ in poll.poll(200):
            if _is_over(left[number]):
                poll.unregister(left.pop(number))
    return Silence(
        connections=len(silent),
        dropped=len(silent) - len(left),
        dropped_after=time.monotonic() - started,
        answered=sum(each is not None for each in times),
        asked=len(times),
        slowest_ms=1000 * max((each or 0.0 for each in times), default=0.0),
    )


def _connected(server: ServerProcess) -> socket.socket:
    return socket.create_connection((HOST, server.port), timeout=30)


def _is_over(connection: socket.socket) -> bool:
    """Whether the other side has closed it; a farewell (408) may come first."""
    try:
        return not connection.recv(4096)
    except OSError:
        return True


def _honest(server: ServerProcess, path: str) -> float | None:
    """Seconds of a request by somebody who has just come; None where it is not answered well."""
    begun = time.monotonic()
    with (
        suppress(OSError, http.client.HTTPException),
        closing(http.client.HTTPConnection(HOST, server.port, timeout=30)) as connection,
    ):
        connection.request("GET", path)
        if connection.getresponse().status == 200:
            return time.monotonic() - begun
    return None


def _open_files() -> int:
    """As many as the system lets us have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
