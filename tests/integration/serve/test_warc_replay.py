"""What a crawl wrote to WARC files is listed and replayed: the captures and bytes that warcio reads there."""

import hashlib
import json
import os
import re
import subprocess
import time
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx
import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.database.connect import Database
from tamias.features.warc.folder import index_warcs
from tests.messages import unsaid
from tests.ports import free_port

PAGE = b"".join(
    b'<a href="/%s">x</a>' % name for name in (b"a.ttl", b"same.ttl", b"gone", b"broken", b"moved")
)
TURTLE = b"<http://e/s> <http://e/p> 'o' .\n" * 50
GONE, BROKEN = b"<p>It was here once.</p>", b"<p>Something broke.</p>"


@pytest.fixture
def site_with_errors(site, reply):
    html = {"Content-Type": "text/html"}
    site.pages |= {
        "/": reply(200, PAGE, **html),
        "/a.ttl": TURTLE,
        "/same.ttl": TURTLE,
        "/gone": reply(404, GONE, **html),
        "/broken": reply(501, BROKEN, **html),
        "/moved": reply(301, b"moved", Location="/a.ttl"),
        "/large": reply(404, bytes(3_000_000)),
        "/robots.txt": reply(404),
    }
    return site


@pytest.fixture
def crawled(tamias, site_with_errors):
    site = site_with_errors
    run = tamias.crawl("--sink", "warc", "--depth", "1", site.url("/"), site.url("/large"))
    assert run.returncode == 0, run.stderr
    return tamias


@pytest.fixture
def serving(crawled):
    with served(crawled) as client:
        yield client


@contextmanager
def served(tamias, *words):
    """A client of the service over an archive."""
    port = free_port()
    process = tamias.start("serve", "--no-crawl", "--port", str(port), *words)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if client.get("/healthz").status_code == 200:
                    break
            except httpx.HTTPError:
                time.sleep(0.1)
        yield client
    process.terminate()
    process.wait()


def recorded(tamias):
    """What another reader finds in the WARC files: URL, time, status, body."""
    return read_by_another(sorted((tamias.data / "warc").glob("*.warc.gz*")))


def read_by_another(paths):
    found, bodies = [], {}
    for path in paths:
        if path.name.endswith(".cdxj"):
            continue
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                if record.rec_type not in ("response", "revisit"):
                    continue
                url, date = (record.rec_headers.get_header(f"WARC-{name}") for name in ("Target-URI", "Date"))
                digest = record.rec_headers.get_header("WARC-Payload-Digest")
                body = record.content_stream().read()
                bodies.setdefault(digest, body) if record.rec_type == "response" else None
                found.append(
                    (url, re.sub(r"\D", "", date)[:14], record.http_headers.get_statuscode(), digest)
                )
    return [(url, stamp, status, bodies[digest]) for url, stamp, status, digest in found]


def test_every_record_is_listed_and_replayed_with_its_bytes_and_status(crawled, serving, site_with_errors):
    site, expected = site_with_errors, recorded(crawled)
    answer = serving.get(
        "/cdx", params={"url": site.url("/"), "matchType": "prefix", "output": "json"}
    ).json()
    listed = {(original, stamp, status, digest) for _, stamp, original, _, status, digest, _ in answer[1:]}
    assert listed == {
        (url, stamp, status, f"sha256:{hashlib.sha256(body).hexdigest()}")
        for url, stamp, status, body in expected
    }
    assert {status for _, _, status, _ in expected} == {"200", "301", "404", "501"}
    for url, stamp, status, body in expected:
        got = serving.get(f"/memento/{stamp}/{url}")
        while got.status_code == 302 and got.headers["location"].startswith(str(serving.base_url)):
            got = serving.get(got.headers["location"])  # to the millisecond
        assert (got.status_code, got.content) == (int(status), body), url
        assert got.headers["memento-datetime"]
    by_url = {url: body for url, _, _, body in expected}
    assert by_url[site.url("/gone")] == GONE
    assert by_url[site.url("/broken")] == BROKEN
    assert by_url[site.url("/large")] == bytes(3_000_000)
    assert not list((crawled.data / "spool").rglob("body-*"))


def test_a_redirect_leads_to_the_memento_of_its_target_and_a_timegate_finds_it(
    crawled, serving, site_with_errors
):
    site = site_with_errors
    moved = serving.get(f"/timegate/{site.url('/moved')}")
    assert moved.status_code == 302
    replayed = serving.get(moved.headers["location"])
    assert replayed.status_code == 301
    target = replayed.headers["location"]
    assert re.search(r"/memento/\d{14}/" + re.escape(site.url("/a.ttl")), target)
    assert serving.get(target, follow_redirects=True).content == TURTLE
    mapped = serving.get(f"/timemap/json/{site.url('/a.ttl')}").json()
    assert len(mapped["mementos"]["list"]) == 2  # by itself, and as the target of the redirect
    old = {"Accept-Datetime": format_datetime(datetime(2001, 1, 1, tzinfo=UTC), usegmt=True)}
    assert serving.get(f"/timegate/{site.url('/a.ttl')}", headers=old).status_code == 302
    part = serving.get(mapped["mementos"]["first"]["uri"], headers={"Range": "bytes=2-9"})
    assert (part.status_code, part.content) == (206, TURTLE[2:10])


