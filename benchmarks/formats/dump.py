"""A large gzip dump through the analyse-and-store step in a process of its own, and the memory it takes."""

import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

MOST_SECONDS = 3600
_CHILD = f"import sys; from {__name__} import main; main(sys.argv[1])"


class DumpFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    triples: int
    links: int
    seconds: float
    """Of processor time."""
    peak_bytes: int
    problems: list[str]


def measure_dump(path: Path) -> DumpFigures:
    """Reads a dump in a process of its own."""
    command = [sys.executable, "-c", _CHILD, str(path)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=MOST_SECONDS
    )
    return msgspec.json.decode(done.stdout, type=DumpFigures)


def main(dump: str) -> None:
    """Reads a dump with all loaded that a worker has, and prints the figures as JSON.

    Links are let go batch by batch, as a worker puts those of a large document into the frontier.
    """
    import_module("tamias.crawl.worker.wiring")
    from benchmarks.formats.step import fetched, stored
    from tamias.crawl.analysing.extractor import Extractor
    from tamias.settings import Settings

    def hand_on(links: Sequence[str], base: str, kind: str | None) -> None:
        pass

    (found,) = stored(Extractor(Settings()), [fetched(Path(dump), "application/gzip")], hand_on)
    figures = DumpFigures(
        triples=found.quads,
        links=found.links,
        seconds=time.process_time(),
        peak_bytes=peak_bytes(),
        problems=[*found.problems, *([found.limit] if found.limit else [])],
    )
    sys.stdout.buffer.write(msgspec.json.encode(figures))


def peak_bytes() -> int:
    """Most memory this program had resident; `getrusage` would count that of its parent too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
