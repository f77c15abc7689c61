"""An `oxigraph` server on the loopback address with a cap before it, for as long as a block lasts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring.children import answers, running
from benchmarks.measuring.ports import free_ports
from tamias.model.errors import UsageError


@contextmanager
def endpoint(data: Path, folder: Path, cap: int) -> Iterator[str]:
    """The address of an endpoint with the file's statements. Raises `UsageError` without a server."""
    program = shutil.which("oxigraph", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        raise UsageError("the oxigraph server is not installed: pip install oxigraph")
    store = folder / "store"
    subprocess.run([program, "load", "-l", store, "-f", data], check=True, capture_output=True)
    (port,) = free_ports(1)
    serve = [program, "serve-read-only", "-l", str(store), "-b", f"127.0.0.1:{port}"]
    target = f"http://127.0.0.1:{port}/query"
    capping = [sys.executable, "-m", "benchmarks.harvesters.sparql.capping", target, str(cap)]
    with (
        running(serve, ready=lambda: answers(port), stderr=subprocess.DEVNULL),
        running(capping, stdout=subprocess.PIPE) as proxy,
    ):
        assert proxy.stdout is not None
        yield proxy.stdout.readline().decode().strip()
