"""`tamias import`: captures that other programs wrote become documents and versions, without a request."""

import asyncio
import gzip
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import zipfile
from contextlib import closing
from datetime import timedelta

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tamias import Archive
from tamias.database.connect import Database
from tamias.features.imports.importer import import_captures
from tamias.settings import Settings
from tests.messages import unsaid

# warcio leaves the files open that it writes bodies to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

URL = "http://data.example/a.ttl"
ONE, TWO, THREE = (f"<{URL}> <http://data.example/p> '{word}' .\n".encode() for word in ("1", "2", "3"))


class Written:
    """A WARC file, written by warcio."""

    def __init__(self, path, *, packed=True):
        self.path = path
        self.file = path.open("wb")
        self.writer = WARCWriter(self.file, gzip=packed)
        self.offsets = []

    def info(self, **words):
        self.writer.write_record(self.writer.create_warcinfo_record(self.path.name, words))
        return self

    def add(self, url, date, body, media_type="text/turtle", status="200 OK", kind="response", **headers):
        told = [
            ("Content-Type", media_type),
            *((name.replace("_", "-"), value) for name, value in headers.items()),
        ]
        self.offsets.append(self.file.tell())
        record = self.writer.create_warc_record(
            url,
            kind,
            payload=io.BytesIO(body),
            http_headers=StatusAndHeaders(status, told, protocol="HTTP/1.1") if kind == "response" else None,
            warc_content_type=media_type if kind == "resource" else "",
            warc_headers_dict={"WARC-Date": date},
        )
        self.writer.write_record(record)
        return record

    def revisit(self, url, date, original):
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/turtle")], protocol="HTTP/1.1")
        record = self.writer.create_revisit_record(
            url,
            original.rec_headers.get_header("WARC-Payload-Digest"),
            original.rec_headers.get_header("WARC-Target-URI"),
            original.rec_headers.get_header("WARC-Date"),
            http_headers=head,
            warc_headers_dict={"WARC-Date": date},
        )
        self.writer.write_record(record)

    def close(self):
        self.file.close()
        return self.path


def result(tamias, *words):
    run = tamias.run("import", *words, "--json")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def told(found, *names):
    return {name: found[name] for name in names or ("captures", "known", "documents", "versions", "problems")}


def nquads(tamias):
    return set(tamias.run("export", "--format", "nquads").stdout.splitlines())


def history(tamias, url=URL):
    """Number, day and body of every version."""
    with Archive(tamias.data) as archive:
        return [
            (each.number, each.captured_at.isoformat()[:10], archive.get(url, version=each.number).bytes())
            for each in archive.versions(url)
        ]


def line(graph, word):
    return f'<{URL}> <http://data.example/p> "{word}" <{graph}> .'


def test_the_newest_capture_is_the_document_and_a_second_import_changes_nothing(tamias, tmp_path):
    file = Written(tmp_path / "a.warc.gz").info(software="other/1.0")
    file.add(URL, "2021-01-01T00:00:00Z", TWO)
    file.add(URL, "2020-01-01T00:00:00Z", ONE)
    file.add("http://data.example/gone", "2021-01-01T00:00:00Z", b"no", "text/html", "404 Not Found")
    file.add(
        "http://data.example/moved", "2021-01-01T00:00:00Z", b"", "text/html", "301 Moved", Location="/a.ttl"
    )
    path = file.close()
    first = result(tamias, path)
    assert told(first) == {"captures": 4, "known": 0, "documents": 1, "versions": 0, "problems": 0}
    assert first["outcomes"] == {"ok": 3, "gone": 1}
    assert nquads(tamias) == {line(URL, "2")}
    again = result(tamias, path)
    assert told(again) == {"captures": 0, "known": 4, "documents": 0, "versions": 0, "problems": 0}
    assert nquads(tamias) == {line(URL, "2")}


