"""The embedded server lives exactly as long as somebody uses it."""

import os
import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest

from tamias.database.connect import Database
from tamias.model.errors import DatabaseError, DataMissing


def test_a_first_start_makes_the_database_and_a_second_finds_it(new_place):
    first = new_place.user()
    first.sql("INSERT INTO crawl (name) VALUES ('kept')")
    first.end()
    new_place.wait_until_nothing_runs()
    assert new_place.user().sql("SELECT name FROM crawl WHERE name = 'kept'") == [["kept"]]


def test_two_processes_share_one_server(place):
    one, other = place.user(), place.user()
    started = "SELECT pg_postmaster_start_time()::text"
    assert one.sql(started) == other.sql(started)


def test_the_server_stays_while_somebody_uses_it(place):
    one, other = place.user(), place.user()
    server = place.running().server_pid
    one.end()
    assert other.sql("SELECT 1") == [[1]]
    assert place.running().server_pid == server


def test_the_server_ends_with_its_last_user(place):
    one, other = place.user(), place.user()
    one.end()
    other.end()
    place.wait_until_nothing_runs()


def test_a_server_that_ended_by_itself_was_shut_down_cleanly(new_place):
    new_place.user().end()
    new_place.wait_until_nothing_runs()
    assert not list((new_place.path / "pg").glob("*/postmaster.pid"))


def test_eight_processes_that_start_at_once_share_one_new_server(new_place):
    users = [new_place.begin() for _ in range(8)]
    assert [user.hear() for user in users] == ["ready"] * 8
    assert len({user.sql("SELECT pg_postmaster_start_time()::text")[0][0] for user in users}) == 1


def test_a_process_that_comes_while_the_server_ends_gets_a_new_one(place):
    for _ in range(5):
        user = place.user()
        assert user.sql("SELECT 1") == [[1]]
        user.end()


def test_no_mode_of_a_parent_directory_changes(place_at, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    above = [closed, *closed.parents]
    before = [path.stat() for path in above]
    place = place_at(closed / "data")
    assert place.user().opened == "ready"
    told = [(each.st_mode, each.st_uid, each.st_gid) for each in before]
    assert [(each.st_mode, each.st_uid, each.st_gid) for each in (path.stat() for path in above)] == told


def test_no_account_is_created(new_place):
    before = Path("/etc/passwd").read_bytes()
    new_place.user().end()
    assert Path("/etc/passwd").read_bytes() == before


def test_nobody_else_can_reach_the_server(session, place, ask):
    assert stat.S_IMODE((place.path / "pg").stat().st_mode) == 0o700
    assert ask(session, "SHOW listen_addresses") == [("",)]


def test_no_zombie_is_left_to_a_process_that_lives_on(place):
    with closing(Database(place.path)):
        pass
    place.wait_until_nothing_runs()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert "Z" not in [Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] for pid in children]


def test_the_keeper_inherits_no_descriptor(place, tmp_path):
    with (tmp_path / "precious").open("w") as precious:
        os.set_inheritable(precious.fileno(), True)
        with closing(Database(place.path)):
            for pid in (place.running().keeper_pid, place.running().server_pid):
                held = {os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()}
                assert str(tmp_path / "precious") not in held


def test_a_terminals_interrupt_does_not_reach_the_keeper(session, place):
    assert os.getsid(place.running().keeper_pid) != os.getsid(0)


def test_a_module_in_the_working_directory_is_not_taken_for_ours(place, tmp_path, monkeypatch):
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    with closing(Database(place.path)) as database:
        assert database.embedded is not None


def test_settings_for_other_servers_do_not_matter(new_place):
    elsewhere = {"PGHOST": "nowhere.invalid", "PGHOSTADDR": "192.0.2.1", "PGPORT": "1", "PGDATA": "/nowhere"}
    assert new_place.user(env=elsewhere).opened == "ready"


@pytest.mark.parametrize("name", ["it's a, b = ä", "x" * 100 + "/" + "y" * 100])
def test_a_data_directory_may_have_any_name(made_once, place_at, tmp_path, name):
    place = place_at(shutil.copytree(made_once, tmp_path / name))
    assert place.user().sql("SELECT 1") == [[1]]


def test_a_relative_data_directory_stays_the_same_after_a_change_of_directory(
    place, tmp_path, ask, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with closing(Database(Path("data"))) as database, closing(database.session()) as session:
        monkeypatch.chdir("/")
        assert ask(session, "SELECT 1") == [(1,)]


def test_opening_what_is_not_there_leaves_nothing_behind(tmp_path):
    with pytest.raises(DataMissing) as told:
        Database(tmp_path / "absent", create=False)
    assert told.value.exit_code == 10
    assert not list(tmp_path.iterdir())


def test_opening_what_is_there_needs_no_permission_to_create(place):
    place.user().end()
    assert place.user(create=False).opened == "ready"


def test_a_folder_where_making_failed_counts_as_missing(new_place):
    (new_place.path / "pg").mkdir(parents=True)
    with pytest.raises(DataMissing):
        Database(new_place.path, create=False)


def test_a_file_in_the_way_is_told_in_one_sentence(tmp_path):
    (tmp_path / "data").write_text("")
    with pytest.raises(
        DatabaseError, match=r"cannot keep the database at .*: Not a directory; choose another"
    ):
        Database(tmp_path / "data")


def test_a_worker_is_known_as_dead_when_its_process_is(place):
    with closing(Database(place.path)) as one, closing(Database(place.path)) as other:
        number = one.embedded.enrol()
        assert other.embedded.dead_workers() == []
        one.close()
        assert other.embedded.dead_workers() == [number]
        other.embedded.forget(number)
        assert other.embedded.dead_workers() == []
