"""kill -9 of anything: the server goes on or ends as it should, and nothing acknowledged is lost."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tamias.database.connect import Database

INSERT = "INSERT INTO crawl (name) VALUES (%s) ON CONFLICT DO NOTHING"


def names(ask, session):
    return {name for (name,) in ask(session, "SELECT name FROM crawl")}


def test_a_killed_user_does_not_disturb_the_others(place):
    doomed, other = place.user(), place.user()
    started = other.sql("SELECT pg_postmaster_start_time()::text")
    doomed.kill()
    assert other.sql("SELECT pg_postmaster_start_time()::text") == started


def test_the_server_ends_when_its_last_user_is_killed(place):
    place.user().kill()
    place.wait_until_nothing_runs()


def test_the_server_ends_when_its_user_is_killed_while_it_starts(new_place):
    user = new_place.begin()
    new_place.wait_until(new_place.processes)
    user.kill()
    new_place.wait_until_nothing_runs()
    assert new_place.user().opened == "ready"


@pytest.mark.parametrize("which", ["keeper", "server"])
def test_work_goes_on_by_itself_when_one_is_killed(session, place, ask, which):
    ask(session, INSERT, ["before"])
    before = place.running()
    place.kill(which)
    place.wait_until(lambda: before.server_pid not in place.processes())
    ask(session, INSERT, ["after"])
    assert {"before", "after"} <= names(ask, session)
    place.wait_until(lambda: place.running().server_pid != before.server_pid)


def test_a_server_goes_down_with_its_keeper(session, place):
    server = place.running().server_pid
    place.kill("keeper")
    place.wait_until(lambda: server not in place.processes())


def test_a_child_goes_down_with_its_parent_though_a_shell_had_them_ignore_it(place):
    """As one does that starts programs in the background."""
    program = """if True:
        import signal, subprocess, time
        from tamias.features.embedded.server import ServerAccount
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        enter = ServerAccount("self").enter(ends_with_parent=True)
        print(subprocess.Popen(["sleep", "60"], preexec_fn=enter).pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    place.wait_until(lambda: not is_running(child))


def is_running(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_a_keeper_that_is_told_to_end_stops_its_server_cleanly(session, place):
    os.kill(place.running().keeper_pid, signal.SIGTERM)
    place.wait_until_nothing_runs()
    assert not list((place.path / "pg").glob("*/postmaster.pid"))


def test_keeper_and_server_killed_together_are_replaced(session, place, ask):
    ask(session, INSERT, ["before"])
    place.kill("keeper")
    place.kill("server")
    assert "before" in names(ask, session)


def test_an_orphan_of_a_killed_server_is_waited_for(session, place, ask):
    ask(session, INSERT, ["before"])
    [(orphan,)] = ask(session, "SELECT pg_backend_pid()")
    os.kill(orphan, signal.SIGSTOP)
    place.kill("server")
    threading.Timer(1.0, os.kill, [orphan, signal.SIGKILL]).start()
    with closing(Database(place.path)) as database, closing(database.session()) as other:
        assert "before" in names(ask, other)
        assert orphan not in place.processes()


def test_a_keeper_killed_while_it_makes_the_cluster_leaves_nothing_half_made(new_place):
    user = new_place.begin()
    pg = new_place.path / "pg"
    new_place.wait_until(lambda: list(pg.glob("*.new/base")))
    keeper = next(pid for pid in new_place.processes() if _is_keeper(pid))
    os.kill(keeper, signal.SIGKILL)
    assert user.hear() == "ready"
    assert user.sql("SELECT 1") == [[1]]
    assert not list(pg.glob("*.new"))


def _is_keeper(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as words:
        return b"tamias.features.embedded.keeper" in words.read()


def test_a_number_of_a_dead_server_now_used_by_another_process_is_no_obstacle(place):
    place.user().end()
    place.wait_until_nothing_runs()
    [cluster] = [path for path in (place.path / "pg").iterdir() if path.name.isdigit()]
    note = [str(os.getpid()), str(cluster), "1700000000", "5432", "../socket", "", "1 1", "ready"]
    (cluster / "postmaster.pid").write_text("\n".join(note) + "\n")
    assert place.user().opened == "ready"


@pytest.mark.parametrize("seed", [1])
def test_no_acknowledged_row_is_lost_under_random_kills(session, place, ask, seed):
    chance = random.Random(seed)
    done = threading.Event()

    def kill_at_random():
        kills = 0
        while kills < 15:
            time.sleep(chance.uniform(0.05, 0.6))
            kills += place.kill(chance.choice(["keeper", "server"]))
        done.set()

    killer = threading.Thread(target=kill_at_random)
    killer.start()
    acknowledged = []
    while not done.is_set():
        ask(session, INSERT, [f"row {len(acknowledged)}"])
        acknowledged.append(f"row {len(acknowledged)}")
    killer.join()
    assert set(acknowledged) <= names(ask, session)
