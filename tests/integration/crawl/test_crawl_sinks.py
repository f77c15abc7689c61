"""A crawl with each sink, read back, gives the same triples as the N-Quads export."""

import gzip
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat, parse

import tamias
from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import serving
from tamias.features.graph_stores.document_files import read_index
from tests import commands


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """A small web, crawled once with every sink that needs no server."""
    folder = tmp_path_factory.mktemp("sinks")
    with serving(make_plan(seed=3, nodes=4, crawl_delay=False)) as web:
        sinks = [f"--sink=turtle-files:{folder / 'turtle'}", "--sink=hdt-files", "--sink=warc"]
        run = told("crawl", *web.seeds, "--data", folder / "d", "--allow-private", "--delay=0", *sinks)
        assert run.returncode == 0, run.stderr.decode()
    return folder


def told(*words):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TAMIAS_")}
    command = [*map(str, words)]
    return commands.run(command, capture_output=True, timeout=120, env=clean, check=False)


def exported(folder, *words):
    run = told("export", "--data", folder / "d", *words)
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout


def nameless(quads, *, graphs=True):
    """Blank nodes all the same, as every writer may name them anew."""

    def term(each):
        return "_:" if str(each).startswith("_:") else str(each)

    return {
        (term(quad.subject), str(quad.predicate), term(quad.object), str(quad.graph_name) if graphs else "")
        for quad in quads
    }


def as_nquads(folder):
    return list(parse(exported(folder), format=RdfFormat.N_QUADS))


def test_the_turtle_files_hold_what_the_export_holds(crawled):
    syntaxes = {".trig": RdfFormat.TRIG, ".ttl": RdfFormat.TURTLE}
    paths = [crawled / "turtle" / name for name in read_index(crawled / "turtle").values()]
    found = [quad for path in paths for quad in parse(path=path, format=syntaxes[path.suffix])]
    assert nameless(found, graphs=False) == nameless(as_nquads(crawled), graphs=False)


def test_the_hdt_files_hold_what_the_export_holds(crawled):
    files = (crawled / "d" / "hdt").rglob("*.hdt")
    found = [quad for path in files for quad in tamias.read(path).quads]
    assert nameless(found, graphs=False) == nameless(as_nquads(crawled), graphs=False)


def test_the_turtle_files_are_packed_where_the_settings_say_so(tamias, site):
    site.pages["/a"] = b"<http://e/s> <http://e/p> <http://e/o> ."
    (tamias.data.parent / "tamias.toml").write_text("[sinks]\ngzip = true\n")
    assert tamias.crawl(site.url("/a"), "--sink=turtle-files", "--scope=host").returncode == 0
    (path,) = (tamias.data / "turtle").rglob("*.ttl.gz")
    assert b"http://e/o" in gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("form", ["trig", "jsonld", "jelly"])
def test_an_export_with_graphs_holds_what_the_n_quads_hold(crawled, form):
    types = {"trig": "application/trig", "jsonld": "application/ld+json", "jelly": "application/x-jelly-rdf"}
    reading = tamias.read(exported(crawled, "--format", form), media_type=types[form])
    assert nameless(reading.quads) == nameless(as_nquads(crawled))
    assert reading.problems == []


@pytest.mark.parametrize(("form", "media_type"), [("turtle", "text/turtle"), ("hdt", "application/vnd.hdt")])
def test_an_export_without_graphs_holds_the_triples(crawled, form, media_type):
    reading = tamias.read(exported(crawled, "--format", form), media_type=media_type)
    assert nameless(reading.quads, graphs=False) == nameless(as_nquads(crawled), graphs=False)


def test_the_parquet_files_have_a_row_for_every_quad_and_every_attempt(crawled):
    import duckdb

    exported(crawled, "--format", "parquet", "-o", crawled / "parquet")
    with duckdb.connect() as tables:
        counts = [
            tables.sql(f"SELECT count(*) FROM '{crawled / 'parquet' / name}.parquet'").fetchall()[0][0]
            for name in ("quads", "captures")
        ]
    assert counts[0] == exported(crawled).count(b"\n")
    assert counts[1] == exported(crawled, "--graph", "metadata").count(b"#Activity>")


def test_the_warc_passes_warcio_and_holds_every_answer(crawled):
    from warcio.archiveiterator import ArchiveIterator

    (crawled / "all.warc.gz").write_bytes(exported(crawled, "--format", "warc"))
    warcio = Path(sys.executable).with_name("warcio")
    checked = subprocess.run([warcio, "check", crawled / "all.warc.gz"], capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout
    with (crawled / "all.warc.gz").open("rb") as file:
        records = [
            (record.rec_type, record.rec_headers["WARC-Target-URI"]) for record in ArchiveIterator(file)
        ]
    assert set(read_index(crawled / "turtle")) <= {url for kind, url in records if kind == "response"}


def test_the_wacz_has_its_parts(crawled):
    with zipfile.ZipFile(io.BytesIO(exported(crawled, "--format", "wacz"))) as package:
        names = package.namelist()
    assert "datapackage.json" in names
    assert any(name.startswith("archive/") for name in names)


def test_a_sink_that_does_not_exist_is_named(tmp_path):
    run = told("crawl", "http://127.0.0.1:9099/", "--allow-private", "--data", tmp_path / "d", "--sink=moon")
    assert run.returncode == 4
    assert b"there is no sink named 'moon'; there are archive, hdt-files, nquads, " in run.stderr
    assert not (tmp_path / "d").exists()
