"""What can be known of a crawl when it is over: records, exports, WARC files, strays, the service."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, cast

from tamias.archive.captures import all_captures
from tamias.database.connect import Database
from tamias.model.capture import CaptureRecord
from tests.hostile.web.attack import AttackEvidence
from tests.hostile.web.attacks.packed import STRAY
from tests.hostile.web.service import probes

_SECONDS = 120.0
_VERBS = ("stats", "status --once", "export --graph metadata")


def gather(folder: Path, evidence: AttackEvidence, *, served: bool) -> None:
    """Adds all that stands in the data directory of a crawl in `folder`."""
    data = folder / "data"
    evidence.captures = captures(data)
    for name in ("stdout", "stderr"):
        evidence.said += (folder / name).read_text(encoding="utf-8", errors="replace")
    evidence.quads = _said(data, "export")
    evidence.said += "".join(_said(data, *verb.split()) for verb in _VERBS)
    evidence.warc = [record for file in sorted((data / "warc").glob("*.warc.gz")) for record in records(file)]
    evidence.strays = [str(path) for path in Path("/tmp").glob(STRAY + "*")]
    if served:
        evidence.probes = probes(data, folder)


def captures(data: Path) -> dict[str, list[CaptureRecord]]:
    """Every attempt on record, by URL."""
    found: dict[str, list[CaptureRecord]] = {}
    with closing(Database(data, None)) as database, closing(database.session()) as session:
        for capture in all_captures(session):
            found.setdefault(capture.url, []).append(capture)
    return found


def records(file: Path) -> Iterator[tuple[str, str]]:
    """Type and target of the records of a WARC file, each found by the length of the one before."""
    with gzip.open(file) as opened:
        stream = cast("BinaryIO", opened)
        while line := stream.readline():
            if not line.strip():
                continue
            headers = dict(_headers(stream))
            stream.read(int(headers.get("content-length", "0")))
            yield headers.get("warc-type", ""), headers.get("warc-target-uri", "")


def _headers(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    while line := stream.readline().strip():
        name, _, value = line.decode("utf-8", "replace").partition(":")
        yield name.strip().lower(), value.strip()


def _said(data: Path, verb: str, *words: str) -> str:
    command = [sys.executable, "-m", "tamias", verb, "--data", str(data), *words]
    done = subprocess.run(command, check=False, capture_output=True, timeout=_SECONDS)
    return (done.stdout + done.stderr if verb != "export" else done.stdout).decode("utf-8", "replace")
