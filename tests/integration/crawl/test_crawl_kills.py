"""A crawl that is killed again and again ends where an undisturbed one ends."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest
from psycopg.conninfo import conninfo_to_dict
from pyoxigraph import RdfFormat, parse

from tamias.database.connect import Database
from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import max_in_flight, serving
from tamias.features.demo.web import missing
from tests.integration.conftest import Tamias, is_worker, uses

pytestmark = pytest.mark.processes

KILLS = 10 if os.environ.get("TAMIAS_NIGHTLY") else 4
OFTEN = ["worker"] * 4 + ["supervisor"] * 2 + ["keeper_pid"] * 2 + ["server_pid"] * 2


@pytest.fixture(scope="module")
def web():
    with serving(make_plan(seed=3, nodes=10, resources=16, crawl_delay=False)) as running:
        yield running


@pytest.fixture(scope="module")
def calm(web, made_once, tmp_path_factory):
    """The quads of a crawl that nobody disturbs."""
    tamias = Tamias(tmp_path_factory.mktemp("calm") / "data")
    shutil.copytree(made_once, tamias.data)
    tamias.hold_server()
    assert tamias.crawl(*web.seeds).returncode == 0
    quads = tamias.quads()
    tamias.end()
    return quads


def go_on(tamias, web):
    return tamias.start("crawl", "--allow-private", "--delay", "0.25", *web.seeds)


def kill_one(tamias, kill, victim, supervisor):
    """Kills what was chosen; false if it is not there at this moment."""
    if victim == "supervisor":
        return kill(supervisor.pid)
    if victim == "worker":
        workers = tamias.workers()
        return bool(workers) and kill(random.choice(workers))
    pid = tamias.running().get(victim)
    return pid is not None and kill(pid)


def test_a_crawl_killed_many_times_finds_the_same_quads_and_asks_hardly_more(fresh, web, kill, calm):
    disturbed = fresh("disturbed")
    begun = len(web.log)
    victims = random.sample(OFTEN, KILLS)
    supervisor = go_on(disturbed, web)
    for victim in victims:
        time.sleep(random.uniform(0.2, 0.7))
        disturbed.wait_until(partial(kill_one, disturbed, kill, victim, supervisor))
        if victim == "supervisor":
            supervisor.wait()
            supervisor = go_on(disturbed, web)
    said = supervisor.communicate(timeout=60)
    assert supervisor.returncode == 0, (victims, said)
    assert disturbed.quads() == calm
    counts = Counter(visit.url for visit in web.log[begun:] if not visit.path.endswith("/busy"))
    assert max(counts.values()) <= 1 + KILLS, victims
    assert max(max_in_flight(web.log[begun:]).values()) == 1, victims


def test_workers_end_by_themselves_when_their_supervisor_is_killed(tamias, web, kill):
    tamias.let_go()
    supervisor = go_on(tamias, web)
    tamias.wait_until(lambda: len(tamias.workers()) > 0 and len(web.log) > 0)
    kill(supervisor.pid)
    supervisor.wait()
    tamias.wait_until(lambda: not tamias.workers(), seconds=5)
    tamias.wait_until(lambda: not tamias.in_use(), seconds=10)


def test_workers_end_although_nobody_has_read_what_they_told(tamias, site, kill):
    site.pages |= {f"/{number}": b'<> <#says> "page" .' for number in range(200)}
    supervisor = tamias.start("crawl", "--allow-private", "--delay", "0.05", *map(site.url, site.pages))
    tamias.wait_until(lambda: tamias.workers() and len(site.log) > 3)
    supervisor.send_signal(signal.SIGSTOP)
    seen = len(site.log)
    tamias.wait_until(lambda: len(site.log) > seen + 40)  # and the progress of these
    kill(supervisor.pid)
    tamias.wait_until(lambda: not tamias.workers(), seconds=30)


def fork_server_of(crawl):
    """The process of which the workers of a crawl are forks."""
    children = Path(f"/proc/{crawl.pid}/task/{crawl.pid}/children").read_text().split()
    found = [int(pid) for pid in children if is_worker(pid)]
    return found[0] if found else None


def test_the_process_that_workers_are_forks_of_holds_nothing_of_the_program_it_is_a_fork_of(tamias, web):
    crawl = go_on(tamias, web)
    tamias.wait_until(tamias.workers)
    server = fork_server_of(crawl)
    assert os.getsid(server) == server  # a terminal's Ctrl-C does not reach it
    assert not uses(server, tamias.data)  # or the database would not end with the crawl
    crawl.send_signal(signal.SIGINT)
    assert crawl.wait(60) == 130


def test_workers_outlive_the_process_that_they_are_forks_of_and_the_dead_are_replaced(fresh, web, kill, calm):
    disturbed = fresh("disturbed")
    begun = len(web.log)
    crawl = go_on(disturbed, web)
    disturbed.wait_until(lambda: len(web.log) > begun + 10 and disturbed.workers())
    before = set(disturbed.workers())
    assert kill(fork_server_of(crawl))
    disturbed.wait_until(lambda: len(web.log) > begun + 25)
    assert before <= set(disturbed.workers())
    for pid in before:
        assert kill(pid)
    disturbed.wait_until(lambda: len(set(disturbed.workers()) - before) == len(before))
    _, said = crawl.communicate(timeout=60)
    assert crawl.returncode == 0, said
    assert disturbed.quads() == calm
    assert max(max_in_flight(web.log[begun:]).values()) == 1


def test_nothing_of_a_crawl_that_is_interrupted_early_is_left_running(tamias, site):
    site.pages["/a"] = b'<> <#says> "page" .'
    for pause in (0, 0.2, 0.6):
        crawl = tamias.start("crawl", "--allow-private", "--delay", "5", site.url("/a"))
        tamias.wait_until(lambda crawl=crawl: fork_server_of(crawl))
        server = fork_server_of(crawl)
        time.sleep(pause)
        crawl.send_signal(signal.SIGINT)
        _, said = crawl.communicate(timeout=60)
        assert crawl.returncode in {0, 130}, said
        assert not is_worker(server)
        assert not tamias.workers()


def test_on_a_server_of_the_users_own_a_killed_worker_is_replaced(fresh, tamias_at, web, kill):
    with closing(Database(fresh("server").data)) as database:
        tamias = tamias_at("data")
        tamias.env["TAMIAS_DB"] = "postgresql:///?" + urlencode(conninfo_to_dict(database.embedded.address()))
        begun = len(web.log)
        crawl = go_on(tamias, web)
        tamias.wait_until(lambda: len(web.log) > begun + 20)
        assert kill(tamias.workers()[0])
        _, said = crawl.communicate(timeout=60)
        assert crawl.returncode == 0, said
        assert not (tamias.data / "pg").exists()
        exported = parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS)
        assert missing(web.expected.quads, exported) == set()


def test_a_limit_on_urls_is_exact_although_a_worker_is_killed(tamias, site, kill):
    site.pages |= {f"/{number}": b'<> <#says> "page" .' for number in range(60)}
    words = ("crawl", "--allow-private", "--delay", "0.05", "--max-urls", "40", "--workers", "2")
    crawl = tamias.start(*words, *map(site.url, site.pages))
    for turn in (10, 25):
        tamias.wait_until(lambda turn=turn: len(site.log) > turn and tamias.workers())
        kill(tamias.workers()[0])
    _, said = crawl.communicate(timeout=60)
    assert crawl.returncode == 5, said
    assert len(tamias.attempts()) == 40
