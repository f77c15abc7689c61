"""`tamias` as a user meets it: real processes on a data directory of their own, and small sites to crawl."""

import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import warnings
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict
from pyoxigraph import Quad, RdfFormat, Store, serialize

from tamias.crawl.worker.fork_server import DATABASE_WORKER, PROCESS_NAME
from tamias.database.connect import Database
from tamias.database.disk import is_free, shared
from tests import commands
from tests.shared_servers import SharedServers

PATIENCE = 300.0
"""Seconds until a test gives up: long, for the machine may be busy, and nobody waits for it otherwise."""
VOCABULARY = "https://w3id.org/tamias/vocab#"


class Site:
    """A server whose answers a test writes: `pages[path]` is a body, or a function of the request handler.

    `pages["/path?"]` answers whatever the query is.
    """

    def __init__(self, address):
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or each body waits 40 ms until its headers are acknowledged

            def do_GET(self):
                site.serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.address = address
        self.pages = {}
        self.log = []
        self.spans = []
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def url(self, path):
        return f"http://{self.address}:{self.server.server_port}{path}"

    def serve(self, handler):
        begun = time.monotonic()
        self.log.append((handler.path, begun))
        handler.answering = None
        try:
            self.give(handler)
        finally:
            self.spans.append((begun, handler.answering or time.monotonic()))

    def gaps(self):
        """Seconds from the end of each request to the begin of the next; negative if two were under way.

        A request ends here just before its answer is sent: the client has it before our clock can be read.
        """
        spans = sorted(self.spans)
        return [after - before for (_, before), (after, _) in pairwise(spans)]

    def give(self, handler):
        page = self.pages.get(handler.path, self.pages.get(handler.path.partition("?")[0] + "?"))
        with suppress(ConnectionError):
            if callable(page):
                page(handler)
            elif page is None:
                answer(handler, 404)
            else:
                answer(handler, 200, page, **{"Content-Type": "text/turtle"})

    def asked(self, path):
        """How often a path was asked for."""
        return sum(asked == path for asked, _ in self.log)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def answer(handler, status, body=b"", **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.answering = time.monotonic()
    handler.end_headers()
    handler.wfile.write(body)


def replying(status, body=b"", **headers):
    """A page that always answers so."""
    return lambda handler: answer(handler, status, body, **headers)


class Tamias:
    """The executable on one data directory."""

    def __init__(self, data):
        self.data = data
        self.before = set(processes())
        """Whoever ran before has nothing to do with the data directory: to look at all files of all processes
        takes longer than most commands."""
        self.env = {**os.environ, "TAMIAS_CRAWL__RETRY_WAIT": "0.1", "TAMIAS_SEEDS__PROBE": "false"}
        self.started = []
        self.users = None
        self.server = None
        """One that is shared with other tests, if it is."""
        self.new = False
        """Whether each command is a new interpreter."""

    def hold_server(self):
        """Until `let_go`, all commands meet the server that the first one starts: to start and stop one for
        each takes as long as the command. Tests about what is left running do without."""
        self.users = shared(self.data / "pg" / "users.lock")

    def let_go(self):
        """The server ends with its last user, as always."""
        if self.users is not None:
            self.users.close()

    def run(self, verb, *words, timeout=PATIENCE):
        """Runs to the end: exit code, stdout, stderr."""
        return commands.run(
            self._words(verb, words),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.env,
            cwd=self.data.parent,
            new=self.new,
        )

    def start(self, verb, *words, stdin=None):
        """The same, still running."""
        process = commands.start(
            self._words(verb, words),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            cwd=self.data.parent,
            new=self.new,
        )
        self.started.append(process)
        return process

    def crawl(self, *words, timeout=PATIENCE):
        """A crawl of loopback addresses by one worker, as fast as it goes, unless told otherwise."""
        usual = ("--allow-private", "--delay", "0", "--workers", "1")
        return self.run("crawl", *usual, *map(str, words), timeout=timeout)

    def quads(self):
        """The exported quads as lines."""
        done = self.run("export")
        assert done.returncode == 0, done.stderr
        return set(done.stdout.splitlines())

    def attempts(self):
        """What the metadata graph tells of each attempt, by the URL asked for."""
        done = self.run("export", "--graph", "metadata")
        assert done.returncode == 0, done.stderr
        store = Store()
        store.load(done.stdout.encode(), format=RdfFormat.N_QUADS)
        found = {}
        for quad in store.quads_for_pattern(None, None, None):
            name = quad.predicate.value
            if name.startswith(VOCABULARY):
                found.setdefault(quad.subject.value, {})[name.removeprefix(VOCABULARY)] = quad.object.value
        tried = {}
        for each in found.values():
            if "requestedUrl" in each:
                tried.setdefault(each["requestedUrl"], []).append(each)
        return tried

    def workers(self):
        """The process ids of all workers on this data directory."""
        return [pid for pid in self.newer() if is_worker(pid) and uses(pid, self.data)]

    def newer(self):
        """The processes that were started later."""
        return [pid for pid in processes() if pid not in self.before]

    def running(self):
        """Keeper and server, by their own word."""
        with suppress(FileNotFoundError):
            return json.loads((self.data / "pg" / "running.json").read_bytes())
        return {}

    def wait_until(self, condition, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited {seconds} s in vain"
            time.sleep(0.02)

    def in_use(self):
        """The processes that have to do with the data directory; a shared server does not end with it."""
        found = self.newer()
        if self.server is not None:
            found = [pid for pid in found if not works_in(pid, self.server.folder)]
            return [pid for pid in found if uses(pid, self.data) or uses(pid, self.server.folder)]
        return [pid for pid in found if uses(pid, self.data)]

    def end(self):
        for process in self.started:
            with suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        self.let_go()
        # To look at all processes takes long: not before the database says that it has ended.
        if self.server is None:
            locks = [self.data / "pg" / name for name in ("keeper.lock", "server.lock")]
            self.wait_until(lambda: all(is_free(lock) for lock in locks if lock.exists()))
        self.wait_until(lambda: not self.in_use())

    def _words(self, verb, words):
        return [*verb.split(), "--data", str(self.data), *words]


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_worker(pid):
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return DATABASE_WORKER.encode() in command or command.startswith(PROCESS_NAME.encode())


def works_in(pid, folder):
    """Whether a process is a keeper or a server of a folder."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cwd").readlink().is_relative_to(folder)
    return False


def uses(pid, data):
    """Whether a process other than ours has a file of the data directory open, or works there."""
    if pid == os.getpid():
        return False
    place = str(data) + "/"
    links = [Path(f"/proc/{pid}/cwd")]
    with suppress(OSError):
        links += Path(f"/proc/{pid}/fd").iterdir()
    for link in links:
        with suppress(OSError):
            if os.readlink(link).startswith(place):
                return True
    return False


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """A data directory with a database in it, to be copied: that is quicker than to make one."""
    data = tmp_path_factory.mktemp("made") / "data"
    Database(data).close()
    deadline = time.monotonic() + PATIENCE
    while any(uses(pid, data) for pid in processes()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return data


@pytest.fixture(scope="session")
def shared_servers(made_once, tmp_path_factory):
    servers = SharedServers(made_once, tmp_path_factory.mktemp("servers"))
    yield servers
    servers.close()


@pytest.fixture
def lent(shared_servers):
    """The servers that a test has: they are given back when all its commands have ended."""
    lent = []
    yield lent
    for server in lent:
        shared_servers.take_back(server)


@pytest.fixture
def tamias_at(request, tmp_path, lent):
    """`tamias_at(name)` works on a data directory of that name, not made yet; nothing may be left running."""
    made = []

    def make(name):
        made.append(Tamias(tmp_path / name))
        made[-1].new = request.node.get_closest_marker("processes") is not None
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def fresh(lent, tamias_at, made_once, shared_servers):
    """`fresh(name)`: the same with an empty database, on a server of its own for tests about processes."""

    def make(name):
        tamias = tamias_at(name)
        if tamias.new:
            shutil.copytree(made_once, tamias.data)
            tamias.hold_server()
        else:
            tamias.server = shared_servers.lend(tamias.data)
            lent.append(tamias.server)
        return tamias

    return make


@pytest.fixture
def object_store():
    """An S3-compatible store; `objects` is what it holds."""
    from .archive.blobs import s3_server

    with s3_server.serving() as server:
        yield server


@pytest.fixture
def machine(fresh, tamias_at, object_store):
    """`machine(name)`: a data folder of its own, on the database and the store of all."""
    with closing(Database(fresh("server").data)) as database:

        def make(name):
            made = tamias_at(name)
            made.env |= shared_by_machines(database, object_store)
            return made

        yield make


def shared_by_machines(database, object_store):
    """The environment of machines that share a database and an S3-compatible store."""
    from .archive.blobs import s3_server

    return {
        "TAMIAS_DB": "postgresql:///?" + urlencode(conninfo_to_dict(database.embedded.address())),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{object_store.server_port}",
        "AWS_ACCESS_KEY_ID": s3_server.CREDENTIALS.key,
        "AWS_SECRET_ACCESS_KEY": s3_server.CREDENTIALS.secret,
    }


@pytest.fixture
def tamias(fresh):
    return fresh("data")


@pytest.fixture
def site_at():
    """`site_at(address)` serves nothing yet."""
    made = []

    def make(address="127.0.0.1"):
        made.append(Site(address))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def site(site_at):
    return site_at()


@pytest.fixture
def reply():
    """`reply(status, body, header=...)` is a page that always answers so."""
    return replying


@pytest.fixture
def kill():
    """`kill(pid)` as `kill -9` does it; false if there was nobody."""

    def kill_hard(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    return kill_hard


@pytest.fixture(scope="session")
def violations(suites):
    """`violations(quads)` is what the shapes of DCAT-AP have against them, each as a line."""
    shacl = pytest.importorskip("pyshacl")
    from rdflib import Graph
    from rdflib.namespace import SH

    folder = suites("dcat-ap-3.0.1-shapes")
    shapes = Graph()
    for name in ("dcat-ap-SHACL.ttl", "shapes.ttl", "range.ttl"):
        shapes.parse(next(folder.rglob(name)))
    # One property shape is named, but nowhere described: nothing can be held against it.
    for holder, shape in list(shapes.subject_objects(SH.property)):
        if shapes.value(shape, SH.path) is None:
            shapes.remove((holder, SH.property, shape))

    def found(quads):
        triples = [Quad(quad.subject, quad.predicate, quad.object) for quad in quads]
        data = Graph().parse(serialize(triples, format=RdfFormat.N_TRIPLES), format="nt")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, report, _ = shacl.validate(data, shacl_graph=shapes, advanced=False)
        results = report.subjects(SH.resultSeverity, SH.Violation)
        parts = (SH.focusNode, SH.resultPath, SH.sourceConstraintComponent, SH.value, SH.resultMessage)
        return sorted(" | ".join(str(report.value(result, part)) for part in parts) for result in results)

    return found
