"""Trace documents from their lease to their commit: files entered, calls, and objects made for them.

`.venv/bin/python tools/trace_visit.py [WALK]` runs real crawls on loopback with the Tamias of that
interpreter. Their workers load this file as `sitecustomize`, which notes each call of a function of Tamias
and each instance of its classes.

- `turtle`: one small Turtle document with one new link, whose host and robots.txt are known.
- `csv`: one file of 50 rows and 4 columns that `tamias add` watches, with its robots.txt, until its first
  version is committed. Calls grow with the file: mostly those that find out what its columns mean.

`calls` are those of a document that is committed alone. A coroutine or generator counts each time it resumes,
and so do comprehensions: Python 3.12 makes no calls of some, so the number is that of Python 3.11.
`calls_of_100` is the mean over one commit of 100 documents, without comprehensions and generator expressions:
what a commit does once counts little. The timers of the worker are slowed down: they would fall into a walk
or not. Calls still differ by some between runs, and now and then there is one file or class more.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

DOCUMENTS = 100
WALKS = ("turtle", "csv")
_ROBOTS = "User-agent: *\nDisallow: /shut\n"
_TRIPLES = '@prefix : <urn:x:> .\n<{0}> :name "{0}"{1} .\n'
_ROWS = "id,name,born,height\n" + "".join(f"{n},Name {n},19{n}-03-01,1.{n}\n" for n in range(10, 60))
_SETTINGS = f"[seeds]\nprobe = false\nsitemaps = false\n[frontier]\nper_round = {DOCUMENTS}\n"
_ENVIRONMENT = "TAMIAS_TRACE_VISIT"
_TIMERS = (
    ("tamias.crawl.worker.worker", "IDLE_SECONDS", 3.0),
    ("tamias.crawl.worker.worker", "LOOK_SECONDS", 3.0),
    ("tamias.frontier.crawls", "_LOOK_MS", 3000),
)
"""What a worker does now and then: how rarely during a walk, which takes long where the machine is busy."""
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


class Walk:
    """What a worker does between the lease of the traced documents and the commit of the last of them."""

    def __init__(self, out: str, traced: str, documents: int) -> None:
        self._out = Path(out)
        self._traced = traced
        self._documents = documents
        self._running = False
        self._calls: Counter[str] = Counter()
        self._comprehensions = 0
        self._made: Counter[tuple[str, str]] = Counter()
        self._visits = 0

    def note_instance(self, instance: object, maker: FrameType | None) -> None:
        """Count an instance of a class of Tamias; the walk begins with the task of a traced document."""
        kind = type(instance)
        if kind.__name__ == "Task" and self._traced in getattr(instance, "url", ""):
            self._running = True
            for module, timer, period in _TIMERS:
                setattr(sys.modules[module], timer, period)
        if self._running and kind.__module__.startswith("tamias."):
            self._made[kind.__name__, "" if maker is None else _inside(maker)] += 1
            self._visits += kind.__name__ == "Visit"

    def note_call(self, frame: FrameType, event: str, _argument: object) -> None:
        """Count a call, as `sys.setprofile` reports it; the walk ends with the commit."""
        if event != "call" or not (file := _inside(frame)):
            return
        name = frame.f_code.co_name
        if name == "__init__" and "self" in frame.f_locals:
            self.note_instance(frame.f_locals["self"], frame.f_back)
        if name == "_gather" and self._documents > 1:
            frame.f_globals["GATHER_ROUNDS"] = 10_000
        if not self._running:
            return
        self._calls[file] += 1
        self._comprehensions += name in _COMPREHENSIONS
        if (
            name == "reached"
            and "after-commit" in frame.f_locals.values()
            and self._visits >= self._documents
        ):
            self._running = False
            made = [[name, file, count] for (name, file), count in self._made.items()]
            found = {"calls": self._calls, "comprehensions": self._comprehensions, "made": made}
            self._out.write_text(json.dumps(found))
            sys.setprofile(None)


def _inside(frame: FrameType) -> str:
    """Return the file of a frame inside of `src/tamias`; empty for code of others."""
    return frame.f_code.co_filename.partition("/src/tamias/")[2]


def _install(walk: Walk) -> None:
    """Watch this process; only the worker that has the documents writes something."""
    import msgspec

    class Struct(msgspec.Struct):
        """Note every instance: those of the C type pass no frame."""

        def __post_init__(self) -> None:
            walk.note_instance(self, sys._getframe(1))

    msgspec.Struct = Struct  # type: ignore[misc]
    threading.setprofile(walk.note_call)
    sys.setprofile(walk.note_call)


class _Handler(BaseHTTPRequestHandler):
    """Serve robots.txt, a CSV file, `/a.ttl` with a link to a document, `/many.ttl` with links to many."""

    def do_GET(self) -> None:
        link = "" if "last" in self.path else f" ; :see <{self.path.replace('traced', 'last')}>"
        kind, text = "text/turtle", _TRIPLES.format(self.path, link)
        if self.path == "/robots.txt":
            kind, text = "text/plain", _ROBOTS
        elif self.path == "/table.csv":
            kind, text = "text/csv", _ROWS
        elif self.path in {"/a.ttl", "/many.ttl"}:
            count = 1 if self.path == "/a.ttl" else DOCUMENTS
            text = "".join(_TRIPLES.format(self.path, f" ; :see </traced/{n}.ttl>") for n in range(count))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing: the crawl says enough."""


