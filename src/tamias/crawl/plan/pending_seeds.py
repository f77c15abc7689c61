"""Seeds that were named and are not in the frontier yet: in a file, so that no interruption loses them.

The database takes seconds to start. Whoever is ended meanwhile leaves the file, and the next run takes it up.
"""

import secrets
from pathlib import Path
from typing import Any

import msgspec

from tamias.database.disk import make_data_folder, refusals
from tamias.model.item import Seed

FOLDER = "pending-seeds"


class PendingSeeds(msgspec.Struct, frozen=True):
    """Seeds and options that a user named for a crawl."""

    seeds: list[Seed]
    flags: dict[str, Any] = {}
    """By the names of their settings."""
    crawl: str | None = None


def write_pending(data: Path, pending: PendingSeeds) -> Path:
    """Store them beside those of other runs; return the file, which is to be deleted when they are put."""
    folder = data / FOLDER
    with refusals(data):
        make_data_folder(data)
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / f"{secrets.token_hex(8)}.json"
        partial = path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(pending))
        partial.replace(path)
    return path


def read_pending(data: Path) -> list[tuple[Path, PendingSeeds]]:
    """Return what earlier runs left, the oldest first."""
    files = sorted((data / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime)
    return [(path, msgspec.json.decode(path.read_bytes(), type=PendingSeeds)) for path in files]
