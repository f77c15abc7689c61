"""Processes that run for as long as a block lasts."""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

from tamias.model.errors import TamiasError

END_SECONDS = 60.0


@contextmanager
def running(
    command: Sequence[str], *, ready: Callable[[], bool] | None = None, seconds: float = 60.0, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Starts it and waits until it is `ready`, or raises `TamiasError`; `options` are those of Popen."""
    process = subprocess.Popen(list(command), **options)
    try:
        deadline = time.monotonic() + seconds
        while ready is not None and not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise TamiasError(f"'{' '.join(command[:4])}' was not ready within {seconds:g} s")
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
