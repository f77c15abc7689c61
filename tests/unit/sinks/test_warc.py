import gzip
import hashlib
import io
import os
import random
import subprocess
import sys

import pytest
from warcio.archiveiterator import ArchiveIterator

from tamias.features.warc.cdxj import entries, parsed, surt
from tamias.features.warc.warc_files import export_warc, mend_warcs, records, warc_parts
from tamias.features.warc.warc_writer import WarcWriter
from tamias.model.capture import Body, Capture, Hop, Outcome, Request
from tamias.model.errors import DiskFull, TamiasError

URL = "http://example.org/a/b?c=d"
NOW = 1_700_000_000_123


def body(data):
    return Body(size=len(data), sha256=hashlib.sha256(data).hexdigest(), data=data)


def hop(url=URL, status=200, headers=(("Content-Type", "text/turtle"),), **more):
    return Hop(url=url, status=status, headers=tuple(headers), address="192.0.2.7", **more)


def capture(*hops, data=b"<a> <b> <c> .", outcome=Outcome.OK, started_at=NOW):
    return Capture(
        url=hops[0].url if hops else URL,
        started_at=started_at,
        ended_at=started_at + 42,
        outcome=outcome,
        reason="",
        hops=hops,
        body=None if data is None else body(data),
    )


@pytest.fixture
def writer(tmp_path):
    with WarcWriter(tmp_path / "warc", "test-7", agent="Tamias/0 (+x)", accept="text/turtle") as writer:
        yield writer


@pytest.fixture
def folder(writer, tmp_path):
    return tmp_path / "warc"


def warc_records(folder):
    """All records as warcio reads them, with their digests checked."""
    found = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                content = record.content_stream().read()
                found.append((record.rec_type, record.rec_headers, record.http_headers, content))
    return found


def of_kind(folder, kind):
    return [record for record in warc_records(folder) if record[0] == kind]


def checked(folder):
    """Whether `warcio check` is content."""
    paths = [str(path) for path in folder.glob("*.warc.gz")]
    assert paths
    code = subprocess.run(
        [sys.executable, "-c", "from warcio.cli import main; main()", "check", *paths], check=False
    ).returncode
    return code == 0


class TestRecords:
    def test_a_capture_is_an_answer_a_request_and_metadata_behind_the_files_own_record(self, writer, folder):
        writer.write(capture(hop()))
        writer.close()
        assert [record[0] for record in warc_records(folder)] == [
            "warcinfo",
            "resource",
            "response",
            "request",
            "metadata",
        ]

    def test_a_body_is_written_again_after_something_was_forgotten(self, writer, folder):
        writer.earlier[URL, hashlib.sha256(b"body").hexdigest()] = 0
        for _ in range(2):
            writer.write(capture(hop(), data=b"body"))
            writer.forget_bodies()
        writer.write(capture(hop(), data=b"body"))
        writer.close()
        kinds = [record[0] for record in warc_records(folder)]
        assert [kind for kind in kinds if kind in ("response", "revisit")] == [
            "revisit",
            "response",
            "response",
        ]

    def test_warcio_check_passes(self, writer, folder):
        writer.write(
            capture(hop(status=301, headers=[("Content-Length", "7")], location=URL + "x"), hop(URL + "x"))
        )
        writer.write(capture(hop(), data=b""))
        writer.write(capture(hop(status=404), data=None, outcome=Outcome.GONE))
        writer.write(capture(hop(status=304), data=None, outcome=Outcome.UNCHANGED))
        writer.write(capture(hop(URL + "y")))
        writer.close()
        assert checked(folder)

    def test_the_body_is_read_back(self, writer, folder):
        data = random.Random(1).randbytes(100_000)
        writer.write(capture(hop(), data=data))
        writer.close()
        assert of_kind(folder, "response")[0][3] == data

    def test_a_body_in_a_file_is_read_back(self, writer, folder, tmp_path):
        data = random.Random(1).randbytes(3_000_000)
        (tmp_path / "spooled").write_bytes(data)
        spooled = Body(
            size=len(data), sha256=hashlib.sha256(data).hexdigest(), path=str(tmp_path / "spooled")
        )
        told = Capture(
            url=URL, started_at=NOW, ended_at=NOW, outcome=Outcome.OK, reason="", hops=(hop(),), body=spooled
        )
        writer.write(told)
        writer.close()
        assert of_kind(folder, "response")[0][3] == data
        assert checked(folder)

    def test_every_record_is_a_gzip_member_of_its_own(self, writer, folder):
        (extent,) = writer.write(capture(hop()))
        writer.close()
        content = (folder / extent.file).read_bytes()[extent.position : extent.position + extent.length]
        assert gzip.decompress(content).startswith(b"WARC/1.1\r\n")

    def test_an_answer_says_where_it_came_from_and_when(self, writer, folder):
        writer.write(capture(hop()))
        writer.close()
        headers = of_kind(folder, "response")[0][1]
        told = [headers[name] for name in ("WARC-Target-URI", "WARC-Date", "WARC-IP-Address")]
        assert told == [URL, "2023-11-14T22:13:20.123Z", "192.0.2.7"]

    def test_the_request_says_what_was_sent_and_belongs_to_the_answer(self, writer, folder):
        writer.write(capture(hop()), Request(url=URL, etag='"x"', last_modified="yesterday"))
        writer.close()
        _, headers, http, _ = of_kind(folder, "request")[0]
        assert http.statusline == "/a/b?c=d HTTP/1.1"
        assert http.protocol == "GET"
        assert dict(http.headers) == {
            "Host": "example.org",
            "User-Agent": "Tamias/0 (+x)",
            "Accept": "text/turtle",
            "If-None-Match": '"x"',
            "If-Modified-Since": "yesterday",
        }
        assert headers["WARC-Concurrent-To"] == of_kind(folder, "response")[0][1]["WARC-Record-ID"]

    def test_the_metadata_says_how_it_ended(self, writer, folder):
        writer.write(capture(hop(status=410), data=None, outcome=Outcome.GONE))
        writer.close()
        assert b"outcome: gone\r\n" in of_kind(folder, "metadata")[0][3]

    def test_every_hop_is_an_answer(self, writer, folder):
        writer.write(
            capture(hop("http://e/1", 302, [("Location", "/2")], location="http://e/2"), hop("http://e/2"))
        )
        writer.close()
        told = [(r[1]["WARC-Target-URI"], r[2].get_statuscode()) for r in of_kind(folder, "response")]
        assert told == [("http://e/1", "302"), ("http://e/2", "200")]

    def test_an_attempt_without_an_answer_leaves_no_record(self, writer, folder):
        assert writer.write(capture(data=None, outcome=Outcome.FAILED)) == []
        assert list(folder.iterdir()) == []


