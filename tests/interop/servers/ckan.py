"""A real CKAN with a PostgreSQL of the machine; its search index is a stand-in.

CKAN keeps its index in Solr. `SearchIndex` below takes the place of that: it stores what CKAN's code sends to
be indexed, and gives back those that are active, in the order that CKAN's own code asks for. All else (the
database, the checks of records, the API, its limits and errors) is CKAN's.
"""

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import parse_qs, urlsplit

from servers.packages import NotRun, pip
from servers.running import free_port, running

POSTGRES = Path("/usr/lib/postgresql/15/bin")
MOST_RECORDS = 25
"""What a page has at the most, whatever it is asked for."""
_LOAD = """
import json, sys
from ckan.config.middleware import make_app
from ckan.cli import load_config
from ckan.plugins import toolkit
app = make_app(load_config(sys.argv[1]))
with app._wsgi_app.test_request_context():
    user = toolkit.get_action("get_site_user")({"ignore_auth": True}, {})
    context = {"ignore_auth": True, "user": user["name"]}
    for organisation in json.load(open(sys.argv[2])):
        toolkit.get_action("organization_create")(dict(context), organisation)
    for record in json.load(open(sys.argv[3])):
        toolkit.get_action("package_create")(dict(context), record)
"""


class SearchIndex:
    """In the place of Solr: the documents of an index in memory, over HTTP."""

    def __init__(self, schema: bytes) -> None:
        """`schema` is the one that comes with CKAN, which asks for its version."""
        index = self
        self.documents: dict[str, dict[str, Any]] = {}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "/schema" in self.path:
                    self._write("application/xml", schema)
                    return
                self._answer(parse_qs(urlsplit(self.path).query))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if "/update" not in self.path:
                    self._answer(parse_qs(body.decode()))
                    return
                if body.lstrip().startswith(b"["):
                    index.add(json.loads(body))
                self._send({"responseHeader": {"status": 0}})

            def _answer(self, asked: dict[str, list[str]]) -> None:
                self._send(index.answer(asked))

            def _send(self, value: dict[str, Any]) -> None:
                self._write("application/json", json.dumps(value).encode())

            def _write(self, kind: str, content: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/solr/ckan"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def add(self, documents: Sequence[dict[str, Any]]) -> None:
        """Takes documents in, each in the place of the one before."""
        self.documents.update((each["index_id"], each) for each in documents)

    def answer(self, asked: dict[str, list[str]]) -> dict[str, Any]:
        """A page of the datasets that are active, in the order that is asked for."""
        found = [each for each in self.documents.values() if each.get("state") == "active"]
        for name, order in reversed(re.findall(r"(\w+) (asc|desc)", asked.get("sort", [""])[0])):
            found.sort(key=lambda each: str(each.get(name, "")), reverse=order == "desc")
        start, rows = int(asked.get("start", ["0"])[0]), int(asked.get("rows", ["10"])[0])
        page = {"numFound": len(found), "start": start, "docs": found[start : start + rows]}
        return {"responseHeader": {"status": 0}, "response": page, "facet_counts": {"facet_fields": {}}}


@contextmanager
def start(
    folder: Path, organisations: Sequence[dict[str, Any]], records: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """The address of a CKAN with these records."""
    programs = pip("ckanext-dcat==2.4.4", "ckan[requirements]==2.12.0")
    (schema,) = programs.parent.glob("lib/python*/site-packages/ckan/config/solr/schema.xml")
    index, port = SearchIndex(schema.read_bytes()), free_port()
    url = f"http://127.0.0.1:{port}/"
    try:
        with _database(folder) as database:
            config = _config(folder, programs, database, index.url, url)
            _run([programs / "ckan", "-c", config, "db", "init"], folder)
            for name, content in (("organisations", organisations), ("records", records)):
                (folder / f"{name}.json").write_text(json.dumps(content))
            load = [programs / "python", "-c", _LOAD, config, "organisations.json", "records.json"]
            _run(load, folder)
            command = [programs / "ckan", "-c", config, "run", "--port", str(port), "--disable-reloader"]
            with running(command, f"{url}api/3/action/status_show", folder, seconds=180):
                yield url
    finally:
        index.server.shutdown()
        index.server.server_close()


def _config(folder: Path, programs: Path, database: str, index: str, url: str) -> Path:
    config = folder / "ckan.ini"
    _run([programs / "ckan", "generate", "config", config], folder)
    text = config.read_text()
    for name, value in {
        "sqlalchemy.url": database,
        "solr_url": index,
        "ckan.site_url": url.rstrip("/"),
        "ckan.plugins": "activity",
        "ckan.storage_path": str(folder),
        "ckan.search.rows_max": str(MOST_RECORDS),
    }.items():
        line = f"{name} = {value}"
        text, count = re.subn(rf"(?m)^#? ?{re.escape(name)} ?=.*$", line, text, count=1)
        text = text if count else f"{text}\n{line}\n"
    config.write_text(text)
    return config


@contextmanager
def _database(folder: Path) -> Iterator[str]:
    """An empty database of its own, by the machine's PostgreSQL, which does not run as root."""
    if not (POSTGRES / "initdb").exists():
        raise NotRun(f"{POSTGRES} has no PostgreSQL")
    place, port = Path(mkdtemp(prefix="tamias-ckan-")), free_port()
    account: list[str | Path] = []
    if os.geteuid() == 0:
        account = ["runuser", "-u", "postgres", "--"]
        shutil.chown(place, "postgres")
    _run([*account, POSTGRES / "initdb", "-D", place, "-U", "ckan", "-A", "trust"], folder)
    options = ["-p", str(port), "-k", str(place), "-h", "127.0.0.1"]
    server = subprocess.Popen(
        [*account, POSTGRES / "postgres", "-D", place, *options],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
    )  # fmt: skip
    try:
        command = [*account, POSTGRES / "pg_isready", "-h", "127.0.0.1", "-p", str(port), "-t", "60"]
        for _ in range(60):
            if subprocess.run(command, capture_output=True, cwd="/", check=False).returncode == 0:
                break
        create = ["-h", "127.0.0.1", "-p", str(port), "-U", "ckan", "-T", "template0", "-E", "utf8", "town"]
        _run([*account, POSTGRES / "createdb", *create], folder)
        yield f"postgresql://ckan@127.0.0.1:{port}/town"
    finally:
        _run([*account, POSTGRES / "pg_ctl", "stop", "-D", place, "-m", "fast"], folder)
        server.wait(60)
        shutil.rmtree(place, ignore_errors=True)


def _run(command: Sequence[str | Path], folder: Path) -> None:
    words = [str(word) for word in command]
    cwd = "/" if words[0] == "runuser" or "/postgresql/" in words[0] else folder
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, cwd=cwd, check=False)
    if done.returncode:
        raise NotRun(f"{' '.join(words[:6])[:200]}: {(done.stderr or done.stdout)[-1500:]}")
