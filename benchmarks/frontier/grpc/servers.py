"""The servers that are measured: ours on a database of its own, and the Java reference."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from benchmarks.frontier.grpc.lean import GrpcCallFailed
from benchmarks.measuring.children import running
from benchmarks.measuring.ports import free_ports
from benchmarks.measuring.proc import command_line, members, processes, pss

_JAVA_MEMORY = "-Xmx1g"
_START_SECONDS = 120.0


class Server(msgspec.Struct, frozen=True):
    """Where a server listens, and what its processes have in their command lines."""

    address: str
    mark: str | None = None

    def cpu_seconds(self) -> float:
        """Processor time of all its processes so far."""
        pids = self._pids()
        return sum(each.cpu_seconds for each in processes() if each.pid in pids)

    def memory(self) -> int:
        """Bytes, what processes share counted once."""
        return sum(pss(pid) for pid in self._pids())

    def _pids(self) -> set[int]:
        if self.mark is None:
            return set()
        roots = {each.pid for each in processes() if self.mark.encode() in command_line(each.pid)}
        return roots | {each.pid for root in roots for each in members(root)}


@contextmanager
def ours(*options: str) -> Iterator[Server]:
    """Our service, on an empty database of its own."""
    with tempfile.TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as data:
        words = [sys.executable, "-m", "tamias", "frontier", "--data", data, "--port", "0", "--json"]
        with running([*words, *options], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise GrpcCallFailed("the service did not start")
            yield Server(msgspec.json.decode(line)["address"], data)


@contextmanager
def reference(jar: Path) -> Iterator[Server]:
    """The Java reference with an empty RocksDB. It does not wait for the disk."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="tamias-bench-", ignore_cleanup_errors=True) as data:
        words = [
            *("java", _JAVA_MEMORY, "-jar", str(jar), "-h", "127.0.0.1", "-p", str(port)),
            f"rocksdb.path={data}",
            "implementation=crawlercommons.urlfrontier.service.rocksdb.RocksDBService",
        ]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with running(words, ready=lambda: _listens(port), seconds=_START_SECONDS, **silent):
            yield Server(f"127.0.0.1:{port}", data)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
