"""The crawlers behind one interface: how each is called, and where it leaves what it found."""

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.crawl.peers import SCRAPY_LOOP, Contender, cache_folder, find_scrapy, first_line, run_logged
from benchmarks.crawl.peers import install_peers as install_scrapy
from benchmarks.measuring.measure import last_line, measure
from benchmarks.measuring.targets import Skipped
from tamias import __version__
from tamias.model.errors import TamiasError, UsageError

HERE = Path(__file__).parent
PROBES_OFF = {"TAMIAS_SEEDS__PROBE": "false"}
"""No looking at well-known addresses on the seeds' hosts: no peer does, and ORCA's web has nothing there."""
EXPORT_SECONDS = 600
MODULES = ("@comunica/query-sparql-link-traversal", "rdf-dereference")
PACKAGE = {"private": True, "dependencies": dict.fromkeys(MODULES, "*"), "overrides": {"undici": "~7.5.0"}}
"""Later versions of undici, which both use, want a newer Node.js than Debian has."""


class CrawlTask(msgspec.Struct, frozen=True):
    """What a crawler is given."""

    seeds: list[str]
    folder: Path
    scope: str
    """Regular expression of the URLs that belong to the web."""
    tamias: tuple[str, ...] = (sys.executable, "-m", "tamias")
    polite: bool = False
    """Whether the web has rules in its robots.txt."""

    @property
    def seed_file(self) -> Path:
        return self.folder / "seeds.txt"

    @property
    def output(self) -> Path:
        return self.folder / "found"


class Rival(msgspec.Struct, frozen=True):
    """One crawler."""

    name: str
    prepare: Callable[[CrawlTask], Contender | Skipped]
    harvest: Callable[[CrawlTask], list[Path]]
    """After the crawl: files of N-Quads or N-Triples with all it has; none if it keeps no statements."""


def written_files(task: CrawlTask) -> list[Path]:
    """What a crawler wrote to the folder it was told of."""
    return sorted(file for end in ("nq", "nt") for file in task.output.glob(f"**/*.{end}"))


def tamias(task: CrawlTask) -> Contender:
    """As anybody would run it, but without a delay of its own and allowed on loopback addresses."""
    options = ["--seeds", str(task.seed_file), "--data", str(task.folder / "data"), "--include", task.scope]
    options += ["--delay", "0", "--allow-private", "-q"]
    return Contender(
        name="tamias",
        version=f"Tamias {__version__}",
        command=[*task.tamias, "crawl", *options],
        terms="robots on; quads, links and metadata kept, database included; well-known addresses not probed",
        environment=PROBES_OFF,
    )


def tamias_export(task: CrawlTask) -> list[Path]:
    """Its own export, after the crawl and outside its time."""
    file = task.folder / "found.nq"
    command = [*task.tamias, "export", "--data", str(task.folder / "data"), "-o", str(file)]
    finish(command, task.folder / "export", EXPORT_SECONDS)
    return [file]


def finish(command: list[str], folder: Path, seconds: float) -> None:
    """Runs a verb of Tamias until its database has ended too, so that the folder can be removed after it."""
    folder.mkdir(exist_ok=True)
    if measure(command, folder, seconds=seconds).exit_code != 0:
        raise TamiasError(f"{' '.join(command[:4])} failed: {last_line(folder / 'stderr')}")


def scrapy(task: CrawlTask) -> Contender | Skipped:
    """Scrapy with our RDF spider, tuned."""
    python = find_scrapy(cache_folder())
    if python is None:
        return Skipped("scrapy", "it is not installed; --install-peers makes an environment with it")
    spider = task.folder / "rdf_spider.py"
    shutil.copyfile(HERE / "spider.pyw", spider)
    task.output.mkdir(exist_ok=True)
    given = (f"seeds={task.seed_file}", f"scope={task.scope}", f"out={task.output / 'all.nq'}")
    words = [word for each in given for word in ("-a", each)]
    return Contender(
        name="scrapy",
        version=first_line([python, "-m", "scrapy", "version"]),
        command=[python, "-m", "scrapy", "runspider", *SCRAPY_LOOP, *words, str(spider)],
        terms="our spider on pyoxigraph: uvloop, 200 at once, one per host; RDF by content type, gzip, bz2; "
        "robots on only where the experiment has them",
        environment={"ORCA_ROBOTS": "1" if task.polite else ""},
    )


def node_script(name: str, module: str, script: str, terms: str, task: CrawlTask) -> Contender | Skipped:
    """A script of ours on a module of npm."""
    program = shutil.which("node")
    modules = cache_folder() / "npm"
    if program is None:
        return Skipped(name, "node is not installed")
    if not (modules / "node_modules" / module).is_dir():
        return Skipped(name, f"{module} is not installed; --install-peers gets it from npm")
    shutil.copyfile(HERE / script, modules / script)
    task.output.mkdir(exist_ok=True)
    package = msgspec.json.decode((modules / "node_modules" / module / "package.json").read_bytes())
    words = [str(modules / script), str(task.seed_file), task.scope, str(task.output / "all.nt")]
    return Contender(name, f"{module} {package['version']}", [program, *words], terms)


def named(word: str) -> Rival:
    """A crawler by its command line: `NAME=COMMAND` with {seeds}, {output} and {scope} in it."""
    name, _, line = word.partition("=")
    if not name or not line.strip():
        raise UsageError(f"--peer {word}: write NAME=COMMAND, or one of {', '.join(RIVALS)}")

    def prepare(task: CrawlTask) -> Contender | Skipped:
        task.output.mkdir(exist_ok=True)
        places = {"{seeds}": str(task.seed_file), "{output}": str(task.output), "{scope}": task.scope}
        command = [
            re.sub(r"\{(seeds|output|scope)\}", lambda found: places[found[0]], part)
            for part in shlex.split(line)
        ]
        program = shutil.which(command[0])
        if program is None:
            return Skipped(name, f"{command[0]} is not a program here")
        return Contender(name, "as given", [program, *command[1:]], f"`{line}`")

    return Rival(name, prepare, written_files)


def chosen(words: tuple[str, ...]) -> list[Rival]:
    """The peers that the command line names; all that are known if it names none."""
    return [RIVALS[word] if word in RIVALS else named(word) for word in words or tuple(RIVALS)]


def install_peers() -> None:
    """Scrapy and what the spider needs, and the modules of npm, into the cache folder; needs the network."""
    folder = install_scrapy()
    run_logged([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "pyoxigraph"], folder)
    program = shutil.which("npm")
    if program is not None:
        modules = folder / "npm"
        modules.mkdir(exist_ok=True)
        (modules / "package.json").write_bytes(msgspec.json.encode(PACKAGE))
        run_logged([program, "install", "--prefix", str(modules)], modules)


TAMIAS = Rival("tamias", tamias, tamias_export)
_DEREFERENCE = "our loop, 64 at once; every IRI followed; statements written out"
_COMUNICA = "all links followed, its limit of 1000 lifted; statements written out"
_PREPARED: dict[str, Callable[[CrawlTask], Contender | Skipped]] = {
    "scrapy": scrapy,
    "rdf-dereference": partial(node_script, "rdf-dereference", MODULES[1], "dereference.mjs", _DEREFERENCE),
    "comunica": partial(node_script, "comunica", MODULES[0], "traverse.mjs", _COMUNICA),
}
RIVALS = {name: Rival(name, prepare, written_files) for name, prepare in _PREPARED.items()}
