"""Stores other than the usual one: deleted, damaged, unguarded, and a server that somebody else keeps."""

import os
import resource
import shutil
import socket
import subprocess
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from tamias.database.disk import is_free
from tamias.features.catalogue.catalogue import (
    Catalogue,
    CatalogueFollower,
    rebuild,
)
from tamias.features.catalogue.errors import StoreAway, StoreError
from tamias.features.catalogue.store.snapshots import make_store, open_newest
from tamias.model.errors import ConfigError
from tamias.settings import ServeSettings, Settings
from tests.ports import free_port

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


def filled(database, place, options=ServeSettings()):  # noqa: B008 (frozen)
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
    assert rebuild(corpus.database, place, Settings()) == 1
    assert filled(corpus.database, place) == {"1"}


def test_queries_are_answered_while_a_new_store_is_adopted(corpus, place):
    """They have what was there before or what is there now, and never nothing."""
    name = corpus.put("http://data.example/a.csv", b"a\n")
    query = f"SELECT ?n {{ GRAPH <urn:tamias:catalogue:{name}:1> {{ ?v dcat:version ?n }} }}"
    filled(corpus.database, place)
    wait_for_the_end(place)
    with (
        Catalogue(place) as catalogue,
        closing(corpus.database.session()) as session,
        closing(catalogue.refresher(session)) as refresher,
    ):
        ended, seen = Event(), []

        def ask():
            while not ended.is_set():
                with catalogue.ask(query, "text/csv").content as content:
                    seen.append(content.read())

        asking = Thread(target=ask)
        asking.start()
        refresher.rebuild()
        ended.set()
        asking.join()
        assert set(seen) == {b"n\r\n1\r\n"}
        assert not (place / "catalogue" / "store.gone").exists()


def test_a_store_that_is_being_replaced_is_waited_for(tmp_path):
    quad = Quad(NamedNode("urn:s"), NamedNode("urn:p"), Literal("1"), NamedNode("urn:g"))
    (tmp_path / "store.new").mkdir()
    make_store(tmp_path / "store.new", [quad])
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(open_newest, tmp_path / "store")
        assert not wait([opening], timeout=0.5).done
        (tmp_path / "store.new").rename(tmp_path / "store")
        with closing(opening.result(30)) as snapshot:
            assert list(snapshot.store) == [quad]


def test_a_keeper_that_was_killed_between_two_stores_goes_on_with_the_new_one(corpus, place):
    filled(corpus.database, place)
    wait_for_the_end(place)
    folder = place / "catalogue"
    shutil.copytree(folder / "store", folder / "store.new")
    (folder / "store").rename(folder / "store.gone")
    with Catalogue(place) as catalogue:
        assert objects(catalogue) == {"1"}
    assert not (folder / "store.gone").exists()
    assert not (folder / "store.new").exists()


def test_a_keeper_that_cannot_have_another_process_has_one_later(corpus, place):
    filled(corpus.database, place)
    wait_for_the_end(place)
    with Catalogue(place) as catalogue, ThreadPoolExecutor(1) as threads:
        pid = catalogue.local.running().keeper_pid
        limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        # The user's line and file still fit in, but not the two ends of a line to a new process.
        held = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        free = [number for number in range(len(held) + 4) if number not in held]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[3], limit[1]))
        answer = threads.submit(objects, catalogue)
        assert not wait([answer], timeout=1.5).done
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
        assert answer.result(30) == {"1"}
        assert catalogue.local.running().keeper_pid == pid


def test_a_server_without_a_guard_does_the_same(corpus, place):
    assert filled(corpus.database, place, ServeSettings(sparql_guard=False)) == {"1"}


def test_a_new_address_of_the_service_is_in_all_iris(corpus, place):
    name = corpus.put("http://data.example/a.csv", b"a\n")
    for address in ("http://one.example", "http://two.example"):
        rebuild(corpus.database, place, Settings(serve=ServeSettings(address=address)))
        with Catalogue(place) as catalogue:
            answer = catalogue.ask("SELECT ?d { ?d arc:state ?s }", "text/csv")
            with answer.content as content:
                assert content.read().decode() == f"d\r\n{address}/dataset/{name}\r\n"


@pytest.fixture
def elsewhere(tmp_path):
    """The port of a server that somebody else keeps."""
    port = free_port()
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
    base = f"http://127.0.0.1:{elsewhere}"
    options = ServeSettings(sparql=f"{base}/query", sparql_update=f"{base}/store")
    assert filled(corpus.database, place, options) == {"1"}


def test_another_server_is_followed_although_nobody_asks_us(corpus, place, elsewhere, monkeypatch):
    monkeypatch.setattr("tamias.features.catalogue.catalogue._UNASKED_SECONDS", 3600.0)
    base = f"http://127.0.0.1:{elsewhere}"
    options = ServeSettings(sparql=f"{base}/query", sparql_update=f"{base}/store")
    with (
        Catalogue(place, options) as ours,
        Catalogue(place, options) as of_others,
        closing(CatalogueFollower(ours, corpus.database, seconds=0.1)) as following,
    ):
        following.start()
        for number in range(1, 4):
            corpus.crawl(f"{DOC}/{number}", QUADS.replace(b'"1"', b'"%d"' % number))
            deadline = time.monotonic() + 20
            while objects(of_others) != set(map(str, range(1, number + 1))):
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_another_server_that_is_away_is_told_of(tmp_path):
    options = ServeSettings(sparql="http://127.0.0.1:9/query")
    with Catalogue(tmp_path, options) as catalogue, pytest.raises(StoreAway, match="cannot be reached"):
        catalogue.ask("ASK {}", "text/csv")


def test_a_server_must_have_an_address_of_the_web(tmp_path):
    with pytest.raises(ConfigError):
        Catalogue(tmp_path, ServeSettings(sparql="file:///etc/passwd"))