def test_provenance_says_when_by_whom_and_from_which_file(tamias, tmp_path):
    file = Written(tmp_path / "a.warc.gz").info(software="other/1.0")
    record = file.add(URL, "2020-02-03T04:05:06Z", ONE)
    file.close()
    result(tamias, file.path)
    ((attempt,),) = tamias.attempts().values()
    record_id = record.rec_headers.get_header("WARC-Record-ID")
    assert not unsaid(attempt["reason"], "200", "OK", "a.warc.gz", record_id)
    described = tamias.run("export", "--graph", "metadata").stdout
    assert '"2020-02-03T04:05:06' in described
    assert '"other/1.0"' in described


CAPTURES = [
    ("2019-01-01", ONE),
    ("2020-01-01", TWO),
    ("2021-01-01", TWO),
    ("2022-01-01", ONE),
    ("2023-01-01", THREE),
]


def test_the_order_of_imports_makes_no_difference_to_the_versions(fresh, tmp_path):
    """Every order of the same five captures gives the same history, and the same document."""
    files = []
    for place, (date, body) in enumerate(CAPTURES):
        files.append(Written(tmp_path / f"{place}.warc.gz"))
        files[-1].add(URL, f"{date}T00:00:00Z", body)
        files[-1].close()
    expected = [
        (1, "2019-01-01", ONE),
        (2, "2020-01-01", TWO),
        (3, "2022-01-01", ONE),
        (4, "2023-01-01", THREE),
    ]
    for order in [(4, 3, 2, 1, 0), (3, 1, 4, 0, 2), (2, 0, 1, 4, 3)]:
        tamias = fresh(f"data-{''.join(map(str, order))}")
        with closing(Database(tamias.data)) as database:
            for place in order:
                importing = import_captures(
                    database, tamias.data, Settings(), [files[place].path], archive=True
                )
                asyncio.run(importing)
            assert history(tamias) == expected
            with closing(database.session()) as session:
                told = session.fetch_all(b"SELECT number FROM event_news UNION SELECT number FROM event")
                assert sorted(number for (number,) in told if number) == [1, 2, 3, 4]
        assert nquads(tamias) == {line(URL, "3")}
    assert tamias.run("check").returncode == 0


def test_an_old_body_of_a_watched_url_does_not_become_current(tamias, site, tmp_path):
    """Also where it came between a version of ours and a visit that found that version unchanged."""
    url = site.url("/a.ttl")
    site.pages["/a.ttl"] = ONE
    assert tamias.run("add", url).returncode == 0
    for _ in range(2):
        assert tamias.run("crawl", "--recrawl", url, "--allow-private", "--delay", "0").returncode == 0
        time.sleep(2)
    asked = site.asked("/a.ttl")
    between = _middle(tamias, url)
    file = Written(tmp_path / "a.warc.gz")
    file.add(url, "2020-01-01T00:00:00Z", THREE)
    file.add(url, between, TWO)
    found = result(tamias, file.close())
    assert found["versions"] == 3
    assert [(number, body) for number, _, body in history(tamias, url)] == [
        (1, THREE),
        (2, ONE),
        (3, TWO),
        (4, ONE),
    ]
    assert tamias.run("get", url).stdout == ONE.decode()
    assert site.asked("/a.ttl") == asked
    assert result(tamias, file.path)["versions"] == 0
    assert tamias.run("check").returncode == 0


def _middle(tamias, url):
    """A time between the first and the second visit."""
    with Archive(tamias.data) as archive:
        first = archive.versions(url)[0].captured_at
    return f"{first + timedelta(seconds=1):%Y-%m-%dT%H:%M:%SZ}"


def test_coded_bodies_are_decoded_and_those_that_only_say_so_are_taken_as_they_are(tamias, tmp_path):
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (ONE[:7], ONE[7:])) + b"0\r\n\r\n"
    urls = [f"http://data.example/{number}" for number in range(5)]
    file = Written(tmp_path / "a.warc.gz")
    file.add(urls[0], "2020-01-01T00:00:00Z", gzip.compress(ONE), Content_Encoding="gzip")
    file.add(urls[1], "2020-01-01T00:00:00Z", ONE, Content_Encoding="gzip")
    file.add(urls[2], "2020-01-01T00:00:00Z", chunked, Transfer_Encoding="chunked")
    file.add(urls[3], "2020-01-01T00:00:00Z", ONE, Transfer_Encoding="chunked", Content_Encoding="br")
    file.add(urls[4], "2020-01-01T00:00:00Z", ONE, kind="resource")
    assert told(result(tamias, file.close()), "captures", "problems") == {"captures": 5, "problems": 0}
    assert nquads(tamias) == {line(url, "1") for url in urls}


