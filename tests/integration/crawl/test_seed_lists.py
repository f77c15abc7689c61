"""Lines of a seed file that cannot be crawled: each is reported with its number, the rest is crawled."""

import gzip
import json
import subprocess

import pytest

from tamias.crawl.plan.pending_seeds import PendingSeeds, write_pending
from tamias.model.item import Seed
from tests.messages import unsaid
from tests.others import start_worker

GOOD = ("/first", "/middle", "/last")
BAD = {
    b"no url at all": "URL",
    b"http://": "URL",
    b"http://[::1/a": "URL",
    b"gopher://{host}/a": "scheme",
    b"http://{host}/private/a": "exclude",
    b"ckann:http://{host}/": "Did you mean 'ckan'?",
    b'{"url": 7}': "url",
    b'{"url": "http://{host}/a"': "",
    b"[" * 50_000: "URL",
    b"http://{host}/\xff": "UTF-8",
    b"http://{host}/" + b"a" * (1 << 20): "longer than",
    b"http://{host}/" + b"a" * 3000: "max_length",
    b"\0": "URL",
}


def list_of(site):
    """A good line, all bad lines with a good one between them, and a good line at the end."""
    host = site.url("/")[len("http://") : -1].encode()
    urls = [site.url(path).encode() for path in GOOD]
    bad = [line.replace(b"{host}", host) for line in BAD]
    return [urls[0], b"", *bad[:5], b"# a comment", urls[1], *bad[5:], urls[2]]


@pytest.fixture
def pages(site):
    site.pages |= dict.fromkeys((*GOOD, "/private/a", "/a"), b"<> <#is> <#here> .")
    return site


def expected(lines):
    """The number of each bad line, with a part of what is to be said of it."""
    bad = [number for number, line in enumerate(lines, start=1) if line and line[:1] != b"#"]
    good = (1, len(lines), lines.index(b"# a comment") + 2)
    return dict(zip([number for number in bad if number not in good], BAD.values(), strict=True))


def test_bad_lines_are_skipped_counted_and_named_and_the_rest_is_crawled(tamias, pages, tmp_path):
    lines, file = list_of(pages), tmp_path / "seeds.txt"
    file.write_bytes(b"\n".join(lines))
    words = ("--exclude", "/private/", "--seeds", file)
    looked = tamias.run("crawl", *words, "--allow-private", "--dry-run")
    done = tamias.crawl(*words)
    assert (looked.returncode, done.returncode) == (0, 0), done.stderr
    assert sorted(path for path, _ in pages.log if path != "/robots.txt") == sorted(GOOD)
    for said in (looked.stderr, done.stderr):
        assert f"{len(BAD)} seeds were skipped:" in said
        for number, word in expected(lines).items():
            line = next(each for each in said.splitlines() if f"seeds.txt line {number}: " in each)
            assert word in line
    assert tamias.crawl(*words, "--strict").returncode == 3
    again = tamias.crawl("--seeds", file)  # what the crawl excludes since the first run
    assert (again.returncode, f"line {lines.index(b'# a comment')}: " in again.stderr) == (0, True)


def test_a_csv_and_stdin_are_read_to_their_end_too(tamias, pages):
    rows = ["uri,type", f"{pages.url('/first')},", "nonsense,", f"{pages.url('/a')},gopher-hole", ","]
    text = "\n".join([*rows, f"{pages.url('/last')},html"])
    running = tamias.start("crawl", "--allow-private", "--delay", "0", "--seeds", "-", stdin=subprocess.PIPE)
    _, said = running.communicate(text)
    assert running.returncode == 0, said
    assert {path for path, _ in pages.log} == {"/robots.txt", "/first", "/last"}
    for number in (3, 4, 5):
        assert f"stdin line {number}: " in said


def record(url):
    body = b"HTTP/1.1 200 OK\r\n\r\n"
    head = f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body + b"\r\n\r\n"


def url_lines(*urls):
    return "".join(json.dumps({"url": url}) + "\n" for url in urls).encode()


def index_lines(*urls):
    return "".join(f"a 20240101000000 {json.dumps({'url': url})}\n" for url in urls).encode()


def records(*urls):
    return b"".join(map(record, urls))


