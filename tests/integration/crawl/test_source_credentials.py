"""Credentials for sources reach their source only: every place that could hold them is searched."""

import base64
import http.server
import io
import json
import socket
import subprocess
import threading
import urllib.error
import urllib.request
import zipfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest
import zstandard
from psycopg import sql

from tamias.database.connect import Database

pytestmark = pytest.mark.processes

KEY, PASSWORD, COOKIE = "key-öf-the-portal/77", "pass+word 88", "crumbs-99"
USER = "mole"
SECRETS = (KEY, PASSWORD, COOKIE)
MARK = "a-mark-in-every-document"
EXPORTS = ("nquads", "trig", "turtle", "jsonld", "jelly", "warc", "wacz", "bagit", "ro-crate", "parquet")
EXPORTS += ("urlfrontier", "hdt")


def forms(secret):
    """How a secret may stand somewhere."""
    pair = f"{USER}:{secret}".encode()
    texts = {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]}
    raw = {text.encode(code) for text in texts for code in ("utf-8", "latin-1")}
    return raw | {base64.b64encode(each) for each in (*raw, pair)} | {each.hex().encode() for each in raw}


FORMS = set().union(*map(forms, SECRETS))


def opened(content):
    """A file's bytes, and what is compressed anywhere in it."""
    yield content
    for magic, unpack in ((b"\x1f\x8b\x08", _gunzip), (b"\x28\xb5\x2f\xfd", _unzstd)):
        at = content.find(magic)
        while at >= 0:
            with suppress(zlib.error, zstandard.ZstdError, EOFError):
                yield unpack(content[at:])
            at = content.find(magic, at + 1)
    if content[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for name in packed.namelist():
                yield from opened(packed.read(name))


def _gunzip(content):
    return zlib.decompressobj(wbits=31).decompress(content, 64 << 20)


def _unzstd(content):
    return zstandard.ZstdDecompressor().decompressobj().decompress(content)


def holds(contents, wanted=None):
    return any(form in content for content in contents for form in (wanted or FORMS))


class Source:
    """A site that wants a header, a password and a cookie, each below a path of its own."""

    def __init__(self, site, strangers, reply):
        self.site, self.strangers = site, strangers
        self.heard = []
        elsewhere = [each.url("/in/linked") for each in strangers]
        links = [*elsewhere, site.url("/key/away"), site.url("/key/echo"), site.url("/key/gone")]
        turtle = "".join(f'<> <#to> <{link}> ; <#note> "{MARK}" .\n' for link in links).encode()
        wanted = {"X-Api-Key": KEY}
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        context = strangers[0].url("/in/context")
        document = json.dumps({"@context": context, "@id": "", "name": MARK}).encode()
        pages = {
            "/key/data": (wanted, reply(200, turtle, Content_Type="text/turtle", Set_Cookie=f"s={COOKIE}")),
            "/key/away": (wanted, reply(302, Location=strangers[0].url("/in/away"))),
            "/key/echo": (wanted, reply(302, Location=f"/x?key={quote(KEY)}")),
            "/key/gone": (wanted, reply(500, f"no {MARK}".encode())),
            "/basic/data": (
                {"Authorization": f"Basic {pair}"},
                reply(200, document, Content_Type="application/ld+json"),
            ),
            "/cookie/data": ({"Cookie": f"sid={COOKIE}"}, reply(200, turtle, Content_Type="text/turtle")),
        }
        for path, (headers, page) in pages.items():
            site.pages[path] = self._only_with(headers, page, reply(401))
        site.pages["/robots.txt"] = reply(302, Location=strangers[1].url("/in/robots.txt"))
        for each in strangers:
            each.pages |= {
                path: self._hearing(reply(200, b"", Content_Type="text/turtle"))
                for path in ("/in/linked", "/in/away", "/robots.txt")
            }
            each.pages["/in/robots.txt"] = self._hearing(reply(200, b"User-agent: *\nAllow: /"))
            each.pages["/in/context"] = self._hearing(
                reply(200, b'{"@context": {"name": "http://schema.example/name"}}')
            )

    def seeds(self):
        return [self.site.url(f"/{path}/data") for path in ("key", "basic", "cookie")]

    def _only_with(self, headers, page, refusal):
        def answer(handler):
            given = {name: handler.headers.get(name) for name in headers}
            (page if given == headers else refusal)(handler)

        return answer

    def _hearing(self, page):
        def answer(handler):
            self.heard.append((handler.path, bytes(handler.headers)))
            page(handler)

        return answer


@pytest.fixture
def source(site_at, reply):
    """With strangers on another host, and on another port of the same one."""
    site = site_at("127.0.0.2")
    return Source(site, [site_at("127.0.0.3"), site_at("127.0.0.2")], reply)


@pytest.fixture
def keyring(tamias, source, tmp_path):
    file = tmp_path / "keys" / "credentials.toml"
    file.parent.mkdir()
    file.write_text(
        f'[[credentials]]\nurl = "{source.site.url("/key/")}"\nheaders = {{ X-Api-Key = "{KEY}" }}\n'
        f'[[credentials]]\nurl = "{source.site.url("/cookie")}"\ncookies = {{ sid = "{COOKIE}" }}\n'
        f'[[credentials]]\nurl = "{source.site.url("/basic/")}"\nuser = "{USER}"\n'
        'password = { env = "TAMIAS_CREDENTIAL_BASIC" }\n'
    )
    file.chmod(0o600)
    tamias.env |= {"TAMIAS_FETCH__CREDENTIALS": str(file), "TAMIAS_CREDENTIAL_BASIC": PASSWORD}
    return file


class Receiver(http.server.BaseHTTPRequestHandler):
    """A SPARQL store that remembers what it is sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.server.received.append(bytes(self.headers) + self.rfile.read(length))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_PUT(self):
        self.do_POST()

    def do_DELETE(self):
        self.do_POST()

    def do_GET(self):
        self.do_POST()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received = []
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def crawled(tamias, source, keyring, receiver, tmp_path):
    """A crawl with all sinks at the most talkative, and the process list meanwhile."""
    processes, done = {}, threading.Event()
    watching = threading.Thread(target=_watch, args=(tamias, processes, done))
    watching.start()
    try:
        assert tamias.run("add", source.seeds()[0]).returncode == 0
        sinks = ["nquads", "warc", "archive", f"turtle-files:{tmp_path}/turtle", f"hdt-files:{tmp_path}/hdt"]
        sinks.append(f"sparql:http://127.0.0.1:{receiver.server_port}/sparql")
        words = [word for sink in sinks for word in ("--sink", sink)]
        words += ["--log", "json", "-v", "-v"]
        tamias.said = tamias.crawl(*words, *source.seeds())
    finally:
        done.set()
        watching.join()
    tamias.processes = processes
    return tamias


def _watch(tamias, processes, done):
    while not done.wait(0.1):
        for pid in tamias.in_use():
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                processes[pid, command] = Path(f"/proc/{pid}/environ").read_bytes()
        listed = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True).stdout
        processes[0, listed] = b""


def test_credentials_reach_their_source_and_no_other_place(crawled, source, receiver, tmp_path):
    """One crawl for all places, because each place is a part of the same claim."""
    attempts = crawled.attempts()
    outcomes = {url: attempts[url][-1]["outcome"] for url in source.seeds()}
    assert outcomes == dict.fromkeys(source.seeds(), "ok"), crawled.said.stderr
    assert "contains a credential" in attempts[source.site.url("/key/echo")][-1]["reason"]
    assert {"/in/linked", "/in/away", "/in/robots.txt", "/in/context"} <= {path for path, _ in source.heard}

    places = {
        "strangers": [head for _, head in source.heard],
        "its words": [crawled.said.stdout.encode(), crawled.said.stderr.encode()],
        "the SPARQL store": receiver.received,
        "command lines": [command for _, command in crawled.processes],
    }
    places |= processes_without_need(crawled.processes) | exported(crawled, tmp_path)
    places |= answered(crawled, source)
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:
        places |= session.transact(_tables)
    for folder in (crawled.data, tmp_path / "turtle", tmp_path / "hdt"):
        for path in folder.rglob("*"):
            if path.is_file():
                places[str(path)] = list(opened(path.read_bytes()))

    marked = {place for place, contents in places.items() if holds(contents, {MARK.encode()})}
    seen = ("/rdf/", "/warc/", "/blobs/", "/turtle/", "the SPARQL store", "/get/file/", "export warc")
    for part in (*seen, "export parquet", "export wacz"):
        assert any(part in place for place in marked), f"the search is blind in {part}"
    assert [place for place, contents in places.items() if holds(contents)] == []


def _tables(cursor):
    named = cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    ).fetchall()
    query = sql.SQL("SELECT each::text FROM {} AS each")
    return {
        f"table {name}": [row[0].encode() for row in cursor.execute(query.format(sql.Identifier(name)))]
        for (name,) in named
    }


def processes_without_need(processes):
    """The environments of all but the crawler, its workers and the other commands of the test."""
    ours = (b"\0-m\0tamias\0", b"\0tamias.crawl.worker\0", b"tamias-worker\0")
    assert any(PASSWORD.encode() in environment for environment in processes.values()), "nobody has it"
    others = {
        f"environment of {command!r}": [environment]
        for (_, command), environment in processes.items()
        if not any(word in command for word in ours)
    }
    assert any("postgres" in each for each in others), "the database was not seen"
    return others


def exported(tamias, tmp_path):
    """What each format of export holds."""
    places = {}
    for form in EXPORTS:
        out = tmp_path / f"out-{form}"
        done = tamias.run("export", "--format", form, "-o", str(out))
        assert done.returncode == 0, (form, done.stderr)
        files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
        contents = [each for path in files for each in opened(path.read_bytes())]
        if form == "parquet":
            contents += [rows_of_parquet(path) for path in files]
        places[f"export {form}"] = [*contents, done.stderr.encode()]
    return places


def rows_of_parquet(path):
    rows = duckdb.execute("SELECT COLUMNS(*)::VARCHAR FROM read_parquet(?)", [str(path)]).fetchall()
    return str(rows).encode()


def answered(tamias, source):
    """What the service answers, and says."""
    with socket.create_server(("127.0.0.1", 0)) as trial:
        port = trial.getsockname()[1]
    serving = tamias.start("serve", "--port", str(port), "--no-crawl", "-v", "-v")
    url = quote(source.seeds()[0], safe="")
    paths = ["/", "/metrics", "/api/v1/stats", "/api/v1/resources", "/api/v1/versions", "/api/v1/hosts"]
    paths += ["/api/v1/changes", "/api/v1/changes.atom", "/frontier", "/documents", "/healthz", "/ldes"]
    paths += [f"/api/v1/get/dataset/{url}", f"/api/v1/get/file/{url}", f"/cdx?url={url}", "/openapi.json"]
    paths += [f"/timemap/link/{source.seeds()[0]}", "/catalog.ttl"]
    tamias.wait_until(lambda: get(port, "/healthz") is not None)
    places = {f"answer to {path}": get(port, path) for path in paths}
    serving.terminate()
    places["words of the service"] = [each.encode() for each in serving.communicate(timeout=30)]
    return places


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            return [bytes(response.headers), response.read()]
    except urllib.error.HTTPError as error:
        with error:
            return [bytes(error.headers), error.read()]
    except OSError:
        return None


def test_the_verb_read_uses_them_too(tamias, source, keyring):
    tamias.env["TAMIAS_PERMIT__ALLOW_PRIVATE"] = "true"
    done = tamias.run("read", source.seeds()[0], "-v", "-v")
    assert MARK in done.stdout, done.stderr
    assert not holds([done.stdout.encode(), done.stderr.encode()])


def test_a_file_for_others_to_read_stops_the_crawl(tamias, source, keyring):
    keyring.chmod(0o644)
    done = tamias.crawl(*source.seeds())
    assert done.returncode == 4, done.stderr
    assert f"chmod 600 {keyring}" in done.stderr
    assert source.site.log == []


def test_the_settings_name_only_the_file(tamias, keyring):
    done = tamias.run("config show", "--json")
    assert json.loads(done.stdout)["fetch.credentials"]["value"] == [str(keyring)]
    assert not holds([done.stdout.encode()])


def test_tables_in_the_settings_file_are_found(tamias, source, keyring):
    settings = tamias.data.parent / "tamias.toml"
    settings.write_text(f"[fetch]\ndelay = 0.0\n{keyring.read_text()}")
    settings.chmod(0o600)
    del tamias.env["TAMIAS_FETCH__CREDENTIALS"]
    assert tamias.crawl(*source.seeds(), "--depth", "0").returncode == 0
    assert {each["outcome"] for each in tamias.attempts()[source.seeds()[0]]} == {"ok"}
