"""The sandbox: a document that kills, hogs or spies costs the child process, never the worker."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import socket
import zipfile
from contextlib import contextmanager
from pathlib import Path

import brotli
import msgspec
import pytest
import zstandard
from psycopg.conninfo import conninfo_to_dict

from tamias.crawl.analysis.analysers import ContextCache
from tamias.crawl.analysis.extractor import Extractor, Wanting
from tamias.crawl.sandbox.sandbox import Sandbox
from tamias.crawl.sandbox.walls import NICE, NICEST, niceness
from tamias.crawl.store.held_lease import NotNow
from tamias.crawl.visit.reader import is_dangerous, is_read_at_once
from tamias.model.capture import Body, Capture, Extent, Hop, Outcome
from tamias.settings import OpenSettings, SandboxSettings, Settings

PNG = b"\x89PNG\r\n\x1a\n"
TURTLE = b"<http://e.test/a> <http://e.test/p> <http://e.test/b>, <http://e.test/c> .\n"
MIB = 1 << 20
ANALYSER = """
import os, socket, tempfile
from tamias.model.finding import Problem

class Strange:
    media_types = frozenset({"image/png"})

    def analyse(self, document):
        what, _, rest = document.stream.read()[8:].decode().partition(" ")
        yield from getattr(self, what)(rest) or ()

    def abort(self, _):
        os.abort()

    def leave(self, _):
        os._exit(7)

    def spin(self, _):
        while True:
            pass

    def sleep(self, _):
        import time
        time.sleep(3600)

    def hoard(self, _):
        self.kept = bytearray(6 << 30)  # at once: filling it bit by bit may take all its processor time

    def call(self, port):
        try:
            socket.create_connection(("127.0.0.1", int(port)), timeout=5)
        except OSError as error:
            return [Problem("no way out")]

    def write(self, _):
        with tempfile.TemporaryFile() as file:
            try:
                file.write(bytes(8 << 20))
                file.flush()
            except OSError:
                return [Problem("file too large")]

    def environment(self, _):
        return [Problem(",".join(os.environ))]

    def run(self, script):
        try:
            found = {}
            exec(script, found)
            return [Problem(f"did {found.get('result')}")]
        except Exception as error:
            return [Problem(f"{type(error).__name__}: {error}")]

    def babble(self, _):
        os.write(1, b"not a frame")
        for number in range(3, 20):
            try:
                os.write(number, bytes([255] * 4))
            except OSError:
                pass
