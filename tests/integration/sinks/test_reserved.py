"""What servers reserve is in no export, whatever its format, unless the user asks for it."""

import gzip
import io
import zipfile

import duckdb
import pytest

import tamias as library

FORMATS = [
    "nquads", "trig", "turtle", "jsonld", "hdt", "jelly", "parquet", "warc", "wacz", "bagit", "ro-crate",
]  # fmt: skip
NAMES = ("mined", "trained", "open")
ROBOTS = b"User-agent: GPTBot\nDisallow: /trained\n"


def page(reply, name, **headers):
    body = f'<#it> <http://p.example/says> "content of {name}" .\n'.encode()
    return reply(200, body, Content_Type="text/turtle", **headers)


@pytest.fixture
def corpus(tamias, site, reply):
    site.pages |= {
        "/robots.txt": ROBOTS,
        "/mined.ttl": page(reply, "mined", tdm_reservation="1"),
        "/trained.ttl": page(reply, "trained"),
        "/open.ttl": page(reply, "open"),
    }
    urls = [site.url(f"/{name}.ttl") for name in NAMES]
    done = tamias.crawl("--sink", "archive", "--sink", "warc", "--depth", "0", *urls)
    assert done.returncode == 0, done.stderr
    return tamias


def packed(content):
    with zipfile.ZipFile(io.BytesIO(content)) as files:
        parts = {name: files.read(name) for name in files.namelist()}
    plain = [gzip.decompress(body) if name.endswith(".gz") else body for name, body in parts.items()]
    return b"".join(plain)


def content(form, path):
    """All that an export holds, as bytes in which texts can be looked for."""
    if form == "parquet":
        return str(duckdb.sql(f"SELECT * FROM '{path / 'quads.parquet'}'").fetchall()).encode()
    if form in ("hdt", "jelly"):
        return str([str(quad) for quad in library.read(path).quads]).encode()
    if form == "warc":
        return gzip.decompress(path.read_bytes())
    return packed(path.read_bytes()) if form in ("wacz", "bagit", "ro-crate") else path.read_bytes()


def test_what_is_reserved_is_in_no_format_unless_it_is_asked_for(corpus, tmp_path):
    found = {}
    for form in FORMATS:
        for words in ((), ("--for-training",), ("--for-training", "--include-reserved")):
            ending = {"hdt": ".hdt", "jelly": ".jelly", "parquet": "", "warc": ".warc.gz"}.get(form, ".zip")
            path = tmp_path / f"{form}{len(words)}{ending}"
            done = corpus.run("export", "--format", form, "-o", str(path), *words)
            assert done.returncode == 0, done.stderr
            assert ("left out" in done.stderr) == (len(words) < 2), (form, done.stderr)
            held = content(form, path)
            found[form, len(words)] = {name for name in NAMES if f"content of {name}".encode() in held}
    expected = ({"trained", "open"}, {"open"}, {"mined", "trained", "open"})
    assert found == {(form, number): expected[number] for form in FORMATS for number in range(3)}
