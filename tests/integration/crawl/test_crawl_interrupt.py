"""Ctrl-C: prompt, polite, and nothing is lost."""

import signal
import subprocess
import sys
from contextlib import closing

import pytest

from tamias.database.connect import Database
from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import serving
from tests.messages import unsaid

pytestmark = pytest.mark.processes


def test_an_interrupted_crawl_stops_soon_and_goes_on_later_as_it_began(fresh):
    with serving(make_plan(seed=7, nodes=8, resources=10, crawl_delay=False)) as web:
        calm, interrupted = fresh("calm"), fresh("interrupted")
        assert calm.crawl(*web.seeds).returncode == 0
        begun = len(web.log)
        crawl = interrupted.start("crawl", "--allow-private", "--delay", "0.1", *web.seeds)
        interrupted.wait_until(lambda: len(web.log) > begun + 10)
        crawl.send_signal(signal.SIGINT)
        _, said = crawl.communicate(timeout=300)
        assert crawl.returncode == 130
        assert len(web.log) - begun < begun - 10, "it did not end before its end"
        assert "interrupted; " in said
        assert f"'tamias crawl --data {interrupted.data}' continues" in said
        assert "Traceback" not in said
        done = interrupted.run("crawl")
        assert done.returncode == 0, done.stderr
        assert interrupted.quads() == calm.quads()


def test_seeds_of_a_crawl_interrupted_while_its_database_starts_are_fetched_later(tamias_at, site):
    tamias = tamias_at("data")
    site.pages |= {"/": b"<> <#next> </next> .", "/next": b"<> <#next> </beyond> .", "/beyond": b""}
    crawl = tamias.start("crawl", "--allow-private", "--delay", "0", "--depth", "1", site.url("/"))
    assert crawl.stderr.readline() == "starting the database…\n"
    crawl.send_signal(signal.SIGINT)
    _, said = crawl.communicate(timeout=60)
    assert (crawl.returncode, said, site.log) == (
        130,
        f"interrupted; 'tamias crawl --data {tamias.data}' continues\n",
        [],
    )
    assert not tamias.in_use()
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    assert [path for path, _ in site.log] == ["/robots.txt", "/", "/next"]
    assert not list((tamias.data / "pending-seeds").iterdir())


@pytest.mark.parametrize("words", [(), ("--json",), ("--max-urls", "1")])
def test_a_crawl_that_has_returned_has_left_nothing_running(tamias, site, words):
    tamias.let_go()
    site.pages |= {"/": b"<> <#next> </next> .", "/next": b""}
    done = tamias.crawl(site.url("/"), *words)
    assert not tamias.in_use()
    assert done.returncode in (0, 5), done.stderr


def test_a_crawl_beside_another_user_of_the_data_does_not_wait_for_it(tamias, site):
    tamias.let_go()
    site.pages["/"] = b""
    with closing(Database(tamias.data)):
        assert tamias.crawl(site.url("/")).returncode == 0
        assert tamias.running()


def test_seeds_that_the_database_refuses_are_not_fetched_later(tamias_at, site):
    tamias = tamias_at("data")
    done = tamias.run("crawl", site.url("/"), "--db", "postgresql://nobody@127.0.0.1:1/none")
    assert (done.returncode, tamias.data.exists()) == (1, False), done.stderr


def test_an_import_that_was_interrupted_is_to_be_run_again(tamias_at, site, tmp_path):
    tamias = tamias_at("data")
    (tmp_path / "list.cdxj").write_text("")
    crawl = tamias.start("crawl", "--allow-private", f"cdx:{tmp_path / 'list.cdxj'}")
    assert crawl.stderr.readline() == "starting the database…\n"
    crawl.send_signal(signal.SIGINT)
    _, said = crawl.communicate(timeout=60)
    assert not unsaid(said)
    assert not tamias.in_use()


INTERRUPTED_WHILE_IT_LOADS = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "asyncio.events":
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from tamias.cli.main import main
main()
"""


def test_a_crawl_that_is_interrupted_while_it_loads_says_so(tmp_path):
    words = ["crawl", "http://a.example/", "--data", str(tmp_path / "data"), "--contact", "me@a.example"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IT_LOADS, *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stderr.splitlines()[-1].startswith("interrupted; ")
    assert (done.returncode, "Traceback" in done.stderr) == (130, False)