"""

FEATURES = """
from tamias.plugins import Feature
FEATURES = [Feature("strange", "obeys pictures", __name__, analysers={"strange": "strange:Strange"})]
"""


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """An installed plug-in whose analyser does what a picture tells it to."""
    place = tmp_path / "site-packages"
    told = place / "strange-1.dist-info"
    told.mkdir(parents=True)
    (place / "strange.py").write_text(ANALYSER + FEATURES)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1\n")
    (told / "entry_points.txt").write_text("[tamias.features]\nstrange = strange:FEATURES\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture
def sandbox(monkeypatch):
    """With limits that are soon reached, and not nicer than other tests, which would make it slow."""
    monkeypatch.setattr("tamias.crawl.sandbox.walls.NICE", 0)
    limits = SandboxSettings(memory=1024 * MIB, cpu=2, cpu_whole=4)
    found = Sandbox(Settings(sandbox=limits, open=OpenSettings(max_unpacked=4 * MIB)), ContextCache())
    yield found
    found.close()


class Quads:
    """A place for quads, in memory."""

    extent = Extent(1, 2, 3, 4)

    def __init__(self):
        self.text = b""

    def write(self, chunk):
        self.text += chunk


class Kept:
    """What a document gave."""

    def __init__(self):
        self.quads = Quads()
        self.links = []

    @contextmanager
    def document(self):
        yield self.quads

    def take(self, references, base, kind):
        self.links += references


def capture(data, media_type):
    """A fetched body in memory."""
    url = "http://e.test/doc"
    hop = Hop(url=url, status=200, headers=(("Content-Type", media_type),), address="192.0.2.1")
    body = Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)
    return Capture(
        url=url, started_at=0, ended_at=0, outcome=Outcome.OK, reason="200 OK", hops=(hop,), body=body
    )


def extracted(extractor, data, media_type="text/turtle", kept=None):
    kept = kept or Kept()
    fetched = capture(data, media_type)
    return extractor.extract(fetched, fetched.body, kept.document, kept.take), kept


def told(sandbox, words):
    """What becomes of a picture that says these words."""
    return extracted(sandbox, PNG + words.encode(), "image/png")[0]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (TURTLE * 3000, "text/turtle"),
        (
            b"<html><a href='/x'>x</a><script type='application/ld+json'>{\"@id\":\"a:b\"}</script>",
            "text/html",
        ),
        (b"<http://e.test/a> <broken .\n" + TURTLE, "text/turtle"),
    ],
)
def test_a_document_gives_the_same_inside_as_outside(sandbox, data, media_type):
    inside, kept_inside = extracted(sandbox, data, media_type)
    outside, kept_outside = extracted(Extractor(Settings()), data, media_type)
    assert inside == outside
    assert kept_inside.quads.text == kept_outside.quads.text
    assert kept_inside.links == kept_outside.links


@pytest.mark.usefixtures("strangers")
class TestDeaths:
    @pytest.mark.parametrize(
        ("words", "reason"),
        [
            ("abort", "SIGABRT"),
            ("leave", "exit 7"),
            ("spin", "sandbox.cpu"),
            ("sleep", "silent for 8 s"),
            ("hoard", "sandbox.memory"),
        ],
    )
    def test_what_kills_the_sandbox_is_the_limit_on_record(self, sandbox, words, reason):
        assert reason in told(sandbox, words).limit

    def test_the_next_document_is_read_by_a_new_sandbox(self, sandbox):
        told(sandbox, "abort")
        assert extracted(sandbox, TURTLE)[0].quads == 2

    def test_nonsense_from_the_sandbox_is_not_believed(self, sandbox):
        assert "nonsense" in told(sandbox, "babble").limit

    def test_there_is_no_way_to_the_network(self, sandbox):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            found = told(sandbox, f"call {listener.getsockname()[1]}")
        assert found.problems == ["no way out"]

    def test_no_file_grows_beyond_what_may_be_unpacked(self, sandbox):
        assert told(sandbox, "write").problems == ["file too large"]

    def test_secrets_of_the_environment_stay_outside(self, sandbox, monkeypatch):
        monkeypatch.setenv("TAMIAS_SECRET", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        (names,) = told(sandbox, "environment").problems
        assert "SECRET" not in names

    def test_a_visit_that_is_given_up_does_not_wait_for_the_document(self, sandbox):
        fetched = capture(PNG + b"sleep", "image/png")

        def give_up(*_):
            raise NotNow

        with pytest.raises(NotNow):
            sandbox.extract(fetched, fetched.body, Kept().document, give_up)


COPY = """
import psycopg
with psycopg.connect("host={socket} user=tamias_owner dbname=postgres", autocommit=True) as connection:
    connection.execute("COPY (SELECT 1) TO PROGRAM 'touch {proof}'")
