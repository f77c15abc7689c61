"""Fetches what the pages take from npm: exact versions, checked against the digests in package.json.

Only the named files are kept, in a folder that git ignores. The pages work without them.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parents[1] / "src" / "tamias" / "features" / "pages"
LIBRARIES = PAGES / "libraries"


def main() -> int:
    """Fetches what is missing."""
    told = json.loads((PAGES / "package.json").read_text())
    versions = {**told["dependencies"], **told["devDependencies"]}
    wanted = {f"{name}@{versions[name]}": about for name, about in told["tamias"].items()}
    files = [f"{package} {' '.join(about['files'].values())}" for package, about in wanted.items()]
    stamp, now = LIBRARIES / "versions", "\n".join(sorted(files)) + "\n"
    if stamp.exists() and stamp.read_text() == now:
        return 0
    if shutil.which("npm") is None:
        return _without("npm is not installed")
    LIBRARIES.mkdir(exist_ok=True)
    try:
        for package, about in wanted.items():
            _fetch(package, about)
    except subprocess.CalledProcessError as error:
        return _without(f"npm could not fetch them (exit code {error.returncode})")
    stamp.write_text(now)
    return 0


def _without(reason: str) -> int:
    sys.stderr.write(f"{reason}: the pages go without htmx and Yasgui, and their browser tests are skipped\n")
    return 0


def _fetch(package: str, about: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = ["npm", "pack", package, "--silent", "--pack-destination", folder]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        (packed,) = Path(folder).glob("*.tgz")
        algorithm, _, digest = about["integrity"].partition("-")
        found = base64.b64encode(hashlib.new(algorithm, packed.read_bytes()).digest()).decode()
        if found != digest:
            sys.exit(f"{package} is not what it was: its {algorithm} is {found}, not {digest}")
        with tarfile.open(packed) as archive:
            for inside, name in about["files"].items():
                member = archive.extractfile(f"package/{inside}")
                assert member is not None, f"{package} has no file {inside}"
                (LIBRARIES / name).write_bytes(member.read())


if __name__ == "__main__":
    sys.exit(main())
