"""Data in use, data of a newer Tamias, a full disk: one sentence, and nothing half-written."""

import subprocess
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.features.embedded import server as programs_of
from tamias.features.embedded.server import server_account
from tamias.model.errors import DatabaseUnavailable, DataInUse, DiskFull, SchemaTooNew
from tests.messages import saying


def test_data_of_a_newer_tamias_is_refused_and_left_alone(session, place, ask):
    ask(session, "UPDATE meta SET schema_version = 9999")
    with pytest.raises(SchemaTooNew, check=saying("9999")) as told:
        Database(place.path)
    assert told.value.exit_code == 4
    assert ask(session, "SELECT schema_version FROM meta") == [(9999,)]


@pytest.fixture
def started_by_hand(place):
    """A server that somebody started on our cluster without us."""
    programs = programs_of.newest()
    cluster = place.path / "pg" / str(programs.major)
    words = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={cluster}"]
    with (place.path / "by-hand.log").open("wb") as log:
        server = subprocess.Popen(
            [programs.program("postgres"), "-D", cluster, *words],
            stdout=log,
            stderr=log,
            preexec_fn=server_account(place.path).enter(ends_with_parent=True),  # noqa: PLW1509 (one thread)
        )
    place.wait_until(lambda: "ready" in note(cluster))
    yield server
    server.terminate()
    server.wait(30)


def note(cluster):
    try:
        return (cluster / "postmaster.pid").read_text()
    except FileNotFoundError:
        return ""


def test_a_cluster_held_by_a_server_started_by_hand_is_in_use(place, started_by_hand):
    with pytest.raises(DataInUse, check=saying()) as told:
        Database(place.path)
    assert told.value.exit_code == 11
    assert started_by_hand.poll() is None


def test_a_disk_too_small_for_a_database_is_told_and_nothing_half_made_is_left(place_at, small_disk):
    place = place_at(small_disk(20) / "data")
    with pytest.raises(
        DiskFull, match=r"no disk space left for the database at .*/data/pg; free some space"
    ) as told:
        Database(place.path)
    assert told.value.exit_code == 12
    place.wait_until_nothing_runs()
    assert not [path for path in (place.path / "pg").iterdir() if path.name[0].isdigit()]


def test_a_disk_without_any_room_is_told(place_at, small_disk):
    disk = small_disk(1)
    fill(disk)
    place = place_at(disk / "data")
    with pytest.raises(DiskFull):
        Database(place.path)


def test_a_disk_that_was_full_can_be_used_once_there_is_room(place_at, small_disk):
    disk = small_disk(120)
    (disk / "ballast").write_bytes(bytes(100 << 20))
    place = place_at(disk / "data")
    with pytest.raises(DiskFull):
        Database(place.path)
    (disk / "ballast").unlink()
    Database(place.path).close()


def test_a_disk_that_fills_up_is_told_and_what_was_committed_is_kept(place_at, small_disk, ask):
    disk = small_disk(120)
    place = place_at(disk / "data")
    with closing(Database(place.path, patience=5)) as database, closing(database.session()) as session:
        ask(session, "INSERT INTO crawl (name) VALUES ('kept')")
        fill(disk)
        with pytest.raises((DiskFull, DatabaseUnavailable)) as told:
            insert_for_ever(ask, session)
        assert "\n" not in str(told.value)
        (disk / "ballast").unlink()
        assert ask(session, "SELECT name FROM crawl WHERE name = 'kept'") == [("kept",)]


def test_a_server_is_not_started_on_a_full_disk(place_at, small_disk):
    disk = small_disk(120)
    place = place_at(disk / "data")
    Database(place.path).close()
    place.wait_until_nothing_runs()
    fill(disk)
    with pytest.raises(DiskFull):
        Database(place.path)
    (disk / "ballast").unlink()
    Database(place.path).close()


def fill(disk):
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(4096)):
                pass
        except OSError:
            return


def insert_for_ever(ask, session):
    number = 0
    while True:
        ask(
            session,
            "INSERT INTO crawl (name) SELECT %s || repeat('x', 2000) || generate_series(1, 500)",
            [number],
        )
        number += 1
