"""Records of other crawlers are kept whole: listed, replayed and exported, and forgotten for good."""

import gzip
import io
import json
import signal
import zipfile
from collections import Counter
from hashlib import sha256

import pytest
from backports.zstd import ZstdCompressor, train_dict
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tests.integration.serve.test_warc_replay import served
from tests.messages import unsaid

# warcio leaves the files open that it writes bodies to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

URL = "http://data.example/page"
STATUSES = ("200 OK", "500 Internal Server Error", "301 Moved Permanently", "404 Not Found")


def day(number):
    return f"20{10 + number // 12:02}-{number % 12 + 1:02}-01T00:00:00Z"


class Crawler:
    """A WARC file as other programs write it: with requests, metadata, and a record of a name."""

    def __init__(self, **words):
        self.file = io.BytesIO()
        self.writer = WARCWriter(self.file, **{"gzip": True, **words})
        self.writer.write_record(self.writer.create_warcinfo_record("a.warc.gz", {"software": "other/1.0"}))
        self.dns("data.example")

    def dns(self, host):
        told = {"WARC-Date": day(0)}
        found = self._record(
            f"dns:{host}", "response", b"20100101\ndata.example. IN A 192.0.2.1\n", told, "text/dns"
        )
        self.writer.write_record(found)

    def _record(self, url, kind, body, told, declared):
        return self.writer.create_warc_record(
            url, kind, payload=io.BytesIO(body), warc_content_type=declared, warc_headers_dict=told
        )

    def add(self, url, number, body, status="200 OK", **headers):
        told = [("Content-Type", "text/html"), ("X-Powered-By", "PHP/5"), *headers.items()]
        head = StatusAndHeaders(status, told, protocol="HTTP/1.0")
        date = {"WARC-Date": day(number), "WARC-IP-Address": "192.0.2.1"}
        found = self.writer.create_warc_record(
            url, "response", payload=io.BytesIO(body), http_headers=head, warc_headers_dict=date
        )
        self.writer.write_record(found)
        belongs = {"WARC-Date": day(number), "WARC-Concurrent-To": found.rec_headers["WARC-Record-ID"]}
        sent = StatusAndHeaders("GET /page HTTP/1.0", [("User-Agent", "other/1.0")], is_http_request=True)
        self.writer.write_record(
            self.writer.create_warc_record(url, "request", http_headers=sent, warc_headers_dict=belongs)
        )
        note = b"fetchTimeMs: %d\r\n" % (number + 1)
        self.writer.write_record(
            self._record(f"urn:pageinfo:{url}", "metadata", note, belongs, "application/warc-fields")
        )
        return found

    def bytes(self):
        return self.file.getvalue()


def records(*files, arc=False):
    """What warcio reads: the heads and blocks of all records but those that only fill a place, counted."""
    found = Counter()
    for content in files:
        for each in ArchiveIterator(io.BytesIO(content), no_record_parse=True, arc2warc=arc):
            head = tuple((name.lower(), value) for name, value in each.rec_headers.headers)
            found[head, each.raw_stream.read()] += 1
    return found


def exported(tamias, form="warc"):
    path = tamias.data.parent / f"{tamias.data.name}.{form}"
    run = tamias.run("export", "--format", form, "-o", path)
    assert run.returncode == 0, run.stderr
    return path.read_bytes(), run.stderr


def imported(tamias, path, *words, code=0):
    run = tamias.run("import", path, *words, "--json")
    assert run.returncode == code, run.stderr
    return json.loads(run.stdout)


