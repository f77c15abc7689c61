"""Files of other crawlers as seeds: what is read of them, and what becomes of bad ones."""

import gzip
import io
import json

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tamias.features.warc.seeds import WarcSeeds
from tamias.model.errors import UsageError
from tamias.model.item import NEVER
from tamias.seeds.files import CdxSeeds, UrlFrontierSeeds


def seeds(source, tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    return list(source().seeds(str(path)))


def addresses(source, tmp_path, content):
    return [seed.address for seed in seeds(source, tmp_path, content)]


KNOWN = {
    "known": {
        "info": {
            "url": "http://a.example/x",
            "key": "my_key",
            "metadata": {"lang": {"values": ["de", "en"]}},
            "crawlID": "news",
        },
        "refetchableFromDate": "1893456000",
    },
    "ID": "news_http://a.example/x",
}


def test_a_known_url_keeps_key_crawl_metadata_and_date(tmp_path):
    (seed,) = seeds(UrlFrontierSeeds, tmp_path, json.dumps(KNOWN).encode())
    assert (seed.address, seed.queue, seed.crawl) == ("http://a.example/x", "my_key", "news")
    assert (seed.metadata, seed.due) == ({"lang": ["de", "en"]}, 1_893_456_000_000)


@pytest.mark.parametrize(
    ("item", "due"),
    [
        ({"known": {"info": {"url": "http://a.example/"}}}, NEVER),
        ({"known": {"info": {"url": "http://a.example/"}, "refetchable_from_date": 7}}, 7000),
        (
            {"known": {"info": {"url": "http://a.example/"}, "refetchableFromDate": "99999999999999"}},
            253402300799000,
        ),
        ({"discovered": {"info": {"url": "http://a.example/"}}}, None),
        ({"url": "http://a.example/"}, None),
    ],
)
def test_a_date_of_zero_is_never_and_a_new_url_has_none(tmp_path, item, due):
    (seed,) = seeds(UrlFrontierSeeds, tmp_path, json.dumps(item).encode())
    assert seed.due == due


def test_plain_urls_stand_among_json_lines(tmp_path):
    content = gzip.compress(b"http://a.example/\n\n# note\n" + json.dumps(KNOWN).encode())
    assert addresses(UrlFrontierSeeds, tmp_path, content) == ["http://a.example/", "http://a.example/x"]


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"{}", b'{"known": 3}', b'{"known": {"info": {"url": 5}}}', b"no url",
        b"\xff\xfe", b'{"url": "no"}',
        b'{"known": {"info": {"url": "http://a.example/"}, "refetchableFromDate": "soon"}}',
        b'{"discovered": {"info": {"url": "http://a.example/", "metadata": {"a": {"values": [1]}}}}}',
        b'{"discovered": {"info": {"url": "http://a.example/", "key": "' + b"k" * 300 + b'"}}}',
        b"http://a.example/" + b"x" * (1 << 20),
    ],
)  # fmt: skip
def test_a_line_that_makes_no_sense_has_a_problem_and_the_others_are_read(tmp_path, line):
    bad, good = seeds(UrlFrontierSeeds, tmp_path, line + b"\nhttp://b.example/\n")
    assert bad.problem
    assert bad.line.endswith(" line 1")
    assert (good.address, good.problem) == ("http://b.example/", None)


CDX = b""" CDX N b a m s k r M S V g
example,a)/ 20240101000000 http://a.example/ text/html 200 AAAA - - 100 0 x.warc.gz
example,a)/ 20240201000000 http://a.example/ text/html 200 BBBB - - 100 0 x.warc.gz
example,b)/x 20240101000000 http://b.example/x text/html 404 CCCC - - 100 0 x.warc.gz
"""


def test_a_cdx_index_gives_each_address_once(tmp_path):
    assert addresses(CdxSeeds, tmp_path, CDX) == ["http://a.example/", "http://b.example/x"]


def test_the_header_of_a_cdx_index_says_where_the_address_stands(tmp_path):
    content = b" CDX a b\nhttp://a.example/ 20240101000000\n"
    assert addresses(CdxSeeds, tmp_path, content) == ["http://a.example/"]


def test_an_index_of_common_crawl_is_read(tmp_path):
    line = (
        b'example,a)/x 20240101000000 {"url": "http://a.example/x", "mime": "text/html", "status": "200"}\n'
    )
    assert addresses(CdxSeeds, tmp_path, gzip.compress(line)) == ["http://a.example/x"]


def test_a_short_line_of_an_index_has_a_problem(tmp_path):
    bad, *good = seeds(CdxSeeds, tmp_path, b"one two\n" + CDX)
    assert bad.problem == "too few fields"
    assert [seed.address for seed in good] == ["http://a.example/", "http://b.example/x"]


def warc(*urls, packed):
    """A WARC file of another hand's writing: requests and answers."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=packed)
    writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "test"}))
    for url in urls:
        asked = StatusAndHeaders("GET / HTTP/1.1", [("Host", "x")], is_http_request=True)
        answer = StatusAndHeaders("200 OK", [("Content-Type", "text/plain")], protocol="HTTP/1.1")
        writer.write_record(writer.create_warc_record(url, "request", http_headers=asked))
        body = io.BytesIO(b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://trap.example/\r\n\r\n")
        writer.write_record(writer.create_warc_record(url, "response", payload=body, http_headers=answer))
    return out.getvalue()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # warcio leaves files open
@pytest.mark.parametrize("packed", [True, False])
def test_the_answers_of_a_warc_file_are_seeds(tmp_path, packed):
    urls = ["http://a.example/", "http://b.example/x?y"]
    assert addresses(WarcSeeds, tmp_path, warc(*urls, packed=packed)) == urls


@pytest.mark.parametrize(
    "content",
    [
        b"no warc\r\n",
        b"WARC/1.0\r\nWARC-Type: response\r\n\r\nabc",
        b"WARC/1.0\r\n" + b"A: b\r\n" * 300,
        b"WARC/1.0\r\n" + b"a" * 70_000,
    ],
)
def test_what_has_no_record_is_not_a_warc_file(tmp_path, content):
    with pytest.raises(UsageError, match="not a WARC file"):
        addresses(WarcSeeds, tmp_path, content)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # warcio leaves files open
def test_a_damaged_record_of_a_warc_file_has_a_problem_and_the_others_are_read(tmp_path):
    first, last = warc("http://a.example/", packed=False), warc("http://b.example/", packed=False)
    found = seeds(WarcSeeds, tmp_path, first + b"WARC/1.0\r\nWARC-Type: response\r\n\r\n" + last)
    assert [seed.address for seed in found if seed.problem is None] == [
        "http://a.example/",
        "http://b.example/",
    ]
    (damaged,) = [seed for seed in found if seed.problem is not None]
    assert damaged.line.endswith(f"at byte {len(first)}")
    cut = seeds(WarcSeeds, tmp_path, first + last[:-20])
    assert [bool(seed.problem) for seed in cut] == [False, False, True]


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        list(CdxSeeds().seeds(str(tmp_path / "none")))
