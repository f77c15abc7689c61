"""Take a feature away and see that the rest works: `python tools/without.py [FEATURE …]`, by default each.

A copy of the checkout is made without the folder of the feature and of those that require it. The copy is
installed into a folder of its own, over the packages of this environment: nothing is downloaded. Then a small
site is crawled and exported, and the tests run that do not name what is missing. Prints a table.
"""

import ast
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from psycopg.conninfo import conninfo_to_dict

from tamias.content.zstd import zstd
from tamias.database.connect import Database

ROOT = Path(__file__).parents[1]
TESTS = (
    *(
        "tests/unit/content",
        "tests/unit/filters",
        "tests/unit/model",
        "tests/unit/permit",
        "tests/unit/seeds",
    ),
    *("tests/unit/sinks", "tests/unit/crawl/test_load_ahead.py", "tests/unit/schedule"),
)
_COPIED = (
    "src",
    "tests",
    "tools",
    "benchmarks",
    "docs",
    "examples",
    "README.md",
    "LICENSE",
    "pyproject.toml",
)
_COPIED += ("CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "budget.toml", "deploy", "requirements")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "libraries", ".venv")
_PAGE = b"<title>One</title><a href='two.ttl'>two</a>"
_DATA = b"<http://example.org/s> <http://example.org/p> 'left' ."
_LAST_LINE = re.compile(r"(\d+ passed.*?)(?: in [\d.]+s)")


def main(names: list[str]) -> int:
    """Print a row for each feature; fail where something does not work without one."""
    features = {
        each.parent.name: each for each in sorted((ROOT / "src/tamias/features").glob("*/__init__.py"))
    }
    show("| without | too | lines | starts | crawls | tests |\n|---|---|---|---|---|---|\n")
    trials = [try_without(name, also_gone(name, features)) for name in names or features]
    return int(not all(trials))


def also_gone(name: str, features: dict[str, Path]) -> list[str]:
    """Return the features that require one, directly or not, which go with it."""
    gone = {name}
    while more := {other for other, file in features.items() if gone & {*_required(file)}} - gone:
        gone |= more
    return sorted(gone - {name})


def _required(file: Path) -> list[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "requires":
            return list(ast.literal_eval(node.value))
    return []


def try_without(name: str, others: list[str]) -> bool:
    """Try a copy without a feature and those that require it; print its row and return whether all worked."""
    with tempfile.TemporaryDirectory(prefix=f"without-{name}-") as folder:
        copy = Path(folder)
        for each in _COPIED:
            source = ROOT / each
            if source.is_dir():
                shutil.copytree(source, copy / each, ignore=_NOT_COPIED)
            elif source.exists():
                shutil.copy2(source, copy / each)
        lines = 0
        for each in (name, *others):
            place = copy / "src/tamias/features" / each
            texts = (file for file in place.rglob("*") if file.is_file())
            lines += sum(file.read_bytes().count(b"\n") for file in texts)
            shutil.rmtree(place)
        environment = install(copy)
        starts = see_that_it_starts(copy, environment, {name, *others})
        crawls = see_that_it_crawls(copy, environment, {name, *others})
        passes, said = run_tests(copy, environment, {name, *others})
    words = ("yes" if each else "NO" for each in (starts, crawls))
    show(f"| {name} | {', '.join(others)} | {lines:,} | {' | '.join(words)} | {said} |\n")
    return starts and crawls and passes


def install(copy: Path) -> dict[str, str]:
    """Install the copy beside the packages of this environment; return the environment to run it in."""
    target = copy / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", target, copy], check=True)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    return clean | {"PYTHONPATH": str(target), "PYTHONSAFEPATH": "1", "HOME": str(copy)}


def run(copy: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the copy."""
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def see_that_it_starts(copy: Path, environment: dict[str, str], gone: set[str]) -> bool:
    """Return whether the installed command lists its features, without those that are gone."""
    done = run(copy, environment, "tamias", "plugins")
    there = {line.split()[0] for line in done.stdout.splitlines() if line and line[0] != " "}
    return done.returncode == 0 and "core" in there and not gone & there


def see_that_it_crawls(copy: Path, environment: dict[str, str], gone: set[str]) -> bool:
    """Return whether a page and the Turtle file that it links to are crawled, and found in the archive."""
    site = copy / "site"
    site.mkdir()
    (site / "index.html").write_bytes(_PAGE)
    (site / "two.ttl").write_bytes(_DATA)
    with serve(site) as address, serve_database(copy, gone) as database:
        environment = environment | database
        words = ("crawl", address, "--allow-private", "--delay", "0", "--depth", "1", "-q", "--data", "data")
        done = run(copy, environment, "tamias", *words)
        if "exports" in gone:
            text = b"".join(zstd.decompress(file.read_bytes()) for file in (copy / "data/rdf").rglob("*.zst"))
            return done.returncode == 0 and b'"left"' in text
        found = run(copy, environment, "tamias", "export", "--data", "data")
    return (done.returncode, found.returncode) == (0, 0) and "left" in found.stdout


@contextmanager
def serve_database(copy: Path, gone: set[str]) -> Iterator[dict[str, str]]:
    """Run a server of this checkout where the copy has none; yield what names it."""
    if "embedded" not in gone:
        yield {}
        return
    with closing(Database(copy / "server")) as database:
        assert database.embedded is not None
        address = urlencode(conninfo_to_dict(database.embedded.address()))
        yield {"TAMIAS_DB": f"postgresql:///?{address}"}


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve the files of a folder on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        extensions_map = {".ttl": "text/turtle", ".html": "text/html"}  # noqa: RUF012 - as the library has it

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/index.html"
    finally:
        server.shutdown()


def run_tests(copy: Path, environment: dict[str, str], gone: set[str]) -> tuple[bool, str]:
    """Run the tests that neither import what is gone nor are named after it; return how they ended."""
    named = re.compile(rf"tamias\.features\.(?:{'|'.join(gone)})\b")
    files = sorted(file for each in TESTS for file in _test_files(copy / each))
    apart = [file for file in files if named.search(file.read_text())]
    left_out = [f"--ignore={file}" for file in apart]
    others = " and ".join(f"not {name}" for name in sorted(gone))
    words = ("-q", "-p", "no:cacheprovider", "-k", others, *TESTS, *left_out)
    done = run(copy, environment, "pytest", *words)
    summary = _LAST_LINE.search(done.stdout)
    said = summary[1] if summary else (done.stdout + done.stderr).strip().splitlines()[-1]
    failed = "".join(f"; {line}" for line in done.stdout.splitlines() if line.startswith("FAILED"))
    return done.returncode == 0, f"{said}, {len(apart)} files left out{failed}"


def _test_files(place: Path) -> Iterator[Path]:
    yield from place.rglob("test_*.py") if place.is_dir() else [place]


def show(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
