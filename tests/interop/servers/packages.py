"""Packages of the servers, installed by the clients of their registries into a cache folder.

The folder is TAMIAS_INTEROP_CACHE, else `tamias-interop` in the user's cache.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_PATIENCE = 600


class NotRun(Exception):
    """A server cannot be started here; says why."""


def cache() -> Path:
    """Where packages are kept between runs."""
    named = os.environ.get("TAMIAS_INTEROP_CACHE")
    users = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(named) if named else Path(users) / "tamias-interop"


def program(name: str) -> str:
    """The path of a program of the machine."""
    found = shutil.which(name)
    if found is None:
        raise NotRun(f"{name} is not installed")
    return found


def maven(coordinates: str) -> Path:
    """A jar or war, by `group:artifact:version:packaging`."""
    _, artifact, version, packaging = coordinates.split(":")
    tool = program("mvn")

    def install(folder: Path) -> None:
        with _alone("maven"):  # which does not expect others in its folder of downloads
            _run(
                [tool, "-q", "-B", _COPY, f"-Dartifact={coordinates}", f"-DoutputDirectory={folder}"], folder
            )

    return installed(coordinates, install) / f"{artifact}-{version}.{packaging}"


def debian(*names: str) -> Path:
    """The root of Debian packages, unpacked without being installed."""
    tools = program("apt-get"), program("dpkg")

    def install(folder: Path) -> None:
        _run([tools[0], "-q", "download", *names], folder)
        for package in sorted(folder.glob("*.deb")):
            _run([tools[1], "-x", package.name, "."], folder)
            package.unlink()

    return installed(" ".join(names), install)


def npm(*names: str) -> Path:
    """A folder whose `node_modules` has these packages."""
    tool = program("npm")
    words = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", "."]
    return installed(" ".join(names), lambda folder: _run([tool, *words, *names], folder))


def pip(*names: str) -> Path:
    """The `bin` folder of a virtual environment of its own that has these packages."""

    def install(folder: Path) -> None:
        # A second name would be wrong in its programs' first lines, so the folder has its final name at once.
        _run([sys.executable, "-m", "venv", "environment"], folder)
        _run(["environment/bin/python", "-m", "pip", "install", "-q", *names], folder)

    return installed(" ".join(names), install) / "environment" / "bin"


def is_installed(name: str) -> bool:
    """Whether the folder of a package is there."""
    return (_folder(name) / "complete").exists()


def installed(name: str, install: Callable[[Path], None]) -> Path:
    """The folder of a package, filled once; several processes may ask for it at the same time.

    One that takes many minutes to build keeps nobody from another.
    """
    folder = _folder(name)
    complete = folder / "complete"
    if complete.exists():
        return folder
    with _alone(folder.name):
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            complete.write_text(name, encoding="utf-8")
    return folder


def _folder(name: str) -> Path:
    return cache() / hashlib.sha256(name.encode()).hexdigest()[:16]


@contextmanager
def _alone(name: str) -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_PATIENCE)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).decode(errors="replace").strip()[-300:]
        raise NotRun(f"{' '.join(map(str, command[:3]))} failed: {said}") from None
    except subprocess.TimeoutExpired:
        raise NotRun(f"{' '.join(map(str, command[:3]))} took more than {_PATIENCE} s") from None