class TestTruth:
    def answer(self, writer, folder, headers, data=b"12345", status=200):
        writer.write(capture(hop(headers=headers, status=status), data=data))
        writer.close()
        return of_kind(folder, "response")[0]

    def test_the_header_of_a_coding_that_was_undone_is_renamed(self, writer, folder):
        headers = [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")]
        http = self.answer(writer, folder, headers)[2]
        assert http.headers == [
            ("X-Archive-Orig-Content-Encoding", "gzip"),
            ("X-Archive-Orig-Transfer-Encoding", "chunked"),
        ]

    def test_a_length_that_is_true_stays(self, writer, folder):
        assert self.answer(writer, folder, [("Content-Length", "5")])[2].headers == [("Content-Length", "5")]

    def test_a_length_that_is_not_is_renamed_and_the_true_one_told(self, writer, folder):
        assert self.answer(writer, folder, [("Content-Length", "3")])[2].headers == [
            ("X-Archive-Orig-Content-Length", "3"),
            ("Content-Length", "5"),
        ]

    def test_a_body_that_was_not_kept_is_told_of(self, writer, folder):
        record = self.answer(writer, folder, [("Content-Length", "300")], data=None, status=404)
        assert record[1]["WARC-Truncated"] == "unspecified"

    @pytest.mark.parametrize(("status", "headers"), [(204, []), (404, [("Content-Length", "0")])])
    def test_an_answer_that_had_no_body_is_not_truncated(self, writer, folder, status, headers):
        assert self.answer(writer, folder, headers, None, status)[1]["WARC-Truncated"] is None

    def test_no_header_can_forge_another(self, writer, folder):
        evil = [
            ("X-A", "1\r\nWARC-Type: response\r\n\r\nHTTP/1.1 200 OK"),
            ("X\r\n\r\nB", "2"),
            ("X-C", "\x00\n"),
        ]
        record = self.answer(writer, folder, evil)
        assert [name for name, _ in record[2].headers] == ["X-A", "X-B", "X-C"]
        assert record[3] == b"12345"

    def test_a_header_of_any_bytes_is_kept(self, writer, folder):
        writer.write(capture(hop(headers=[("X-A", "caf\xe9 \xff")])))
        writer.close()
        content = gzip.decompress(next(folder.glob("*.warc.gz")).read_bytes())
        assert b"X-A: caf\xe9 \xff\r\n" in content

    def test_an_odd_status_is_kept(self, writer, folder):
        assert self.answer(writer, folder, [], status=799)[2].get_statuscode() == "799"


class TestRevisits:
    def test_a_304_is_a_revisit(self, writer, folder):
        writer.write(capture(hop(status=304), data=None, outcome=Outcome.UNCHANGED))
        writer.close()
        assert of_kind(folder, "revisit")[0][1]["WARC-Profile"].endswith("/revisit/server-not-modified")

    def test_a_payload_that_came_before_is_not_kept_twice(self, writer, folder):
        writer.write(capture(hop(), data=b"same"))
        writer.write(capture(hop("http://example.org/other"), data=b"same"))
        writer.close()
        first, again = of_kind(folder, "response")[0][1], of_kind(folder, "revisit")[0][1]
        assert again["WARC-Profile"].endswith("/revisit/identical-payload-digest")
        assert again["WARC-Payload-Digest"] == first["WARC-Payload-Digest"]
        assert again["WARC-Refers-To"] == first["WARC-Record-ID"]
        assert again["WARC-Refers-To-Target-URI"] == URL

    def test_empty_bodies_are_no_revisits(self, writer, folder):
        for _ in range(2):
            writer.write(capture(hop(), data=b""))
        writer.close()
        assert len(of_kind(folder, "response")) == 2


class TestIndex:
    def test_every_answer_is_found_by_its_line(self, writer, folder):
        for number in range(5):
            writer.write(capture(hop(f"http://example.org/{number}"), data=b"%d" % number))
        writer.close()
        (part,) = warc_parts(folder)
        content = part.path.read_bytes()
        for number, (_, entry) in enumerate(entries(part.index)):
            record = gzip.decompress(content[int(entry.offset) : entry.end])
            assert record.endswith(b"\r\n\r\n%d\r\n\r\n" % number)
            assert (entry.url, entry.status, entry.mime) == (
                f"http://example.org/{number}",
                "200",
                "text/turtle",
            )

    def test_nothing_is_indexed_before_it_is_durable(self, writer, folder):
        writer.write(capture(hop()))
        (index,) = folder.glob("*.cdxj")
        assert index.read_bytes() == b""
        writer.sync()
        assert index.read_bytes().count(b"\n") == 1

    def test_a_line_is_a_key_a_time_and_json(self, writer, folder):
        writer.write(capture(hop()))
        writer.close()
        text = next(folder.glob("*.cdxj")).read_bytes()
        assert text.startswith(b'org,example)/a/b?c=d 20231114221320 {"url":"http://example.org/a/b?c=d",')

    @pytest.mark.parametrize("text", [b"", b"a b\n", b"a 2 {}\n", b'a 2 {"url":"x"', b"\xff \xff \xff\n"])
    def test_a_torn_line_is_none(self, text):
        assert parsed(text) is None

    @pytest.mark.parametrize(
        ("url", "key"),
        [
            ("http://www.Example.org:80/A/B/?b=2&a=1#f", "org,example)/a/b?a=1&b=2"),
            ("https://example.org", "org,example)/"),
            ("https://example.org:443/", "org,example)/"),
            ("http://ex.org:8080/x?", "org,ex:8080)/x"),
            ("http://127.0.0.1:8080/a", "1,0,0,127:8080)/a"),
            ("http://x.org/a%20B/%C3%A9?Z=1&y", "org,x)/a%20b/%c3%a9?y&z=1"),
            ("http://x.org/a//b", "org,x)/a/b"),
            ("http://x.org/?a&&b", "org,x)/?&a&b"),
            ("http://[::1]:80/", "::1)/"),
            ("http://x.org/?b=&a=%2f+x", "org,x)/?a=/+x&b="),
            ("http://www2.x.org/", "org,x)/"),
        ],
    )
    def test_the_key_of_a_url_is_that_of_other_tools(self, url, key):
        assert surt(url) == key


class TestFiles:
    def test_a_full_file_is_followed_by_another(self, tmp_path):
        with WarcWriter(tmp_path, "p", agent="a", accept="b", max_bytes=3000) as writer:
            for number in range(10):
                writer.write(capture(hop(f"http://e/{number}"), data=os.urandom(1000)))
        assert len(list(tmp_path.glob("*.warc.gz"))) > 3
        assert len(of_kind(tmp_path, "response")) == 10
        assert checked(tmp_path)

    def test_a_file_that_is_being_written_says_so(self, writer, folder):
        writer.write(capture(hop()))
        assert len(list(folder.glob("*.warc.gz.open"))) == 1
        writer.close()
        assert list(folder.glob("*.open")) == []

    @pytest.mark.parametrize("torn", [1, 100, 5000])
    def test_what_was_synced_survives_a_torn_tail(self, tmp_path, torn):
        writer = WarcWriter(tmp_path, "p", agent="a", accept="b")
        for number in range(3):
            writer.write(capture(hop(f"http://e/{number}"), data=os.urandom(1000)))
        writer.sync()
        (open_file,) = tmp_path.glob("*.open")
        synced = open_file.stat().st_size
        writer.write(capture(hop("http://e/torn"), data=os.urandom(100_000)))
        os.truncate(open_file, synced + torn)
        assert mend_warcs(tmp_path, "p") == 1
        assert [r[1]["WARC-Target-URI"] for r in of_kind(tmp_path, "response")] == [
            f"http://e/{number}" for number in range(3)
        ]
        assert checked(tmp_path)

    def test_records_that_were_not_indexed_are_indexed_when_they_are_mended(self, tmp_path):
        writer = WarcWriter(tmp_path, "p", agent="a", accept="b")
        writer.write(capture(hop("http://e/1")))
        writer.sync()
        (extent,) = writer.write(
            capture(hop("http://e/2", headers=[("Content-Type", "Text/HTML; x")]), data=b"x")
        )
        mend_warcs(tmp_path, "p")
        (part,) = warc_parts(tmp_path)
        _, entry = list(entries(part.index))[1]
        assert (entry.url, entry.mime, entry.status) == ("http://e/2", "text/html", "200")
        assert (int(entry.offset), int(entry.length)) == (extent.position, extent.length)

    def test_a_killed_process_loses_nothing_that_was_synced(self, tmp_path):
        program = (
            "import os, signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])\n"
            "from tamias.features.warc.warc_writer import WarcWriter\n"
            "from test_warc import capture, hop\n"
            "writer = WarcWriter(Path(sys.argv[1]), 'p', agent='a', accept='b')\n"
            "for n in range(20): writer.write(capture(hop(f'http://e/{n}'), data=os.urandom(5000)))\n"
            "writer.sync()\n"
            "for n in range(20): writer.write(capture(hop(f'http://e/lost{n}'), data=os.urandom(5000)))\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        here = os.path.dirname(__file__)
        subprocess.run([sys.executable, "-c", program, tmp_path, here], check=False)
        mend_warcs(tmp_path, "p")
        told = [record[1]["WARC-Target-URI"] for record in of_kind(tmp_path, "response")]
        assert told[:20] == [f"http://e/{n}" for n in range(20)]
        assert checked(tmp_path)

    def test_another_writers_file_is_left_alone(self, writer, folder):
        writer.write(capture(hop()))
        assert mend_warcs(folder, "other") == 0

    def test_a_full_disk_takes_back_the_whole_capture(self, writer, folder, monkeypatch):
        writer.write(capture(hop("http://e/1"), data=b"1"))
        write, left = os.write, [3]

        def limited(file, content):
            left[0] -= 1
            if left[0] < 0:
                raise OSError(28, "No space left on device")
            return write(file, content)

        monkeypatch.setattr(os, "write", limited)
        with pytest.raises(DiskFull):
            writer.write(capture(hop("http://e/2"), data=b"2" * 1000))
        monkeypatch.undo()
        writer.write(capture(hop("http://e/3"), data=b"2" * 1000))
        writer.close()
        assert [r[1]["WARC-Target-URI"] for r in of_kind(folder, "response")] == ["http://e/1", "http://e/3"]
        assert checked(folder)

    def test_a_record_that_unpacks_without_end_takes_no_memory(self, tmp_path):
        (tmp_path / "bomb.warc.gz").write_bytes(gzip.compress(bytes(50_000_000)))
        (record,) = records(tmp_path / "bomb.warc.gz")
        assert len(record.head) < 1_000_000


class TestExport:
    def test_all_files_are_one(self, tmp_path):
        with WarcWriter(tmp_path, "p", agent="a", accept="b", max_bytes=2000) as writer:
            for number in range(6):
                writer.write(capture(hop(f"http://e/{number}"), data=os.urandom(1000)))
        out = io.BytesIO()
        export_warc(tmp_path, out)
        out.seek(0)
        assert sum(record.rec_type == "response" for record in ArchiveIterator(out)) == 6

    def test_a_file_that_is_being_written_is_exported_as_far_as_it_is_whole(self, writer, folder):
        writer.write(capture(hop()))
        (path,) = folder.glob("*.open")
        with path.open("ab") as file:
            file.write(gzip.compress(os.urandom(1000))[:500])
        out = io.BytesIO()
        export_warc(folder, out)
        out.seek(0)
        assert [record.rec_type for record in ArchiveIterator(out)] == [
            "warcinfo",
            "resource",
            "response",
            "request",
            "metadata",
        ]
        os.truncate(path, os.path.getsize(path) - 500)

    def test_without_files_there_is_an_error_that_says_what_to_do(self, tmp_path):
        with pytest.raises(TamiasError, match="--sink warc"):
            export_warc(tmp_path, io.BytesIO())