"""
ESCAPES = {
    "a socket": ("import socket; socket.socket(socket.AF_UNIX)", "PermissionError"),
    "a program": ("import os; os.execv('/bin/true', ['true'])", "PermissionError"),
    "a process": ("import os; result = os.fork() or os._exit(0)", "PermissionError"),
    "a signal to the worker": ("import os, signal; os.kill({worker}, 0)", "PermissionError"),
    "a limit for the worker": (
        "import resource; resource.prlimit({worker}, resource.RLIMIT_NOFILE, (9, 9))",
        "PermissionError",
    ),
    "text typed into the terminal": (
        "import fcntl, termios; fcntl.ioctl(2, termios.TIOCSTI, b'x')",
        "PermissionError: [Errno 1] Operation not permitted",
    ),
    "another namespace": (
        "import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.unshare(0x10000000);"
        "raise OSError(ctypes.get_errno(), 'unshare')",
        "PermissionError",
    ),
    "a file of the data directory": ("open('{data}/secret').read()", "FileNotFoundError"),
    "the name of a file of the data directory": ("import os; os.stat('{data}/secret')", "FileNotFoundError"),
    "a file of the machine": ("open('/etc/passwd').read()", "FileNotFoundError"),
    "the worker's memory": ("open('/proc/{worker}/mem', 'rb').read(1)", "FileNotFoundError"),
    "the worker's files": ("import os; os.listdir('/proc/{worker}/root')", "FileNotFoundError"),
    "a look around": ("import os; result = os.listdir('/')", "PermissionError"),
    "a new program in Python's folder": (
        "import sys; open(sys.prefix + '/escaped.py', 'w')",
        "OSError: [Errno 30] Read-only file system",
    ),
    "a file for others to find": ("open('/tmp/escaped', 'w')", "Error"),
}


@pytest.mark.usefixtures("strangers")
class TestEscapes:
    """Scripts that run inside. All walls stand on a kernel of 2024 or later where namespaces are allowed."""

    def test_there_is_no_way_out(self, sandbox, tmp_path):
        (tmp_path / "secret").write_text("secret")
        said = {}
        for escape, (script, wanted) in ESCAPES.items():
            found = told(sandbox, "run " + script.format(worker=os.getpid(), data=tmp_path))
            what = found.problems[0] if found.problems else str(found.limit)
            said[escape] = wanted in what or what
        assert said == dict.fromkeys(ESCAPES, True)

    def test_the_embedded_database_is_out_of_reach(self, sandbox, database, tmp_path):
        place = conninfo_to_dict(database.embedded.address())["host"]
        proof = tmp_path / "proof"
        (said,) = told(sandbox, "run " + COPY.format(socket=place, proof=proof)).problems
        assert said.startswith("OperationalError")
        assert not proof.exists()

    def test_it_is_an_ordinary_user_in_namespaces_of_its_own(self, sandbox):
        (said,) = told(sandbox, "run import os; result = (*os.getresuid(), *os.getgroups())").problems
        assert "did (0," not in said
        place = Path(f"/proc/{sandbox._child._process.pid}")
        assert "CapEff:\t0000000000000000" in (place / "status").read_text()
        ours = Path("/proc/self/ns")
        for name in ("net", "mnt", "ipc"):
            assert os.stat(place / "ns" / name).st_ino != os.stat(ours / name).st_ino

    def test_it_gives_way_to_those_who_fetch_from_its_start(self, sandbox, monkeypatch):
        """Nice alone counts inside a session only, where the kernel shares out time by session."""
        monkeypatch.setattr("tamias.crawl.sandbox.walls.NICE", 7)
        extracted(sandbox, TURTLE)
        child = sandbox._child._process.pid
        assert os.getsid(child) == child
        assert os.getpriority(os.PRIO_PROCESS, child) == 7
        if (session := Path(f"/proc/{child}/autogroup")).exists():
            assert session.read_text().split()[1:] == ["nice", "7"]

    def test_sandboxes_of_many_workers_get_no_more_than_those_of_few(self):
        cores = os.cpu_count()
        assert niceness(None) == niceness(1) == niceness(cores) == NICE
        assert niceness(2 * cores) == NICE + 6  # each a fourth as Linux weighs it, all of them a half
        assert niceness(1000 * cores) == NICEST

    def test_only_a_sandbox_that_sleeps_hangs(self, sandbox, monkeypatch):
        """On a busy machine it may get no processor for long."""
        extracted(sandbox, TURTLE)
        monkeypatch.setattr("tamias.crawl.sandbox.sandbox.SILENCE_PART", 0.5)
        assert "took 2 s of CPU time" in told(sandbox, "spin").limit
        assert "silent for 1.0 s" in told(sandbox, "sleep").limit

    def test_a_large_body_is_read_though_its_file_cannot_be_opened_by_name(self, sandbox, tmp_path):
        file = tmp_path / "body"
        file.write_bytes(TURTLE * 9000)
        file.chmod(0o600)
        fetched = capture(b"", "text/turtle")
        body = Body(size=file.stat().st_size, sha256="", path=str(file))
        kept = Kept()
        assert sandbox.extract(fetched, body, kept.document, kept.take).quads == 18_000


def test_a_context_that_is_not_at_hand_is_wanted(sandbox):
    data = b'{"@context": "http://c.test/context", "@id": "http://e.test/a", "name": "b"}'
    with pytest.raises(Wanting) as wanting:
        extracted(sandbox, data, "application/ld+json")
    assert wanting.value.addresses == ["http://c.test/context"]


def test_a_context_that_is_at_hand_is_used():
    contexts = ContextCache()
    contexts.put("http://c.test/context", b'{"@context": {"name": "http://e.test/name"}}')
    sandbox = Sandbox(Settings(), contexts)
    try:
        data = b'{"@context": "http://c.test/context", "@id": "http://e.test/a", "name": "b"}'
        assert extracted(sandbox, data, "application/ld+json")[0].quads == 1
    finally:
        sandbox.close()


@pytest.mark.parametrize(
    ("data", "dangerous"),
    [
        (b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a/>", True),
        (b"$HDT\x01", True),
        (b"PAR1", True),
        (TURTLE, False),
        (b"<!DOCTYPE html><html>", False),
    ],
)
def test_only_what_has_killed_parsers_goes_to_the_sandbox_when_it_is_small(data, dangerous):
    assert is_dangerous(Body(size=len(data), sha256="", data=data)) is dangerous


@pytest.fixture(params=["inside", "outside"])
def reader(request):
    """Reads in a sandbox and in this process, with the usual limits."""
    if request.param == "outside":
        yield Extractor(Settings())
        return
    inside = Sandbox(Settings(), ContextCache())
    yield inside
    inside.close()


class Segment(Kept):
    """Takes a document back as a segment does."""

    @contextmanager
    def document(self):
        before = self.quads.text
        try:
            yield self.quads
        except BaseException:
            self.quads.text = before
            raise


def test_a_bomb_is_known_by_its_first_part_and_nothing_of_it_is_kept(reader):
    lines = (b'<http://b.test/%d> <http://b.test/p> "%x" .\n' % (n, n**9) * 50 for n in range(9000))
    packed = gzip.compress(b"".join(lines)) * 30
    found, kept = extracted(reader, packed, "application/gzip", Segment())
    assert "open.max_ratio" in found.limit
    assert found.overblown
    assert (found.quads, found.extent, kept.quads.text) == (0, None, b"")


def test_too_many_statements_from_few_bytes_are_a_bomb(monkeypatch):
    monkeypatch.setattr("tamias.model.document.FREE_GROWTH", 1000)
    packed = gzip.compress(b"<http://b.test/s> <http://b.test/p> 1" + b", 1" * 20_000 + b" .\n")
    found, kept = extracted(Extractor(Settings()), packed, "application/gzip", Segment())
    assert "analyse.growth" in found.limit
    assert found.overblown
    assert (found.quads, found.extent, kept.quads.text) == (0, None, b"")


def packed_zip(*members):
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, data in enumerate(members):
            archive.writestr(f"{number}.ttl", data)
    return kept.getvalue()


ENTITY = b"<!DOCTYPE a [<!ENTITY x 'y'>]><a/>"
LONG = TURTLE * (300 * 1024 // len(TURTLE))


@pytest.mark.parametrize(
    ("data", "media_type", "at_once"),
    [
        (TURTLE, "text/turtle", True),
        (LONG, "text/turtle", False),
        (gzip.compress(TURTLE), "application/gzip", True),
        (bz2.compress(TURTLE), "application/x-bzip2", True),
        (lzma.compress(TURTLE), "application/x-xz", True),
        (zstandard.compress(TURTLE), "application/zstd", True),
        (packed_zip(TURTLE, TURTLE), "application/zip", True),
        (gzip.compress(LONG), "application/gzip", False),
        (gzip.compress(bytes(100 * MIB)), "application/gzip", False),
        (gzip.compress(gzip.compress(TURTLE)), "application/gzip", True),
        (gzip.compress(ENTITY), "application/gzip", False),
        (packed_zip(TURTLE, ENTITY), "application/zip", False),
        (packed_zip(*[TURTLE] * 21), "application/zip", False),
        (packed_zip(packed_zip(TURTLE)), "application/zip", True),  # not opened: its depth is told
        (gzip.compress(b"$HDT" + bytes(100)), "application/gzip", False),
        (gzip.compress(TURTLE)[:-9], "application/gzip", True),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,  # compressed bytes hold the time
)
def test_what_is_small_is_read_at_once_also_when_it_is_packed(data, media_type, at_once):
    fetched = capture(data, media_type)
    assert is_read_at_once(fetched, fetched.body) is at_once


@pytest.mark.parametrize(("data", "at_once"), [(TURTLE, True), (LONG, False)])
def test_what_only_its_name_tells_to_be_packed_is_weighed_too(data, at_once):
    fetched = msgspec.structs.replace(capture(brotli.compress(data, quality=1), "text/turtle"), hops=())
    named = msgspec.structs.replace(fetched, url="http://e.test/doc.ttl.br")
    assert is_read_at_once(named, named.body) is at_once