def test_a_record_that_was_changed_on_disk_is_not_given_out(crawled, serving, site_with_errors):
    url = site_with_errors.url("/gone")
    line = serving.get("/cdx", params={"url": url, "output": "cdxj"}).text
    place = json.loads(line.split(" ", 2)[2])
    assert "/" not in place["filename"]
    path = crawled.data / "warc" / place["filename"]
    content = bytearray(path.read_bytes())
    middle = int(place["offset"]) + int(place["length"]) - 12
    content[middle] ^= 0xFF
    path.write_bytes(content)
    stamp = line.split(" ")[1]
    assert serving.get(f"/memento/{stamp}/{url}", follow_redirects=True).status_code >= 500


def test_files_of_an_earlier_version_are_indexed_when_the_service_starts(crawled, serving, site_with_errors):
    expected = recorded(crawled)
    serving.close()
    for process in crawled.started:
        process.terminate()
        process.wait()
    database = Database(crawled.data)
    session = database.session()
    session.execute(b"DELETE FROM warc_record")
    assert index_warcs(session, crawled.data / "warc") >= 1
    assert index_warcs(session, crawled.data / "warc") == 0
    rows = session.fetch_all(b"SELECT url, status FROM warc_record")
    session.close()
    database.close()
    assert sorted(rows) == sorted((url, int(status)) for url, _, status, _ in expected)


def test_check_compares_the_index_with_the_files(crawled, site_with_errors):
    """Rows that are moved, lengthened, of another body or URL, or of a file that is gone: each is named."""
    assert crawled.run("check").returncode == 0
    with closing(Database(crawled.data)) as database, closing(database.session()) as session:

        def change(statement, *values):
            session.transact(lambda cursor: cursor.execute(statement, values))

        def told():
            result = crawled.run("check", "--json")
            assert result.returncode == 1
            return [
                (each["kind"], each["name"], each["problem"]) for each in json.loads(result.stdout)["faults"]
            ]

        ((file, position),) = session.transact(
            lambda cursor: cursor.execute(
                "SELECT file, position FROM warc_record WHERE url = %s", (site_with_errors.url("/gone"),)
            ).fetchall()
        )
        here = "WHERE file = %s AND position = %s"
        wrongs = {
            "no record begins there": ("position = position + 1", "position = position - 1", 1),
            "the record there has another length": ("length = length + 1", "length = length - 1", 0),
            "the record there is of another URL": ("url = url || 'x'", "url = left(url, -1)", 0),
            "the body there has another digest": (
                "sha256 = set_byte(sha256, 0, 255 - get_byte(sha256, 0))",
                "sha256 = set_byte(sha256, 0, 255 - get_byte(sha256, 0))",
                0,
            ),
        }
        for problem, (wrong, right, moved) in wrongs.items():
            change(f"UPDATE warc_record SET {wrong} {here}", file, position)
            ((kind, name, said),) = told()
            assert (kind, name) == ("warc", f"warc/{file}")
            assert said.startswith(f"1 row of the index is wrong, the first at byte {position + moved} (")
            assert not unsaid(said, problem)
            change(f"UPDATE warc_record SET {right} {here}", file, position + moved)
        assert crawled.run("check").returncode == 0
        (crawled.data / "warc" / file).rename(crawled.data / "away")
        assert [
            (kind, name, "it is not there, and the index has" in said) for kind, name, said in told()
        ] == [("warc", f"warc/{file}", True)]


@pytest.fixture(params=["a small store", "MinIO"])
def stored(request, machine, tmp_path):
    """`stored(name)`: a machine whose archive is on the database and in the S3 store of all."""
    if request.param == "a small store":
        yield machine
        return
    if not os.environ.get("TAMIAS_NIGHTLY"):
        pytest.skip("MinIO is run by `make nightly`")
    from servers import minio
    from servers.packages import NotRun

    try:
        program = minio.build()
    except NotRun as reason:
        pytest.skip(f"MinIO: {reason}")
    (tmp_path / "objects" / "bucket").mkdir(parents=True)
    address = f"127.0.0.1:{free_port()}"
    keys = {"MINIO_ROOT_USER": minio.USER, "MINIO_ROOT_PASSWORD": minio.PASSWORD, "HOME": str(tmp_path)}
    command = [program, "server", tmp_path / "objects", "--address", address]
    process = subprocess.Popen(command, env=os.environ | keys, stdout=subprocess.DEVNULL)
    ours = {"AWS_ACCESS_KEY_ID": minio.USER, "AWS_SECRET_ACCESS_KEY": minio.PASSWORD}
    ours["AWS_ENDPOINT_URL"] = f"http://{address}"

    def make(name):
        made = machine(name)
        made.env |= ours
        return made

    try:
        wait_for(f"http://{address}/minio/health/live")
        yield make
    finally:
        process.terminate()
        process.wait()


def wait_for(url):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(url)


def test_a_machine_without_the_files_replays_them_from_the_store(stored, site_with_errors, tmp_path):
    site, words = site_with_errors, ("--store", "s3://bucket/archive")
    run = stored("one").crawl("--sink", "warc", "--depth", "1", *words, site.url("/"), site.url("/large"))
    assert run.returncode == 0, run.stderr
    copy = tmp_path / "all.warc.gz"
    done = stored("two").run("export", "--format", "warc", "-o", str(copy))
    assert done.returncode == 0, done.stderr
    expected = read_by_another([copy])
    assert {url for url, *_ in expected} >= {site.url(path) for path in ("/", "/a.ttl", "/gone", "/large")}
    third = stored("three")
    with served(third, *words) as client:
        for url, stamp, status, body in expected:
            got = client.get(f"/memento/{stamp}/{url}")
            while got.status_code == 302 and got.headers["location"].startswith(str(client.base_url)):
                got = client.get(got.headers["location"])
            assert (got.status_code, got.content) == (int(status), body), url
    assert not list((third.data / "warc").glob("*.warc.gz*"))
    checked = third.run("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
