"""Processes that run for as long as a block lasts, and ports for them."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tamias.model.errors import TamiasError

PORTS = range(18_080, 19_200)
"""Below those that the system gives to outgoing connections."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody has; processes look in different places first, for they may look at the same time."""
    found: list[int] = []
    first = os.getpid() * 7 % len(PORTS)
    for port in (*PORTS[first:], *PORTS[:first]):
        if len(found) == count:
            break
        with suppress(OSError), socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(("", port))
            found.append(port)
    if len(found) < count:
        raise TamiasError(f"of the ports {PORTS.start} to {PORTS.stop - 1} fewer than {count} are free")
    return found


END_SECONDS = 60.0


@contextmanager
def running(
    command: Sequence[str],
    *,
    ready: Callable[[], bool] | None = None,
    seconds: float = 60.0,
    logs: Sequence[Path] = (),
    **options: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts it and waits until it is `ready`, or raises `TamiasError` with the end of its logs.

    `options` are those of Popen.
    """
    process = subprocess.Popen(list(command), **options)
    try:
        deadline = time.monotonic() + seconds
        while ready is not None and not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                said = " ".join(log.read_text(errors="replace")[-500:] for log in logs if log.exists())
                raise TamiasError(f"'{' '.join(command[:4])}' was not ready within {seconds:g} s: {said}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        end(process, END_SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def end(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for a process that was asked to end, then kills it; whether it ended by itself."""
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def answers(port: int, path: str = "/", host: str = "127.0.0.1") -> bool:
    """Whether an HTTP server answers there, whatever it says."""
    with suppress(OSError, HTTPException), closing(HTTPConnection(host, port, timeout=10)) as connection:
        connection.request("GET", path)
        connection.getresponse()
        return True
    return False
