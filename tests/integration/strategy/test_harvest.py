"""An example strategy finds what it looks for sooner than a breadth-first crawl: counted on a small web."""

import random

import pytest

from benchmarks.webs.sites import NOTHING, SiteAnswer, serving

HOSTS, PAGES, SEEDS = 60, 8, 10
RELEVANT = range(14, HOSTS, 10)
"""Hosts about rivers; none of them is a seed."""
PLAIN = ("read more", "our partners", "a short history", "news of the week")
TELLING = ("river levels", "flood maps", "rainfall by month", "the gauge at the bridge")
HTML = (("Content-Type", "text/html"),)


def links(host, page):
    """Three pages of the host, so that all can be reached, and seven elsewhere; kin link to each other."""
    chance = random.Random(f"{host}/{page}")
    own = [(host, child) for child in range(3 * page + 1, 3 * page + 4) if child < PAGES]
    kin = [(chance.choice(RELEVANT), 0) for _ in range(4 if host in RELEVANT else 0)]
    others = [(chance.randrange(HOSTS), chance.randrange(PAGES)) for _ in range(7 - len(kin))]
    return [*own, *kin, *others]


@pytest.fixture
def web():
    """The web, and in `web.visits` the host and page of every request."""

    def answer(asked):
        word = asked.path[1:] or "0"
        host = web.hosts.index(asked.host)
        if not word.isdigit() or int(word) >= PAGES:
            return NOTHING
        web.visits.append((host, int(word)))
        chance = random.Random(f"{host}/{word}/words")
        lines = []
        for to, page in links(host, int(word)):
            # A fifth of the links to what is looked for do not say so, and a few others lie.
            says = chance.random() > 0.2 if to in RELEVANT else chance.random() < 0.04
            words = chance.choice(TELLING if says else PLAIN)
            lines.append(f'<p>See <a href="{web.url(web.hosts[to], f"/{page}")}">{words}</a>')
        return SiteAnswer(body=f"<!DOCTYPE html><title>{host}</title>{''.join(lines)}".encode(), headers=HTML)

    with serving(answer, HOSTS, network="127.9") as web:
        web.visits = []
        yield web


def fetches_until(visits, share):
    """How many pages were asked for until this share of the relevant ones was had."""
    wanted = {(host, page) for host in RELEVANT for page in range(PAGES)}
    had = set()
    for count, visit in enumerate(visits, 1):
        had |= {visit} & wanted
        if len(had) >= share * len(wanted):
            return count
    return len(visits) + 1


def test_a_focused_crawl_needs_far_fewer_fetches(tamias_at, web, pytestconfig):
    visits = {}
    for name in ("breadth-first", "keywords"):
        tamias = tamias_at(name)
        tamias.env |= {"TAMIAS_SEEDS__PROBE": "false", "TAMIAS_FETCH__CONCURRENCY": "4"}
        tamias.env |= {"TAMIAS_STRATEGY__SECONDS": "30", "TAMIAS_FRONTIER__QUEUE": "host"}
        if name == "keywords":
            tamias.env["TAMIAS_STRATEGY__LINKS"] = "true"
            example = pytestconfig.rootpath / "examples" / "strategies" / "keywords.sql"
            assert tamias.run("strategy apply", str(example)).returncode == 0
        web.visits.clear()
        seeds = [web.url(host, "/") for host in web.hosts[:SEEDS]]
        done = tamias.run("crawl", *seeds, "--delay", "0", "--no-robots", "--allow-private", "--workers", "1")
        assert done.returncode == 0, done.stderr
        visits[name] = list(web.visits)
    plain, focused = (fetches_until(each, 0.8) for each in visits.values())
    assert 4 * focused <= 3 * plain
