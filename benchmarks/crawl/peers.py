"""The other crawlers: where they are, how they are called, or why they are left out.

Scrapy is an extra. It is used from this environment or from one of its own that `install_peers` makes.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from benchmarks.measuring.measure import last_line
from benchmarks.measuring.peers import Skipped
from tamias.model.errors import TamiasError

SPIDER = Path(__file__).with_name("spider.pyw")
SCRAPY_LOOP = ("-s", "ASYNCIO_EVENT_LOOP=uvloop.Loop")
"""Scrapy starts the event loop before it reads the spider, so the spider cannot choose it."""
SCRAPY_NEEDS = ("scrapy>=2.13", "uvloop>=0.21", "selectolax>=1.0")
VERSION_SECONDS = 60
INSTALL_SECONDS = 900


class Contender(msgspec.Struct, frozen=True):
    """A crawler ready to be run on a site."""

    name: str
    version: str
    command: list[str]
    terms: str
    """Under which settings, in words."""
    environment: dict[str, str] = {}


def cache_folder() -> Path:
    """Where the environment of the peers is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamias" / "bench-peers"


def install_peers(cache: Path | None = None) -> Path:
    """Makes an environment with Scrapy in it; needs the network. Gives its folder."""
    folder = cache or cache_folder()
    venv.create(folder, clear=True, with_pip=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *SCRAPY_NEEDS]
    log = folder / "pip.log"
    with log.open("wb") as said:
        done = subprocess.run(
            command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=False
        )
    if done.returncode != 0:
        raise TamiasError(f"Scrapy could not be installed in {folder}: {last_line(log)}")
    return folder


def scrapy(seed: str, folder: Path, cache: Path | None = None) -> Contender | Skipped:
    """Scrapy with our spider, tuned."""
    python = find_scrapy(cache or cache_folder())
    if python is None:
        return Skipped("scrapy", "it is not installed; --install-peers makes an environment with it")
    spider = folder / "follower.py"
    shutil.copyfile(SPIDER, spider)
    runspider = [python, "-m", "scrapy", "runspider"]
    return Contender(
        name="scrapy",
        version=first_line([python, "-m", "scrapy", "version"]),
        command=[*runspider, *SCRAPY_LOOP, "-a", f"seed={seed}", str(spider)],
        terms="tuned: uvloop, selectolax, 200 at once and one per host; robots, cookies, retries, redirects, "
        "referer, compression, proxies off; keeps nothing",
    )


def find_scrapy(cache: Path) -> str | None:
    """A Python that has Scrapy: this one, or that of the peers' own environment."""
    if find_spec("scrapy"):
        return sys.executable
    own = cache / "bin" / "python"
    return str(own) if own.exists() and list(cache.glob("lib/python*/site-packages/scrapy")) else None


def wget(seed: str, folder: Path) -> Contender | Skipped:
    """`wget -r`, one after the other, into files."""
    program = shutil.which("wget")
    if program is None:
        return Skipped("wget -r", "wget is not installed (Debian: apt-get install wget)")
    options = ["--quiet", "--recursive", "--level=inf", "--span-hosts", "--no-config", "--tries=2"]
    return Contender(
        name="wget -r",
        version=first_line([program, "--version"]),
        command=[program, *options, f"--directory-prefix={folder / 'files'}", seed],
        terms="one request at a time; robots on; writes files",
    )


def first_line(command: list[str]) -> str:
    """What a program says of its version."""
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, timeout=VERSION_SECONDS, check=False
    )
    return (done.stdout.decode(errors="replace").strip().splitlines() or ["version unknown"])[0]


PEERS: dict[str, Callable[[str, Path], Contender | Skipped]] = {"scrapy": scrapy, "wget": wget}
