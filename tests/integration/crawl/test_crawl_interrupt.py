"""Ctrl-C: prompt, polite, and nothing is lost."""

import signal
import time

from tamias.demo.plan import make_plan
from tamias.demo.server import serving


def test_an_interrupted_crawl_stops_soon_and_goes_on_later_as_it_began(fresh):
    with serving(make_plan(seed=7, nodes=8, resources=10, crawl_delay=False)) as web:
        calm, interrupted = fresh("calm"), fresh("interrupted")
        assert calm.crawl(*web.seeds).returncode == 0
        begun = len(web.log)
        crawl = interrupted.start("crawl", "--allow-private", "--delay", "0.1", *web.seeds)
        interrupted.wait_until(lambda: len(web.log) > begun + 10)
        crawl.send_signal(signal.SIGINT)
        asked_at = time.monotonic()
        _, said = crawl.communicate(timeout=30)
        assert crawl.returncode == 130
        assert time.monotonic() - asked_at < 4.0  # two seconds on a machine that is not busy
        assert "interrupted; " in said
        assert f"'tamias crawl --data {interrupted.data}' continues" in said
        assert "Traceback" not in said
        done = interrupted.run("crawl")
        assert done.returncode == 0, done.stderr
        assert interrupted.quads() == calm.quads()


def test_a_crawl_interrupted_at_its_very_start_says_how_to_go_on(tamias_at, site):
    tamias = tamias_at("data")
    site.pages["/"] = b'<> <#says> "page" .'
    crawl = tamias.start("crawl", "--allow-private", site.url("/"))
    tamias.wait_until((tamias.data / "pg").is_dir)
    crawl.send_signal(signal.SIGINT)
    _, said = crawl.communicate(timeout=30)
    assert (crawl.returncode, "continues" in said, "Traceback" in said) == (130, True, False), said
    done = tamias.run("crawl", "--allow-private", site.url("/"))
    assert done.returncode == 0, done.stderr
