"""Follows one Turtle document from its lease to its commit: the files it passes, and the objects made for it.

A real crawl of three documents on loopback, whose worker loads this file as `sitecustomize` and notes every
call, and every instance of a class of the product. The document is the second one: robots.txt is known by
then. The interpreter decides which Tamias is looked at: `.venv/bin/python tools/trace_visit.py`.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

TRACED = "/b.ttl"
_TRIPLES = '@prefix : <urn:x:> .\n<{0}> :see <{1}> ; :name "{0}" .\n'
_PAGES = {
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /shut\n"),
    "/a.ttl": ("text/turtle", _TRIPLES.format("a.ttl", "b.ttl")),
    "/b.ttl": ("text/turtle", _TRIPLES.format("b.ttl", "c.ttl")),
    "/c.ttl": ("text/turtle", _TRIPLES.format("c.ttl", "a.ttl")),
}
_OUT = "TAMIAS_TRACE_VISIT"


class Walk:
    """What the process does between the lease of the document and the commit of it."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._goes_on = False
        self._files: dict[str, None] = {}
        self._made: dict[tuple[str, str], int] = {}

    def made(self, instance: object, maker: FrameType | None) -> None:
        """An instance of a class of the product was made."""
        kind = type(instance)
        if kind.__name__ == "Task" and getattr(instance, "url", "").endswith(TRACED):
            self._goes_on = True
        if self._goes_on and kind.__module__.startswith("tamias."):
            where = "" if maker is None else _short(maker.f_code.co_filename)
            self._made[kind.__name__, where] = self._made.get((kind.__name__, where), 0) + 1

    def called(self, frame: FrameType, event: str, _argument: object) -> None:
        """For `sys.setprofile`."""
        if event != "call" or not (where := _short(frame.f_code.co_filename)):
            return
        if frame.f_code.co_name == "__init__" and "self" in frame.f_locals:
            self.made(frame.f_locals["self"], frame.f_back)
        if self._goes_on:
            self._files.setdefault(where)
            if frame.f_code.co_name == "reached" and "after-commit" in frame.f_locals.values():
                self._goes_on = False
                made = [[name, where, count] for (name, where), count in self._made.items()]
                self._out.write_text(json.dumps({"files": list(self._files), "made": made}))
                sys.setprofile(None)


def _short(file: str) -> str:
    _, found, inside = file.partition("/src/tamias/")
    return inside if found else ""


def _install(out: Path) -> None:
    """In every process of the crawl; only the worker that has the document writes something."""
    import msgspec

    walk = Walk(out)

    class Struct(msgspec.Struct):
        """Tells of every instance: those of the C type pass no frame."""

        def __post_init__(self) -> None:
            walk.made(self, sys._getframe(1))

    msgspec.Struct = Struct  # type: ignore[misc]
    threading.setprofile(walk.called)
    sys.setprofile(walk.called)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, text = _PAGES.get(self.path, ("", ""))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """The crawl tells enough."""


def _crawl(folder: Path, address: str) -> dict[str, Any]:
    out = folder / "walk.json"
    (folder / "sitecustomize.py").write_text(Path(__file__).read_text())
    (folder / "tamias.toml").write_text("[seeds]\nprobe = false\nsitemaps = false\n")
    tamias = Path(sys.executable).parent / "tamias"
    command = [str(tamias), "crawl", f"{address}/a.ttl", "--data", str(folder / "data"), "--allow-private"]
    command += ["--config", str(folder / "tamias.toml"), "--delay", "0", "--contact", "https://example.org/"]
    environment = os.environ | {"PYTHONPATH": str(folder), _OUT: str(out)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if not out.exists():
        sys.exit(f"the document was not visited\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def main() -> None:
    """Prints the files as they are first entered, then the classes as they are first made, and where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        found = _crawl(Path(folder), f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    folders = Counter(file.split("/")[0] for file in found["files"])
    lines = [f"{len(found['files'])} files: {', '.join(f'{name} {n}' for name, n in folders.items())}"]
    lines += [f"  {file}" for file in found["files"]]
    names = {name for name, _, _ in found["made"]}
    lines.append(f"{len(names)} classes, {sum(n for _, _, n in found['made'])} instances")
    lines += [f"  {name:24} {count:3}  {where}" for name, where, count in found["made"]]
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "sitecustomize":
    if _OUT in os.environ:
        _install(Path(os.environ[_OUT]))
elif __name__ == "__main__":
    main()
