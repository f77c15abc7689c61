"""An `oxigraph` server on the loopback address with a cap before it, for as long as a block lasts."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamias.model.errors import UsageError

_PATIENCE = 30.0


@contextmanager
def endpoint(data: Path, folder: Path, cap: int) -> Iterator[str]:
    """The address of an endpoint with the file's statements. Raises `UsageError` without a server."""
    program = shutil.which("oxigraph", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise UsageError("the oxigraph server is not installed: pip install oxigraph")
    store = folder / "store"
    subprocess.run([program, "load", "-l", store, "-f", data], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with _running([program, "serve-read-only", "-l", str(store), "-b", f"127.0.0.1:{port}"]) as server:
        _wait_for(port, server)
        target = f"http://127.0.0.1:{port}/query"
        with _running(
            [sys.executable, "-m", "benchmarks.harvesters.sparql.capping", target, str(cap)]
        ) as proxy:
            assert proxy.stdout is not None
            yield proxy.stdout.readline().decode().strip()


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE
    while server.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise UsageError("the oxigraph server does not start")
