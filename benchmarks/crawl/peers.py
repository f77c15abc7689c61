"""The other crawlers: where they are, how they are called, or why they are left out.

Scrapy is an extra. It is used from this environment or from one of its own that `install_peers` makes; so is
Heritrix, which comes from Maven.
"""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import msgspec

from benchmarks.measuring.children import free_ports
from benchmarks.measuring.measure import last_line
from benchmarks.measuring.targets import Skipped, skipped_program
from tamias.model.errors import TamiasError

SPIDER = Path(__file__).with_name("spider.pyw")
SCRAPY_LOOP = ("-s", "ASYNCIO_EVENT_LOOP=uvloop.Loop")
"""Scrapy starts the event loop before it reads the spider, so the spider cannot choose it."""
SCRAPY_NEEDS = ("scrapy>=2.13", "uvloop>=0.21", "selectolax>=1.0")
HERITRIX = "3.5.0"
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
    run_logged([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *SCRAPY_NEEDS], folder)
    _install_heritrix(folder)
    return folder


def run_logged(command: list[str], folder: Path) -> None:
    """Runs a command of an installation in a folder, which keeps what it says; raises where it fails."""
    log = folder / "install.log"
    with log.open("wb") as said:
        done = subprocess.run(
            command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=False
        )
    if done.returncode != 0:
        raise TamiasError(f"a peer could not be installed in {folder}: {last_line(log)}")


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


class Mirror(msgspec.Struct, frozen=True):
    """A program that copies a site into files; `options` are words, naming `seed` and `files`."""

    name: str
    program: str
    options: str
    terms: str

    def __call__(self, seed: str, folder: Path) -> Contender | Skipped:
        """The program ready to run, or why it is left out."""
        if absent := skipped_program(self.program, self.program):
            return msgspec.structs.replace(absent, name=self.name)
        words = [word.format(seed=seed, files=folder / "files") for word in self.options.split()]
        version = first_line([self.program, "--version"])
        return Contender(self.name, version, [self.program, *words], self.terms)


wget = Mirror(
    "wget -r", "wget",
    "--quiet --recursive --level=inf --span-hosts --no-config --tries=2 --directory-prefix={files} {seed}",
    "one request at a time; robots on; writes files",
)  # fmt: skip
wget2 = Mirror(
    "wget2", "wget2",
    "--quiet --recursive --level=0 --span-hosts --no-config --tries=2 --max-threads=16"
    " --directory-prefix={files} {seed}",
    "16 at once; robots on; writes files",
)  # fmt: skip
httrack = Mirror(
    "httrack", "httrack",
    "{seed} -O {files} --quiet --go-everywhere --disable-security-limits --max-rate=0"
    " --connection-per-second=0 --sockets=16",
    "16 at once; robots on; writes files, with links rewritten",
)  # fmt: skip


def heritrix(seed: str, folder: Path, cache: Path | None = None) -> Contender | Skipped:
    """Heritrix with its own profile, without delay and on every host."""
    home = (cache or cache_folder()) / f"heritrix-{HERITRIX}"
    if shutil.which("java") is None or not home.is_dir():
        return Skipped("heritrix", "it is not installed; --install-peers gets it with Maven; it needs Java")
    job = folder / "jobs" / "bench"
    job.mkdir(parents=True)
    (job / "crawler-beans.cxml").write_text(_heritrix_job(home, seed), encoding="utf-8")
    java = ["java", "-Xmx1g", f"-Dheritrix.home={home}", "-cp", f"{home}/lib/*"]
    interface = ["--web-admin", "bench:bench", "--web-port", str(free_ports(1)[0])]
    return Contender(
        name="heritrix",
        version=f"Heritrix {HERITRIX}",
        command=[
            *java,
            "org.archive.crawler.Heritrix",
            *interface,
            "--jobs-dir",
            str(folder / "jobs"),
            "--run-job",
            "bench",
        ],
        terms="100 threads, no delay, one at a time to each host; robots on; writes WARC",
    )


def _heritrix_job(home: Path, seed: str) -> str:
    """The profile that it comes with, with our seed, any host in scope, and no delay."""
    with zipfile.ZipFile(home / "lib" / f"heritrix-engine-{HERITRIX}.jar") as engine:
        profile = engine.read("org/archive/crawler/restlet/profile-crawler-beans.cxml").decode()
    changed = (
        ("http://example.example/example", seed),
        ("deciderules.RejectDecideRule", "deciderules.AcceptDecideRule"),
        ("metadata.jobName=basic", "metadata.jobName=bench\n" + "\n".join(_HERITRIX_OVERRIDES)),
        ("ENTER_AN_URL_WITH_YOUR_CONTACT_INFO_HERE_FOR_WEBMASTERS_AFFECTED_BY_YOUR_CRAWL", seed),
    )
    for old, new in changed:
        profile = profile.replace(old, new, 1)
    return profile


_HERITRIX_OVERRIDES = (
    "crawlController.maxToeThreads=100",
    "disposition.delayFactor=0.0",
    "disposition.minDelayMs=0",
    "disposition.maxDelayMs=0",
    "extractorHtml.extractJavascript=false",
)


def _install_heritrix(cache: Path) -> None:
    """From Maven, where there is one; the crawler is left out where there is none."""
    maven = shutil.which("mvn")
    if maven is None:
        return
    named = f"org.archive.heritrix:heritrix:{HERITRIX}:zip:dist"
    into = [f"-Dartifact={named}", f"-DoutputDirectory={cache}", "-Dmdep.useBaseVersion=true"]
    command = [maven, "--quiet", "--batch-mode", "dependency:copy", *into]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=False)
    packed = cache / f"heritrix-{HERITRIX}-dist.zip"
    if done.returncode == 0 and packed.exists():
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(cache)
        packed.unlink()


def first_line(command: list[str]) -> str:
    """What a program says of its version."""
    done = subprocess.run(
        command, capture_output=True, stdin=subprocess.DEVNULL, timeout=VERSION_SECONDS, check=False
    )
    return (done.stdout.decode(errors="replace").strip().splitlines() or ["version unknown"])[0]


PEERS: dict[str, Callable[[str, Path], Contender | Skipped]] = {
    "scrapy": scrapy,
    "wget": wget,
    "wget2": wget2,
    "httrack": httrack,
    "heritrix": heritrix,
}