def test_a_revisit_has_the_body_of_the_record_that_it_refers_to(tamias, tmp_path):
    other = "http://data.example/b.ttl"
    folder = tmp_path / "folder"
    folder.mkdir()
    first = Written(folder / "1.warc.gz")
    original = first.add(URL, "2020-01-01T00:00:00Z", ONE)
    first.close()
    second = Written(folder / "2.warc.gz")
    second.revisit(other, "2021-01-01T00:00:00Z", original)
    second.close()
    found = result(tamias, folder, "--archive")
    assert told(found, "captures", "versions", "problems") == {"captures": 2, "versions": 2, "problems": 0}
    assert history(tamias, other) == [(1, "2021-01-01", ONE)]
    assert nquads(tamias) == {line(URL, "1"), line(other, "1")}


def test_what_cannot_be_read_is_reported_and_the_rest_is_imported(tamias, tmp_path):
    """A cut member, wrong lengths, a wrong digest, a bomb, dates that are none, a revisit of nothing."""
    bodies = {f"http://data.example/{number}": ONE for number in range(12)}
    file = Written(tmp_path / "a.warc.gz")
    for url, body in bodies.items():
        file.add(url, "2020-01-01T00:00:00Z", body)
    file.close()
    members = [bytes(each) for each in itertools.starmap(
        lambda start, end: file.path.read_bytes()[start:end],
        itertools.pairwise([*file.offsets, file.path.stat().st_size]),
    )]  # fmt: skip

    def changed(member, before, after):
        plain = gzip.decompress(member)
        assert before in plain
        return gzip.compress(plain.replace(before, after, 1))

    length = gzip.decompress(members[2]).partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
    members[1] = members[1][: len(members[1]) // 2]
    members[2] = changed(members[2], b"Content-Length: " + length, b"Content-Length: 999999")
    members[3] = changed(members[3], b"Content-Length: " + length, b"Content-Length: 100")
    members[4] = changed(members[4], b"'1'", b"'7'")
    members[5] = gzip.compress(
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://data.example/5\r\n"
        b"WARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http\r\n"
        b"Content-Length: 300000000\r\n\r\n"
        b"HTTP/1.1 200 OK\r\n\r\n" + bytes(300_000_000)
    )
    members[6] = changed(members[6], b"2020-01-01T00:00:00Z", b"2999-01-01T00:00:00Z")
    members[7] = changed(members[7], b"2020-01-01T00:00:00Z", b"last Tuesday at noon")
    members[8] = members[8][:10] + bytes(20) + members[8][30:]
    members[9] = b"garbage between the members" + members[9]
    members[10] = changed(members[10], b"WARC-Type: response", b"WARC-Type: revisit")
    members[10] = changed(members[10], b"WARC-Payload-Digest: sha1:", b"WARC-Payload-Digest: sha1:A")
    path = tmp_path / "hostile.warc.gz"
    path.write_bytes(b"".join(members) + members[0][:40])
    found = result(tamias, path)
    assert found["captures"] >= 5
    got = nquads(tamias)
    assert {line(f"http://data.example/{number}", "1") for number in (0, 9, 11)} <= got
    assert not {each for each in got if "/3>" in each or "/6>" in each or "/7>" in each}
    words = " ".join(each["problem"] for each in found["told"])
    for word in (
        "in the future",
        "is no time",
        "another digest",
        "ends before its length",
        "refers to a record",
    ):
        assert word in words, (word, found["told"])
    assert result(tamias, path)["captures"] == 0


def record(body, *fields, head=b"", date=b"2024-01-01T00:00:00Z", length=None):
    """A response as another program would write it."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\n" + head + b"\r\n" + body
    told = [
        b"WARC/1.0", b"WARC-Type: response", b"WARC-Target-URI: " + URL.encode(), b"WARC-Date: " + date,
        b"Content-Type: application/http", *fields, b"Content-Length: %d" % (length or len(block)),
    ]  # fmt: skip
    return b"\r\n".join(told) + b"\r\n\r\n" + block + b"\r\n\r\n"


DAMAGED = {
    "payload digest": record(TWO, b"WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
    "block digest": record(TWO, b"WARC-Block-Digest: sha256:" + b"0" * 64),
    "length of the body": record(TWO, head=b"Content-Length: 5000\r\n"),
    "truncated": record(TWO, b"WARC-Truncated: length"),
    "cut": record(TWO, length=5000),
    "revisited": record(
        TWO,
        b"WARC-Record-ID: <urn:x:1>",
        b"WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        date=b"2023-01-01T00:00:00Z",
    )
    + record(b"", b"WARC-Refers-To: <urn:x:1>").replace(b"WARC-Type: response", b"WARC-Type: revisit"),
}


@pytest.mark.parametrize("intact", [True, False], ids=["beside an intact one", "alone"])
@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_body_that_is_known_to_be_damaged_is_suspicious_and_never_current(
    tamias, tmp_path, damaged, intact
):
    good = record(ONE, date=b"2022-01-01T00:00:00Z") if intact else b""
    (tmp_path / "a.warc").write_bytes(good + DAMAGED[damaged])
    found = result(tamias, str(tmp_path / "a.warc"), "--archive")
    assert found["versions"] == intact
    assert nquads(tamias) == ({line(URL, "1")} if intact else set())
    assert history(tamias) == ([(1, "2022-01-01", ONE)] if intact else [])
    suspicious = json.loads(tamias.run("versions", "--suspicious", URL, "--json").stdout)
    assert suspicious
    assert all(each["suspicious"] for each in suspicious), suspicious
    assert tamias.run("check").returncode == 0


def test_a_body_with_the_right_digests_and_length_is_a_version(tamias, tmp_path):
    digest = hashlib.sha256(ONE).hexdigest().encode()
    plain = record(ONE, b"WARC-Payload-Digest: sha256:" + digest, head=b"Content-Length: %d\r\n" % len(ONE))
    block = plain.partition(b"\r\n\r\n")[2][:-4]
    other = b"WARC-Block-Digest: sha256:" + hashlib.sha256(block).hexdigest().encode()
    again = record(ONE, other, head=b"Content-Length: %d\r\n" % len(ONE), date=b"2025-01-01T00:00:00Z")
    (tmp_path / "a.warc").write_bytes(plain + again)
    assert result(tamias, str(tmp_path / "a.warc"), "--archive")["problems"] == 0
    assert history(tamias) == [(1, "2024-01-01", ONE)]


def test_files_that_are_not_packed_and_files_in_one_member_are_read(tamias, tmp_path):
    plain = Written(tmp_path / "plain.warc", packed=False)
    plain.add(URL, "2020-01-01T00:00:00Z", ONE)
    plain.add("http://data.example/b", "2020-01-01T00:00:00Z", TWO)
    plain.close()
    (tmp_path / "whole.warc.gz").write_bytes(
        gzip.compress(plain.path.read_bytes().replace(b"2020-", b"2021-"))
    )
    found = result(tamias, plain.path, tmp_path / "whole.warc.gz")
    assert told(found, "captures", "problems") == {"captures": 4, "problems": 0}
    assert nquads(tamias) == {line(URL, "1"), line("http://data.example/b", "2")}


def test_a_wacz_and_the_records_that_a_cdx_names_are_read(fresh, tmp_path):
    file = Written(tmp_path / "a.warc.gz")
    file.add(URL, "2020-01-01T00:00:00Z", ONE)
    file.add("http://data.example/b", "2020-01-01T00:00:00Z", TWO)
    file.close()
    with zipfile.ZipFile(tmp_path / "a.wacz", "w") as package:
        package.write(file.path, "archive/a.warc.gz")
    packed = fresh(tmp_path / "packed")
    assert result(packed, tmp_path / "a.wacz")["captures"] == 2
    assert nquads(packed) == {line(URL, "1"), line("http://data.example/b", "2")}
    row = {"url": "http://data.example/b", "filename": "a.warc.gz", "offset": str(file.offsets[1])}
    lost = {**row, "filename": "../../etc/passwd"}
    wrong = [{**row, "offset": offset} for offset in (-1, 1 << 80)]
    index = "".join(f"example,data)/b 20200101000000 {json.dumps(each)}\n" for each in (row, lost, *wrong))
    (tmp_path / "a.cdxj").write_text(index)
    named = fresh(tmp_path / "named")
    found = result(named, tmp_path / "a.cdxj")
    assert told(found, "captures", "problems") == {"captures": 1, "problems": 2}
    assert nquads(named) == {line("http://data.example/b", "2")}


def test_an_import_that_was_killed_goes_on_when_it_is_repeated(fresh, tmp_path):
    file = Written(tmp_path / "a.warc.gz")
    for number in range(1500):
        file.add(f"http://data.example/{number}", "2020-01-01T00:00:00Z", ONE + b"# %d" % number)
    path = file.close()
    killed = fresh(tmp_path / "killed")
    killed.env["TAMIAS_FAULT"] = "captures-imported:2"
    assert killed.run("import", path, "--archive").returncode == -signal.SIGKILL
    del killed.env["TAMIAS_FAULT"]
    found = result(killed, path, "--archive")
    assert (found["captures"], found["known"], found["versions"]) == (1000, 500, 1000)
    assert nquads(killed) == {line(f"http://data.example/{number}", "1") for number in range(1500)}
    assert killed.run("check").returncode == 0


@pytest.mark.skipif(shutil.which("wget") is None, reason="needs wget (Debian: wget)")
def test_a_site_that_wget_captured_is_imported_as_wget_saved_it(tamias, site, reply, tmp_path):
    site.pages["/index.html"] = reply(
        200, b'<a href="a.ttl">a</a> <a href="b.ttl">b</a>', Content_Type="text/html"
    )
    site.pages["/a.ttl"], site.pages["/b.ttl"] = ONE, TWO
    site.pages["/robots.txt"] = reply(404)
    words = ["wget", "-q", "-r", "--warc-file", "captured", "--warc-cdx", site.url("/index.html")]
    assert subprocess.run(words, cwd=tmp_path, check=False).returncode in (0, 8)
    asked = len(site.log)
    found = result(tamias, tmp_path / "captured.warc.gz", "--archive")
    assert told(found, "problems") == {"problems": 0}
    with (tmp_path / "captured.warc.gz").open("rb") as file:
        responses = [each for each in ArchiveIterator(file) if each.rec_type == "response"]
    assert found["captures"] == len(responses)
    assert nquads(tamias) == {line(site.url("/a.ttl"), "1"), line(site.url("/b.ttl"), "2")}
    for path, body in (("/a.ttl", ONE), ("/b.ttl", TWO)):
        saved = next(tmp_path.glob(f"127.*{path}"))
        assert history(tamias, site.url(path))[-1][2] == body == saved.read_bytes()
    assert len(site.log) == asked
    assert result(tamias, tmp_path / "captured.cdx", "--archive")["captures"] == 0


def test_a_file_that_is_nothing_to_import_is_an_error(tamias, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    assert tamias.run("import", tmp_path / "a.txt").returncode == 2
    assert tamias.run("import", tmp_path / "none.warc").returncode == 2
    (tmp_path / "empty.warc.gz").write_bytes(os.urandom(1000))
    run = tamias.run("import", tmp_path / "empty.warc.gz")
    assert (run.returncode, not unsaid(run.stderr)) == (1, True)
