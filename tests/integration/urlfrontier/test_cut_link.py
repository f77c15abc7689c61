"""Workers in another network: pages slower than a lease, the link cut, the service killed meanwhile.

`python -m benchmarks faults F23` cuts the link for longer than tests have time for.
"""

import json
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing

import pytest
from frontier_client import Instance

from tamias.database.connect import Database
from tests.networks.far_networks import SERVICE, FarNetworks, command_in, enter
from tests.networks.island import why_not

CUT_SECONDS = 5.0
LEASE = 1.2
SLOW = 3.0
DELAY = 0.2
HOSTS, PAGES = 3, 6


@pytest.fixture
def networks():
    """Two namespaces: servers and workers, with one cable for the web and one for the service."""
    if (missing := why_not()) is not None:
        pytest.skip(missing)
    with FarNetworks(HOSTS) as made:
        yield made


def inside(namespace, work):
    """The result of work in a thread of that namespace: sockets made there stay there."""
    results = []

    def run():
        enter(namespace)
        results.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


@pytest.fixture
def web(networks, site_at):
    """Sites whose pages form a chain through all hosts; the first page of each takes longer than a lease."""
    sites = [inside(networks.servers, lambda host=host: site_at(host)) for host in networks.web]
    for number, site in enumerate(sites):
        for page in range(PAGES):
            links = [sites[(number + 1) % HOSTS].url(f"/{page}"), site.url(f"/{(page + 1) % PAGES}")]
            site.pages[f"/{page}"] = turtle(links, SLOW if page % 4 == 0 else 0)
    return sites


def turtle(links, seconds):
    body = "".join(f"<> <#to> <{link}> ." for link in links).encode()

    def page(handler):
        has_left = select.select([handler.connection], [], [], seconds)[0]
        handler.answering = time.monotonic()
        if has_left:  # a worker that cannot renew its lease gives up what is under way
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return page


def expected(sites):
    quads = set()
    for number, site in enumerate(sites):
        for page in range(PAGES):
            here = site.url(f"/{page}")
            for link in (sites[(number + 1) % HOSTS].url(f"/{page}"), site.url(f"/{(page + 1) % PAGES}")):
                quads.add(f"<{here}> <{here}#to> <{link}> <{here}> .")
    return quads


class FarService(Instance):
    """`tamias frontier` where the workers can reach it."""

    def __init__(self, namespace, data, env, port=0):
        words = [*command_in(namespace), sys.executable, "-m", "tamias", "frontier", "--data", str(data)]
        self.process = subprocess.Popen(
            [*words, "--host", SERVICE, "--port", str(port), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env,
        )  # fmt: skip
        self.address = json.loads(self.process.stdout.readline())["address"]
        self.port = int(self.address.rpartition(":")[2])


def left(session):
    text = "SELECT coalesce(sum(open), 0)::int8, coalesce(sum(known), 0)::int8 FROM queue WHERE crawl = 1"
    return session.transact(lambda cursor: cursor.execute(text).fetchone())


def test_pages_slower_than_a_lease_a_cut_link_and_a_killed_service_lose_nothing(
    networks, web, tamias, tmp_path
):
    tamias.env["TAMIAS_FRONTIER__LEASE"] = str(LEASE)
    tamias.env["TAMIAS_TOKEN"] = "of the service"
    begun = tamias.run("crawl", "--allow-private", "--delay", str(DELAY), "--in-service", web[0].url("/0"))
    assert begun.returncode == 0, begun.stderr
    service = FarService(networks.servers, tamias.data, tamias.env)
    far = subprocess.Popen(
        [*command_in(networks.workers), sys.executable, "-m", "tamias", "worker",
         "--frontier", service.address, "--workers", "2", "--scratch", str(tmp_path / "scratch"),
         "--allow-private", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=tamias.env,
    )  # fmt: skip
    try:
        requests = lambda: sum(len(site.log) for site in web)  # noqa: E731
        tamias.wait_until(lambda: requests() > 8)
        networks.plug(plugged=False)
        time.sleep(CUT_SECONDS / 2)
        service.kill()
        service = FarService(networks.servers, tamias.data, tamias.env, service.port)
        time.sleep(CUT_SECONDS / 2)
        networks.plug(plugged=True)
        with closing(Database(tamias.data)) as database, closing(database.session()) as session:
            tamias.wait_until(lambda: left(session) == (0, HOSTS * PAGES), 180)
        far.send_signal(signal.SIGTERM)
        _, said = far.communicate(timeout=60)
        assert far.returncode == 0, said
        assert "Traceback" not in said
    finally:
        far.kill()
        far.communicate()
        service.kill()
    assert tamias.quads() == expected(web)
    attempts = tamias.attempts()
    assert {url: len(each) for url, each in attempts.items()} == {
        site.url(f"/{page}"): 1 for site in web for page in range(PAGES)
    }
    asked = Counter((site.url(path) for site in web for path, _ in site.log))
    least = min(gap for site in web for gap in site.gaps())
    # A busy machine renews leases late and asks again: that costs requests, never a record or the delay.
    sys.stdout.write(f"{sum(asked.values())} requests for {len(asked)} URLs, least gap {least:.3f} s\n")
    assert least >= DELAY