@pytest.mark.parametrize(
    ("name", "write", "bad"),
    [
        ("seeds.jsonl", url_lines, {b"{]\n": "line 4: ", b'{"url": 7}\n': "line 5: "}),
        ("seeds.cdxj", index_lines, {b"no fields\n": "line 4: ", b'a 2024 {"url": 7}\n': "line 5: "}),
        ("seeds.warc", records, {b"no record begins so\r\n\r\n": "at byte "}),
    ],
)
def test_entries_of_other_crawlers_that_cannot_be_crawled_are_named_and_the_rest_is_crawled(
    tamias, pages, tmp_path, name, write, bad
):
    good = [pages.url(path) for path in GOOD]
    file = tmp_path / name
    file.write_bytes(write(good[0], "nonsense", "gopher://a.example/") + b"".join(bad) + write(*good[1:]))
    done = tamias.crawl("--depth", "0", "--seeds", file)
    assert done.returncode == 0, done.stderr
    assert sorted(path for path, _ in pages.log if path != "/robots.txt") == sorted(GOOD)
    assert f"{2 + len(bad)} seeds were skipped:" in done.stderr
    skipped = [line for line in done.stderr.splitlines() if f"{name} " in line]
    for line, word in zip(skipped, ["'nonsense'", "'gopher'", *bad.values()], strict=True):
        assert word in line
    assert tamias.crawl("--seeds", file, "--strict").returncode == 3


def test_a_list_that_is_cut_off_in_its_compression_is_refused_as_a_whole(tamias, pages, tmp_path):
    file = tmp_path / "seeds.txt.gz"
    file.write_bytes(gzip.compress(b"\n".join(pages.url(path).encode() for path in GOOD))[:-9])
    done = tamias.crawl("--seeds", file)
    assert (done.returncode, "seeds.txt.gz" in done.stderr, pages.log) == (2, True, []), done.stderr


def test_a_list_without_any_seed_is_refused_before_anything_is_made(tamias, pages, tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_bytes(b"nonsense\nmore nonsense\n")
    done = tamias.crawl("--seeds", file)
    assert (done.returncode, "seeds.txt line 2: " in done.stderr) == (2, True), done.stderr
    assert not (tamias.data / "pending-seeds").exists()
    named = tamias.crawl(pages.url("/first"), "nonsense")
    assert named.returncode == 2
    assert pages.log == []


def test_a_list_of_resources_is_watched_without_its_bad_lines(tamias, pages, tmp_path):
    file = tmp_path / "urls.txt"
    file.write_text(f"{pages.url('/first')}\nnonsense\nckann:{pages.url('/')}\n{pages.url('/last')}\n")
    done = tamias.run("add", "--file", file)
    assert done.returncode == 0, done.stderr
    assert "urls.txt line 2: " in done.stderr
    assert not unsaid(done.stderr, "urls.txt", "3", "ckann")
    watched = [each["url"] for each in json.loads(tamias.run("list", "--json").stdout)]
    assert sorted(watched) == [pages.url("/first"), pages.url("/last")]


def test_what_an_interrupted_run_may_not_do_stops_no_later_run(tamias, pages):
    assert tamias.crawl("--exclude", "/private/", pages.url("/first")).returncode == 0
    excluded, good = Seed(address=pages.url("/private/a")), Seed(address=pages.url("/middle"))
    write_pending(tamias.data, PendingSeeds([excluded, good]))
    write_pending(tamias.data, PendingSeeds([excluded]))
    write_pending(tamias.data, PendingSeeds([good], {}, "watch"))
    done = tamias.crawl(pages.url("/last"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("an interrupted run is dropped") == 2
    assert [path for path, _ in pages.log if path in {"/middle", "/last", "/private/a"}] == [
        "/middle",
        "/last",
    ]
    assert tamias.crawl("--crawl", "watch", pages.url("/a")).returncode == 2
    again = tamias.crawl()
    assert (again.returncode, "interrupted" in again.stderr) == (0, False), again.stderr


def test_nobody_begins_a_crawl_whose_user_interrupted_it_before_its_first_request(tamias, pages):
    seed, options = Seed(address=pages.url("/middle")), {"permit__allow_private": True}
    write_pending(tamias.data, PendingSeeds([seed], options))
    assert tamias.crawl("--crawl", "second", pages.url("/first")).returncode == 0
    worker = start_worker(tamias)
    word = ("--in-service", "--allow-private", "--delay", "0", "--crawl", "third")
    assert tamias.run("crawl", *word, pages.url("/last")).returncode == 0
    tamias.start("worker", "--workers", "1", "--allow-private", "--crawl", "third")
    tamias.wait_until(lambda: pages.asked("/last"))
    assert (worker.poll(), pages.asked("/middle")) == (None, 0)
    assert tamias.run("crawl").returncode == 0
    assert pages.asked("/middle") == 1
