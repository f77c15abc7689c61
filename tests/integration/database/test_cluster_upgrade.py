"""The major version of PostgreSQL can move: a cluster of an older one is upgraded, a newer one refused."""

import os
import shutil
import signal
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.database.disk import alone
from tamias.features.embedded import server
from tamias.model.errors import DatabaseError, SchemaTooNew

OLD = server.of_major(16)
NEW = server.newest()


@pytest.fixture(scope="module")
def made_old(tmp_path_factory):
    """A data directory of PostgreSQL 16 with a row in it, to be copied."""
    if OLD is None or NEW.major == OLD.major:
        pytest.skip("PostgreSQL 16 and a newer one are needed")
    folder = tmp_path_factory.mktemp("old")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAMIAS_PG_BIN", OLD.folder)
        with closing(Database(folder)) as database, closing(database.session()) as session:
            session.transact(lambda cursor: cursor.execute("INSERT INTO crawl (name) VALUES ('kept')"))
    with alone(folder / "pg" / "keeper.lock", 30):
        return folder


@pytest.fixture
def old_place(new_place, made_old):
    shutil.copytree(made_old, new_place.path)
    assert clusters(new_place) == [str(OLD.major)]
    return new_place


def clusters(place):
    return sorted(path.name for path in (place.path / "pg").iterdir() if path.name[0].isdigit())


def assert_upgraded(place, user):
    assert user.sql("SELECT name FROM crawl WHERE name = 'kept'") == [["kept"]]
    [[version]] = user.sql("SHOW server_version")
    assert version.startswith(f"{NEW.major}.")
    assert clusters(place) == [str(NEW.major)]


def test_an_upgrade_keeps_the_rows_and_removes_the_old_cluster(old_place):
    assert_upgraded(old_place, old_place.user())


@pytest.mark.nightly
def test_an_upgrade_works_at_the_end_of_a_long_path(old_place, place_at, tmp_path):
    deep = tmp_path / ("x" * 100) / ("y" * 100)
    deep.mkdir(parents=True)
    moved = place_at(old_place.path.rename(deep / "data"))
    assert_upgraded(moved, moved.user())


@pytest.mark.nightly
def test_an_upgrade_starts_again_after_one_that_was_cut_off(old_place):
    unfinished = old_place.path / "pg" / f"{NEW.major}.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("half")
    assert_upgraded(old_place, old_place.user())


@pytest.mark.nightly
def test_an_upgrade_takes_a_cluster_that_was_not_shut_down(old_place):
    user = old_place.user(env={"TAMIAS_PG_BIN": OLD.folder})
    os.kill(old_place.running().keeper_pid, signal.SIGSTOP)
    keeper = old_place.running().keeper_pid
    old_place.kill("server")
    os.kill(keeper, signal.SIGKILL)
    user.kill()
    old_place.wait_until_nothing_runs()
    assert_upgraded(old_place, old_place.user())


def test_an_upgrade_whose_keeper_is_killed_is_done_by_the_next(old_place):
    user = old_place.begin()
    old_place.wait_until(lambda: list((old_place.path / "pg").glob("*.new/pg_upgrade_output.d")))
    keeper = next(pid for pid in old_place.processes() if _is_keeper(pid))
    os.kill(keeper, signal.SIGKILL)
    assert user.hear() == "ready"
    assert_upgraded(old_place, user)


def _is_keeper(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as words:
        return b"tamias.features.embedded.keeper" in words.read()


def test_an_old_cluster_left_by_a_finished_upgrade_is_removed(place):
    (place.path / "pg" / "15").mkdir()
    with closing(Database(place.path)):
        assert clusters(place) == [str(NEW.major)]


def test_a_cluster_without_its_programs_is_refused_and_kept(new_place):
    (new_place.path / "pg" / "11").mkdir(parents=True)
    with pytest.raises(DatabaseError, match="install PostgreSQL 11 beside it"):
        Database(new_place.path)
    assert clusters(new_place) == ["11"]


def test_a_cluster_of_a_newer_version_is_refused(place):
    (place.path / "pg" / "99").mkdir()
    with pytest.raises(SchemaTooNew, match=r"made by PostgreSQL 99") as told:
        Database(place.path)
    assert told.value.exit_code == 4
    assert clusters(place) == [str(NEW.major), "99"]


def test_a_folder_without_a_server_is_refused_as_binaries(new_place, tmp_path):
    told = new_place.user(env={"TAMIAS_PG_BIN": str(tmp_path)}).opened
    assert told["error"] == "DatabaseError"
    assert "holds no PostgreSQL server" in told["message"]
