"""Stores other than the usual one: deleted, damaged, unguarded, and a server that somebody else keeps."""

import shutil
import socket
import subprocess
import sysconfig
import time
from pathlib import Path

import pytest

from tamias.crawl.catalogue.catalogue import Catalogue, CatalogueOptions, options_of, rebuild
from tamias.crawl.catalogue.errors import StoreAway, StoreError
from tamias.database.locks import is_free
from tamias.model.errors import ConfigError
from tamias.settings import ServeSettings

DOC = "http://d.example/doc"
QUADS = b'<http://d.example/s> <http://d.example/p> "1" <http://d.example/doc> .\n'


@pytest.fixture
def place(corpus, tmp_path):
    """Another data directory of the same database: it has the same files, and a store of its own."""
    corpus.crawl(DOC, QUADS)
    (tmp_path / "rdf").symlink_to(corpus.data / "rdf")
    return tmp_path


def objects(catalogue):
    answer = catalogue.ask("SELECT ?o { GRAPH ?g { ?s <http://d.example/p> ?o } }", "text/csv")
    with answer.content as content:
        return set(content.read().decode().split()[1:])


def filled(database, place, options=None):
    """What is found after a round."""
    session = database.session()
    try:
        with Catalogue(place, options) as catalogue:
            refresher = catalogue.refresher(session)
            refresher.round()
            found = objects(catalogue)
            refresher.close()
            return found
    finally:
        session.close()


def wait_for_the_end(place):
    while not is_free(place / "catalogue" / "keeper.lock"):
        time.sleep(0.02)


def test_a_store_that_was_deleted_is_made_anew(corpus, place):
    assert filled(corpus.database, place) == {"1"}
    wait_for_the_end(place)
    shutil.rmtree(place / "catalogue")
    assert filled(corpus.database, place) == {"1"}


def damage(place):
    for file in (place / "catalogue" / "store").rglob("CURRENT"):
        file.write_bytes(b"nonsense")


def test_a_store_of_an_earlier_version_is_made_anew(corpus, place):
    """It had no snapshots, and all versions of a resource in one graph."""
    name = corpus.put("http://data.example/a.csv", b"a\n")
    filled(corpus.database, place)
    wait_for_the_end(place)
    store = place / "catalogue" / "store"
    for path in store.iterdir():
        if path.name not in ("oxigraph", "id"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert filled(corpus.database, place) == {"1"}
    with Catalogue(place) as catalogue:
        query = f"SELECT ?v {{ GRAPH <urn:tamias:catalogue:{name}:1> {{ ?v dcat:version ?n }} }}"
        with catalogue.ask(query, "text/csv").content as content:
            assert content.read().split() == [b"v", f"http://127.0.0.1:8080/dataset/{name}/1".encode()]


def test_a_store_that_is_damaged_is_told_of(corpus, place):
    filled(corpus.database, place)
    wait_for_the_end(place)
    damage(place)
    with Catalogue(place) as catalogue, pytest.raises(StoreError, match="check --rebuild"):
        catalogue.ask("ASK {}", "text/csv")


def test_a_store_that_is_damaged_is_made_anew_on_request(corpus, place):
    filled(corpus.database, place)
    wait_for_the_end(place)
    damage(place)
    assert rebuild(corpus.database, place) == 1
    assert filled(corpus.database, place) == {"1"}


def test_a_server_without_a_guard_does_the_same(corpus, place):
    assert filled(corpus.database, place, CatalogueOptions(guarded=False)) == {"1"}


def test_a_new_address_of_the_service_is_in_all_iris(corpus, place):
    name = corpus.put("http://data.example/a.csv", b"a\n")
    for address in ("http://one.example", "http://two.example"):
        rebuild(corpus.database, place, ServeSettings(address=address))
        with Catalogue(place) as catalogue:
            answer = catalogue.ask("SELECT ?d { ?d arc:state ?s }", "text/csv")
            with answer.content as content:
                assert content.read().decode() == f"d\r\n{address}/dataset/{name}\r\n"


@pytest.fixture
def elsewhere(tmp_path):
    """The port of a server that somebody else keeps."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = Path(sysconfig.get_path("scripts")) / "oxigraph"
    words = ["serve", "--location", str(tmp_path / "elsewhere"), "--bind", f"127.0.0.1:{port}"]
    with subprocess.Popen([program, *words], stderr=subprocess.DEVNULL) as server:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port
        server.terminate()


def test_another_server_is_filled_and_asked(corpus, place, elsewhere):
    options = options_of(
        ServeSettings(
            sparql=f"http://127.0.0.1:{elsewhere}/query", sparql_update=f"http://127.0.0.1:{elsewhere}/store"
        )
    )
    assert filled(corpus.database, place, options) == {"1"}


def test_another_server_that_is_away_is_told_of(tmp_path):
    options = CatalogueOptions(server="http://127.0.0.1:9/query")
    with Catalogue(tmp_path, options) as catalogue, pytest.raises(StoreAway, match="cannot be reached"):
        catalogue.ask("ASK {}", "text/csv")


def test_a_server_must_have_an_address_of_the_web():
    with pytest.raises(ConfigError):
        options_of(ServeSettings(sparql="file:///etc/passwd"))