def some_captures(count=120, url=URL):
    crawler = Crawler()
    for number in range(count):
        status = STATUSES[number % 4]
        more = {"Location": "/elsewhere"} if status.startswith("301") else {}
        crawler.add(url, number, b"<p>body %d</p>" % (number // 4 % 3), status, **more)
    return crawler.bytes()


def cdx(client, url=URL):
    lines = client.get("/cdx", params={"url": url}).text.splitlines()
    return [tuple(line.split()[place] for place in (1, 4)) for line in lines]


@pytest.mark.parametrize("words", [(), ("--archive",)], ids=["records", "versions too"])
def test_every_capture_is_listed_and_replayed_with_its_own_time_status_and_headers(tamias, tmp_path, words):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(some_captures())
    assert imported(tamias, path, *words)["captures"] == 120
    stamps = [day(number).translate({ord(each): None for each in "-T:Z"}) for number in range(120)]
    with served(tamias) as client:
        assert cdx(client) == [(stamp, STATUSES[number % 4][:3]) for number, stamp in enumerate(stamps)]
        listed = client.get(f"/timemap/json/{URL}").json()["mementos"]["list"]
        assert [each["uri"].split("/")[4] for each in listed] == stamps
        for number, stamp in list(enumerate(stamps))[:12]:
            reply = client.get(f"/memento/{stamp}/{URL}")
            assert reply.status_code == int(STATUSES[number % 4][:3])
            assert reply.content == b"<p>body %d</p>" % (number // 4 % 3)
            assert reply.headers["x-archive-orig-x-powered-by"] == "PHP/5"
            assert ("x-archive-orig-location" in reply.headers) is (number % 4 == 2)


def test_the_export_has_all_records_as_they_were_and_a_second_import_adds_nothing(tamias, tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(some_captures())
    assert imported(tamias, path, "--archive")["records"] == sum(records(path.read_bytes()).values()) == 362
    before, _ = exported(tamias)
    assert records(before) == records(path.read_bytes())
    again = imported(tamias, path, "--archive")
    assert (again["records"], again["captures"], again["versions"]) == (0, 0, 0)
    assert exported(tamias)[0] == before
    (tmp_path / "plain.warc").write_bytes(gzip.decompress(path.read_bytes()))
    assert imported(tamias, tmp_path / "plain.warc")["records"] == 0
    assert tamias.run("check").returncode == 0


def test_forgetting_erases_all_records_of_a_url_from_the_export_and_no_import_brings_them_back(
    tamias, tmp_path
):
    crawler = Crawler()
    for number in range(3):
        crawler.add(URL, number, b"<p>secret %d</p>" % number)
        crawler.add("http://data.example/other", number, b"<p>other %d</p>" % number)
    path = tmp_path / "a.warc.gz"
    path.write_bytes(crawler.bytes())
    imported(tamias, path, "--archive")
    run = tamias.run("forget", URL, "--reason", "asked for")
    assert run.returncode == 0, run.stderr
    wanted = Counter(
        {
            key: n
            for key, n in records(path.read_bytes()).items()
            if URL not in dict(key[0]).get("warc-target-uri", "")
        }
    )

    def stands():
        content, said = exported(tamias)
        left = Counter({key: n for key, n in records(content).items() if len(key[0]) > 5 or key[1]})
        assert b"secret" not in gzip.decompress(content)
        assert not unsaid(said, "1")
        return {
            key: n
            for key, n in left.items()
            if "warc-target-uri" in dict(key[0]) or dict(key[0])["warc-type"] == "warcinfo"
        }

    assert stands() == wanted
    assert tamias.run("check").returncode == 0
    again = imported(tamias, path, "--archive")
    assert (again["records"], again["captures"], again["forgotten"]) == (0, 0, 3)
    (tmp_path / "other.warc.gz").write_bytes(
        gzip.compress(gzip.decompress(path.read_bytes()).replace(b"PHP/5", b"PHP/6"))
    )
    assert imported(tamias, tmp_path / "other.warc.gz", "--archive")["forgotten"] == 3
    assert b"secret" not in gzip.decompress(exported(tamias)[0])


def test_one_forgotten_version_takes_its_records_and_no_others(tamias, tmp_path):
    path = tmp_path / "a.warc.gz"
    crawler = Crawler()
    for number in range(3):
        crawler.add(URL, number, b"<p>state %d</p>" % number)
    path.write_bytes(crawler.bytes())
    imported(tamias, path, "--archive")
    run = tamias.run("forget", f"{URL}", "--version", "2", "--reason", "asked for")
    assert run.returncode == 0, run.stderr
    left = gzip.decompress(exported(tamias)[0])
    assert [b"state %d" % number in left for number in range(3)] == [True, False, True]
    assert imported(tamias, path, "--archive")["records"] == 0
    with served(tamias) as client:
        assert [stamp for stamp, _ in cdx(client)] == ["20100101000000", "20100301000000"]


@pytest.mark.parametrize("batch", [1, 2])
def test_after_a_kill_the_import_goes_on_and_no_record_is_there_twice(fresh, tmp_path, batch):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(some_captures(400))
    killed = fresh(tmp_path / "killed")
    killed.env["TAMIAS_FAULT"] = f"captures-imported:{batch}"
    assert killed.run("import", path).returncode == -signal.SIGKILL
    del killed.env["TAMIAS_FAULT"]
    imported(killed, path)
    assert records(exported(killed)[0]) == records(path.read_bytes())
    assert killed.run("check").returncode == 0


def packed_with_dictionary(members, *, packs_dictionary, between=b""):
    trained = train_dict(members * 20, 4096)
    content = trained.dict_content
    if packs_dictionary:
        content = ZstdCompressor().compress(content, ZstdCompressor.FLUSH_FRAME)
    frames = [
        ZstdCompressor(zstd_dict=trained).compress(each, ZstdCompressor.FLUSH_FRAME) for each in members
    ]
    return b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content + between.join(frames)


def members_of(content):
    plain = gzip.decompress(content)
    return [b"WARC/1.0\r\n" + each for each in plain.split(b"WARC/1.0\r\n")[1:]]


def wacz(content, name="archive/a.warc.gz"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as package:
        package.writestr(name, content)
        package.writestr("datapackage.json", "{}")
    return file.getvalue()


FORMS = {
    "a.warc": gzip.decompress,
    "one-member.warc.gz": lambda content: gzip.compress(gzip.decompress(content)),
    "a.warc.zst": lambda content: b"".join(
        ZstdCompressor().compress(each, ZstdCompressor.FLUSH_FRAME) for each in members_of(content)
    ),
    "dictionary.warc.zst": lambda content: packed_with_dictionary(
        members_of(content), packs_dictionary=False
    ),
    "packed.warc.zst": lambda content: packed_with_dictionary(members_of(content), packs_dictionary=True),
    "skippable.warc.zst": lambda content: packed_with_dictionary(
        members_of(content), packs_dictionary=True, between=(b"\x50\x2a\x4d\x18" + bytes(4)) * 20_000
    ),
    "a.wacz": wacz,
    "nested.wacz": lambda content: wacz(wacz(content), "one.wacz"),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_file_gives_the_same_records(tamias, tmp_path, name):
    content = some_captures(8)
    (tmp_path / name).write_bytes(FORMS[name](content))
    assert imported(tamias, tmp_path / name)["problems"] == 0
    assert records(exported(tamias)[0]) == records(content)


def arc(*captures, version=1):
    more = " 200 - - 0 a.arc" if version == 2 else ""
    block = b"%d 0 Other Crawler\nURL IP-address Archive-date Content-type Archive-length\n" % version
    members = [
        b"filedesc://a.arc 0.0.0.0 20080101000000 text/plain%b %d\n%b\n" % (more.encode(), len(block), block)
    ]
    for number, (url, body) in enumerate(captures):
        kept = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nX-Old: yes\r\n\r\n" + body
        line = f"{url} 192.0.2.1 2008010{number + 1}000000 text/html{more} {len(kept)}\n"
        members.append(line.encode() + kept + b"\n")
    return members


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", ["a.arc", "a.arc.gz"])
def test_arc_files_are_captures_with_their_headers(tamias, tmp_path, name, version):
    members = arc((URL, b"<p>one</p>"), ("dns:data.example", b"x"), (URL, b"<p>two</p>"), version=version)
    content = b"".join(map(gzip.compress, members) if name.endswith("gz") else members)
    (tmp_path / name).write_bytes(content)
    found = imported(tamias, tmp_path / name)
    assert (found["records"], found["captures"], found["problems"]) == (4, 2, 0)
    assert imported(tamias, tmp_path / name)["records"] == 0
    theirs = [each.raw_stream.read() for each in ArchiveIterator(io.BytesIO(content), no_record_parse=True)]
    ours = [block for _, block in records(exported(tamias)[0])]
    assert ours[1:] == theirs[1:]
    with served(tamias) as client:
        assert [stamp for stamp, _ in cdx(client)] == ["20080101000000", "20080103000000"]
        reply = client.get(f"/memento/20080103000000/{URL}")
        assert (reply.content, reply.headers["x-archive-orig-x-old"]) == (b"<p>two</p>", "yes")


def test_a_folder_names_what_it_did_not_take(tamias, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.warc.gz").write_bytes(some_captures(4))
    (folder / "a.cdxj").write_text("")
    assert tamias.run("import", folder).returncode == 0
    for name, content in {"notes.txt": b"x", "noise.warc.gz": b"no", "noise.wacz": b"no"}.items():
        (folder / name).write_bytes(content)
    (folder / "deep.wacz").write_bytes(wacz(wacz(wacz(wacz(some_captures(4)), "1.wacz"), "2.wacz"), "3.wacz"))
    run = tamias.run("import", folder)
    assert (run.returncode, not unsaid(run.stderr, "notes.txt", "noise.warc.gz", "noise.wacz", "3.wacz")) == (
        5,
        True,
    )


def test_a_folder_around_the_data_directory_is_imported_without_it(tamias):
    folder = tamias.data.parent
    (folder / "a.warc.gz").write_bytes(some_captures(4))
    assert imported(tamias, folder)["files"] == 1
    again = imported(tamias, folder)
    assert (again["files"], again["records"]) == (1, 0)


def test_records_that_lie_or_are_bombs_are_bounded_and_the_others_are_kept(tamias, tmp_path):
    content = some_captures(2)
    first, *others = members_of(content)
    bomb = others[1].replace(b"Content-Length: ", b"Content-Length: 99999999") + bytes(200 << 20)
    (tmp_path / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, [first, bomb, *others])))
    tamias.env["TAMIAS_FETCH__MAX_BYTES"] = "1000000"
    assert imported(tamias, tmp_path / "a.warc.gz")["problems"] > 0
    assert records(exported(tamias)[0]) == records(content)


def test_a_revisit_of_what_was_imported_before_is_replayed(tamias, tmp_path):
    crawler, later = Crawler(), Crawler()
    original = crawler.add(URL, 0, b"<p>same</p>")
    head = StatusAndHeaders("200 OK", [("X-Second", "yes")], protocol="HTTP/1.0")
    told = original.rec_headers
    later.writer.write_record(
        later.writer.create_revisit_record(
            URL, told["WARC-Payload-Digest"], URL, told["WARC-Date"], head, {"WARC-Date": day(5)}
        )
    )
    for name, each in (("1.warc.gz", crawler), ("2.warc.gz", later)):
        (tmp_path / name).write_bytes(each.bytes())
        imported(tamias, tmp_path / name)
    with served(tamias) as client:
        reply = client.get(f"/memento/20100601000000/{URL}")
        assert (reply.status_code, reply.content) == (200, b"<p>same</p>")
        assert reply.headers["x-archive-orig-x-second"] == "yes"
        digest = sha256(b"<p>same</p>").hexdigest()
        assert f"sha256:{digest}" in client.get("/cdx", params={"url": URL}).text


@pytest.mark.parametrize("is_together", [True, False], ids=["together", "again"])
def test_a_revisit_that_comes_before_its_original_is_read_after_it(tamias, tmp_path, is_together):
    crawler, later = Crawler(), Crawler()
    told = crawler.add(URL, 0, b"<p>same</p>").rec_headers
    head = StatusAndHeaders("200 OK", [], protocol="HTTP/1.0")
    later.writer.write_record(
        later.writer.create_revisit_record(
            URL, told["WARC-Payload-Digest"], URL, told["WARC-Date"], head, {"WARC-Date": day(5)}
        )
    )
    (tmp_path / "1.warc.gz").write_bytes(later.bytes())
    (tmp_path / "2.warc.gz").write_bytes(crawler.bytes())
    files = tmp_path / "1.warc.gz", tmp_path / "2.warc.gz"
    if is_together:
        found = json.loads(tamias.run("import", *files, "--json").stdout)
        assert (found["captures"], found["known"], found["problems"]) == (2, 0, 0)
    else:
        assert [imported(tamias, each)["captures"] for each in (*files, files[0], files[0])] == [0, 1, 0, 0]
    assert records(exported(tamias)[0]) == records(later.bytes(), crawler.bytes())
    with served(tamias) as client:
        assert client.get(f"/memento/20100601000000/{URL}").content == b"<p>same</p>"


def test_a_restored_backup_replays_exports_and_forgets_imported_records(tamias, tamias_at, tmp_path):
    path = tmp_path / "a.warc.gz"
    path.write_bytes(some_captures(12))
    imported(tamias, path)
    assert tamias.run("backup", tmp_path / "backup").returncode == 0
    tamias.end()
    again = tamias_at("restored")
    assert again.run("restore", tmp_path / "backup").returncode == 0
    assert records(exported(again)[0]) == records(path.read_bytes())
    assert imported(again, path)["records"] == 0
    assert again.run("check").returncode == 0
    with served(again) as client:
        assert len(cdx(client)) == 12
        assert client.get(f"/memento/20100401000000/{URL}").status_code == 404
    assert again.run("forget", URL, "--reason", "asked for").returncode == 0
    assert b"body" not in gzip.decompress(exported(again)[0])
    assert again.run("check").returncode == 0


def test_what_a_server_does_not_want_shown_is_not_shown_from_an_import_either(tamias, tmp_path):
    crawler = Crawler()
    crawler.add(URL, 0, b"<p>ours</p>", **{"X-Robots-Tag": "noarchive"})
    (tmp_path / "a.warc.gz").write_bytes(crawler.bytes())
    imported(tamias, tmp_path / "a.warc.gz")
    with served(tamias) as client:
        assert client.get(f"/memento/20100101000000/{URL}").status_code == 403