@contextmanager
def _server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _crawl(address: str, traced: str, documents: int, *, watched: bool = False) -> dict[str, Any]:
    """Run a crawl whose worker is traced, and return what it noted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(Path(__file__).read_text())
        (folder / "tamias.toml").write_text(_SETTINGS)
        tamias = str(Path(sys.executable).parent / "tamias")
        common = ["--data", str(folder / "data"), "--config", str(folder / "tamias.toml")]
        command = [tamias, "crawl", address, *common, "--allow-private", "--delay", "0"]
        command += ["--contact", "https://example.org/", "--workers", "1"]
        if watched:
            subprocess.run([tamias, "add", address, *common], capture_output=True, timeout=120, check=True)
            command.append("--recrawl")
        walk = {"out": str(folder / "walk.json"), "traced": traced, "documents": documents}
        environment = os.environ | {"PYTHONPATH": name, _ENVIRONMENT: json.dumps(walk)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        if not (folder / "walk.json").exists():
            sys.exit(f"{address} was not visited\n{done.stdout}{done.stderr}")
        found: dict[str, Any] = json.loads((folder / "walk.json").read_text())
        return found


def trace(walk: str) -> dict[str, Any]:
    """Return what a walk calls and makes, and the numbers of it that `budget.toml` holds."""
    with _server() as address:
        if walk == "csv":
            found = _crawl(f"{address}/table.csv", "/table.csv", 1, watched=True)
        else:
            found = _crawl(f"{address}/a.ttl", "/traced/", 1)
            many = _crawl(f"{address}/many.ttl", "/traced/", DOCUMENTS)
    package = Path(str(find_spec("tamias").origin)).parent  # type: ignore[union-attr]
    numbers = {
        "files": len(found["calls"]),
        "folders": len({str(Path(file).parent) for file in found["calls"]}),
        "calls": sum(found["calls"].values()),
        "classes": len({name for name, _, _ in found["made"]}),
        "longest_file": max(len((package / file).read_text().splitlines()) for file in found["calls"]),
    }
    if walk == "turtle":
        numbers["calls_of_100"] = round((sum(many["calls"].values()) - many["comprehensions"]) / DOCUMENTS)
    return {**found, "numbers": numbers}


def main(walks: list[str]) -> None:
    """Print the numbers of each walk, its files in the order of their first calls, and its classes."""
    for walk in walks or WALKS:
        found = trace(walk)
        lines = [f"{walk}: {', '.join(f'{name} {number:,}' for name, number in found['numbers'].items())}"]
        lines += [f"  {file:44} {count:5,} calls" for file, count in found["calls"].items()]
        lines += [f"  {name:24} {count:3}  {file}" for name, file, count in found["made"]]
        sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "sitecustomize":
    if _ENVIRONMENT in os.environ:
        _install(Walk(**json.loads(os.environ[_ENVIRONMENT])))
elif __name__ == "__main__":
    main(sys.argv[1:])
