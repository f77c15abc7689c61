"""Workers at a database and at a frontier service, one crawl: nothing twice, nothing rude, nothing lost."""

import json
import re
import signal
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
from frontier_client import Instance
from pyoxigraph import RdfFormat, parse

from tamias.database.connect import Database
from tamias.features.demo.plan import make_plan
from tamias.features.demo.server import max_in_flight, serving
from tamias.features.demo.web import missing
from tests.messages import unsaid
from tests.ports import free_port

DELAY = 0.25
HOSTS = 10
PAGES = 30
WORKER = re.compile(rb"tamias\.(crawl\.worker|features\.remote_workers)|^tamias-worker")


class Web:
    """Hosts with pages that link to the next page of their host and to the same page of the next host."""

    def __init__(self, site_at):
        self.sites = [site_at(f"127.0.{number + 3}.1") for number in range(HOSTS)]
        self.quads = set()
        for number, site in enumerate(self.sites):
            for page in range(PAGES):
                here = site.url(f"/{page}")
                links = [
                    self.sites[(number + 1) % HOSTS].url(f"/{page}"),
                    site.url(f"/{(page + 1) % PAGES}"),
                ]
                site.pages[f"/{page}"] = "".join(f"<> <#to> <{link}> ." for link in links).encode()
                self.quads |= {f"<{here}> <{here}#to> <{link}> <{here}> ." for link in links}

    def seeds(self):
        return [site.url("/0") for site in self.sites[::3]]

    def requests(self):
        return sum(len(site.log) for site in self.sites)

    def hold_back(self, reply):
        """Pages are not answered until the event that is returned is set."""
        go_on = threading.Event()
        for site in self.sites:
            for path, body in site.pages.items():
                site.pages[path] = answering_after(go_on, reply(200, body, Content_Type="text/turtle"))
        return go_on

    def counts(self):
        return [Counter(path for path, _ in list(site.log)) for site in self.sites]


def answering_after(event, page):
    return lambda handler: event.wait(60) and page(handler)


@pytest.fixture
def web(site_at):
    return Web(site_at)


@pytest.fixture
def service(tamias):
    """`service()` starts the frontier, again on the same port if it ran before."""
    running = []

    def start(port=0):
        port = running[-1].port if running else port
        running.append(Instance(tamias.data, port=port, env=tamias.env))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.stop()


def far_workers(scratch):
    """The process ids of workers without a database, by their notes in the scratch folder."""
    alive = []
    for note in Path("/proc").glob("[0-9]*/fd"):
        with suppress(OSError):
            if any(str(each.readlink()).startswith(f"{scratch}/analysing/") for each in note.iterdir()):
                alive.append(int(note.parent.name))
    return alive


def start_far(tamias, address, scratch, *words, workers=4):
    return tamias.start(
        "worker", "--frontier", address, "--workers", str(workers), "--scratch", str(scratch),
        "--allow-private", "--json", *words,
    )  # fmt: skip


def ended(process):
    """What the workers without a database told last."""
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return json.loads(out.splitlines()[-1])


def test_eight_workers_half_of_them_far_ask_for_every_url_once_although_one_and_the_frontier_are_killed(
    tamias, service, web, reply, tmp_path, kill
):
    instance = service()
    scratch = tmp_path / "scratch"
    far = start_far(tamias, instance.address, scratch)
    tamias.wait_until(lambda: len(far_workers(scratch)) == 4)
    words = ("--allow-private", "--delay", str(DELAY), "--workers", "4", "--json")
    assert tamias.run("crawl", *words, "--in-service", *web.seeds()).returncode == 0
    everybody_is_there = web.hold_back(reply)
    tamias.wait_until(lambda: web.requests() > 5)
    crawl = tamias.start("crawl", *words)
    tamias.wait_until(lambda: len(worker_processes(crawl)) == 4)
    everybody_is_there.set()
    tamias.wait_until(lambda: web.requests() > 40 and far_workers(scratch))
    assert kill(far_workers(scratch)[0])
    tamias.wait_until(lambda: web.requests() > 70)
    instance.kill()
    service()
    out, said = crawl.communicate(timeout=300)
    assert crawl.returncode == 0, said
    near = json.loads(out.splitlines()[-1])["visited"]
    delivered = ended(far)["visited"]

    assert tamias.quads() == web.quads
    for asked in web.counts():
        assert sum(asked.values()) - len(asked) <= 1, "repeated: what the dead worker was asking for"
        assert set(asked) == {"/robots.txt", *(f"/{page}" for page in range(PAGES))}
    for site in web.sites:
        assert min(gaps_but_of_the_dead(site)) >= DELAY
    assert near > 0
    assert delivered > 0


def gaps_but_of_the_dead(site):
    """Without requests that were repeated: a busy server may learn of a dead worker's request late."""
    asked = Counter(path for path, _ in site.log)
    again = {begun for path, begun in site.log if asked[path] > 1}
    site.spans = [span for span in site.spans if span[0] not in again]
    return site.gaps()


def test_far_workers_wait_for_their_service_and_then_find_what_stands_on_the_data_web(
    tamias, service, tmp_path
):
    with serving(make_plan(seed=5, nodes=8, resources=10, crawl_delay=False)) as data_web:
        begun = tamias.run("crawl", "--allow-private", "--delay", "0", "--in-service", *data_web.seeds)
        assert begun.returncode == 0, begun.stderr
        assert not data_web.log
        port = free_port()
        far = start_far(tamias, f"127.0.0.1:{port}", tmp_path / "scratch", workers=2)
        service(port)
        with closing(Database(tamias.data)) as database, closing(database.session()) as session:
            tamias.wait_until(lambda: urls_left(session) == 0)
        ended(far)
        exported = parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS)
        assert missing(data_web.expected.quads, exported) == set()
        assert max(max_in_flight(data_web.log).values()) == 1


def test_far_workers_deliver_links_with_the_words_they_stand_among(tamias, service, site, reply, tmp_path):
    page = '<html lang=en><p>before <a href="/x">anchor é</a> after</p><a hreflang=fr href="/y">y</a></html>'
    site.pages["/"] = reply(200, page.encode(), Content_Type="text/html; charset=utf-8")
    for path in ("/x", "/y"):
        site.pages[path] = reply(200, b"<html></html>", Content_Type="text/html")
    tamias.env["TAMIAS_STRATEGY__LINKS"] = "true"
    words = ("--allow-private", "--no-robots", "--delay", "0", "--in-service")
    assert tamias.run("crawl", *words, site.url("/")).returncode == 0
    far = start_far(tamias, service().address, tmp_path / "scratch", workers=1)
    links = "SELECT to_url, anchor, context_left, context_right, language FROM links ORDER BY to_url"
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
        assert session.transact(lambda cursor: cursor.execute(links).fetchall()) == [
            (site.url("/x"), "anchor é", "before", "after", "en"),
            (site.url("/y"), "y", "", "", "fr"),
        ]
    ended(far)


def test_what_far_workers_bring_goes_to_the_store_that_the_service_was_told(tamias, service, site, tmp_path):
    site.pages["/"] = b'<> <#is> "kept" .'
    words = ("--allow-private", "--no-robots", "--delay", "0", "--in-service")
    assert tamias.run("crawl", *words, site.url("/")).returncode == 0
    tamias.env["TAMIAS_ARCHIVE__STORE"] = str(tmp_path / "store")
    far = start_far(tamias, service().address, tmp_path / "scratch", workers=1)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
    ended(far)
    assert list((tmp_path / "store" / "rdf").iterdir())
    assert not list(tamias.data.glob("rdf/*"))
    assert tamias.quads() == {f'<{site.url("/")}> <{site.url("/")}#is> "kept" <{site.url("/")}> .'}


def test_a_service_sends_a_worker_to_private_addresses_only_if_it_may(tamias, service, web, tmp_path):
    begun = tamias.run("crawl", "--allow-private", "--delay", "0", "--in-service", *web.seeds())
    assert begun.returncode == 0, begun.stderr
    instance = service()
    words = ("--frontier", instance.address, "--workers", "1", "--scratch", str(tmp_path / "scratch"))
    refused = tamias.run("worker", *words)
    assert refused.returncode == 4
    assert not unsaid(refused.stderr, "--allow-private")
    assert web.requests() == 0


def test_a_far_worker_has_no_more_requests_under_way_than_it_is_told(tamias, service, site_at, tmp_path):
    lock, under_way, most = threading.Lock(), [0], [0]

    def page(handler):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.1)
        with lock:
            under_way[0] -= 1
        handler.send_response(200)
        handler.send_header("Content-Type", "text/turtle")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    hosts = [site_at(f"127.0.3.{number}") for number in range(1, 9)]
    for host in hosts:
        host.pages["/"] = page
    words = ("--allow-private", "--delay", "0", "--in-service")
    assert tamias.run("crawl", *words, *(host.url("/") for host in hosts)).returncode == 0
    far = start_far(tamias, service().address, tmp_path / "scratch", "--concurrency", "2", workers=1)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
    ended(far)
    assert most[0] <= 2 * 2  # hosts that have not answered yet have as many slots of their own


def test_far_workers_that_die_before_hello_or_without_a_service_are_replaced_and_the_end_waits_for_nobody(
    tamias, service, web, tmp_path, kill
):
    scratch, port = tmp_path / "scratch", free_port()
    begun = tamias.run("crawl", "--allow-private", "--delay", "0.1", "--in-service", *web.seeds())
    assert begun.returncode == 0, begun.stderr
    far = start_far(tamias, f"127.0.0.1:{port}", scratch, "-v", workers=1)
    tamias.wait_until(lambda: worker_processes(far))
    (first,) = worker_processes(far)
    assert kill(first)  # it has found no service yet
    instance = service(port)
    tamias.wait_until(lambda: web.requests() > 5 and far_workers(scratch))
    instance.kill()
    (second,) = far_workers(scratch)
    assert second != first
    assert kill(second)
    tamias.wait_until(lambda: not far_workers(scratch))
    far.send_signal(signal.SIGTERM)  # its death cannot be reported to anybody
    _, said = far.communicate(timeout=60)
    assert far.returncode == 0, said
    assert not unsaid(said)


def worker_processes(program):
    """The process ids of the workers of a program: the forks of its child."""
    servers = [
        pid for pid in _children(program.pid) if WORKER.search(Path(f"/proc/{pid}/cmdline").read_bytes())
    ]
    return [worker for server in servers for worker in _children(server)]


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_far_workers_ask_for_the_rules_behind_robots_redirects_in_the_turn_of_their_host(
    tamias, service, site_at, reply, tmp_path
):
    victim = site_at("127.0.2.1")
    victim.pages["/rules?"] = b"User-agent: *\nDisallow: /shut\n"
    hosts = [site_at(f"127.0.3.{number}") for number in range(1, 5)]
    for number, host in enumerate(hosts):
        host.pages |= {
            "/robots.txt": reply(302, Location=victim.url(f"/rules?{number}")),
            "/": b"<> <#to> </open>, </shut> .",
            "/open": b"<> <#is> <#open> .",
            "/shut": b"<> <#is> <#shut> .",
        }
    words = ("--allow-private", "--delay", str(DELAY), "--in-service")
    begun = tamias.run("crawl", *words, *(host.url("/") for host in hosts))
    assert begun.returncode == 0, begun.stderr
    far = start_far(tamias, service().address, tmp_path / "scratch", workers=2)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
    ended(far)
    assert {path for path, _ in victim.log} >= {f"/rules?{number}" for number in range(4)}
    assert min(victim.gaps()) >= DELAY
    for host in hosts:
        assert (host.asked("/robots.txt"), host.asked("/open"), host.asked("/shut")) == (1, 1, 0)


def urls_left(session):
    return session.transact(
        lambda cursor: cursor.execute("SELECT sum(open)::int8 FROM queue WHERE crawl = 1").fetchone()[0]
    )


def test_workers_at_the_database_work_until_they_are_stopped(tamias, web):
    begun = tamias.run("crawl", "--allow-private", "--delay", "0", "--in-service", *web.seeds())
    assert begun.returncode == 0, begun.stderr
    near = tamias.start("worker", "--workers", "1", "--allow-private")
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
    assert near.poll() is None
    near.send_signal(signal.SIGTERM)
    _, said = near.communicate(timeout=60)
    assert near.returncode == 0, said
    assert tamias.quads() == web.quads


def test_far_workers_have_credentials_of_their_own_and_the_service_has_no_part_in_them(
    tamias, service, site_at, reply, tmp_path
):
    """The service's own would be refused, and where it says that the host is, the worker does not look."""
    site, given = site_at("127.0.0.5"), []

    def page(handler):
        given.append(handler.headers.get("X-Api-Key"))
        known = given[-1] == "key-of-the-worker"
        reply(*(200, b"<> <#is> 1 .") if known else (401,), Content_Type="text/turtle")(handler)

    site.pages["/data"] = page
    files = {name: tmp_path / f"{name}.toml" for name in ("service", "worker")}
    for name, file in files.items():
        table = f'[[credentials]]\nurl = "{site.url("/")}"\nheaders = {{ X-Api-Key = "key-of-the-{name}" }}\n'
        file.write_text(table)
        file.chmod(0o600)
    tamias.env["TAMIAS_FETCH__CREDENTIALS"] = str(files["service"])
    words = ("--allow-private", "--no-robots", "--delay", "0", "--in-service")
    words += ("--resolve", f"{site.address}:127.0.0.6")
    assert tamias.run("crawl", *words, site.url("/data")).returncode == 0
    instance = service()
    tamias.env["TAMIAS_FETCH__CREDENTIALS"] = str(files["worker"])
    far = start_far(tamias, instance.address, tmp_path / "scratch", workers=1)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: urls_left(session) == 0)
    ended(far)
    assert given == ["key-of-the-worker"]
    assert len(tamias.quads()) == 1
    kept = [path for path in tamias.data.rglob("*") if path.is_file()]
    assert [path for path in kept if b"key-of-the-" in path.read_bytes()] == []


def forgotten_reasons(tamias, url):
    return [(each["outcome"], each["reason"].partition(": ")[2]) for each in tamias.attempts()[url]]


def test_a_forgotten_url_is_neither_lent_to_far_workers_nor_requested_behind_a_redirect(
    tamias, service, site, reply, tmp_path
):
    """A seed, a link and a redirect: the worker is told what is forgotten at the hosts that it is lent."""
    site.pages |= {
        "/a": b"<> <#to> <b>, <c> .",
        "/b": b'<> <#says> "forgotten" .',
        "/c": reply(302, Location="/d"),
        "/d": b'<> <#says> "forgotten" .',
    }
    words = ("--allow-private", "--delay", "0", "--in-service")
    forget = ("forget", site.url("/b"), site.url("/d"), "--reason", "asked for")
    assert tamias.run(*forget).returncode == 0
    assert tamias.run("crawl", *words, site.url("/a"), site.url("/b")).returncode == 0
    far = start_far(tamias, service().address, tmp_path / "scratch", workers=1)
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        tamias.wait_until(lambda: site.asked("/c") and urls_left(session) == 0)
    ended(far)
    assert site.asked("/b") == 0
    assert forgotten_reasons(tamias, site.url("/b")) == [("refused", "asked for")]
    assert site.asked("/d") == 0
    [redirect] = tamias.attempts()[site.url("/c")]
    assert redirect["outcome"] == "skipped"
    assert redirect["reason"].endswith(": asked for")
    here = site.url("/a")
    assert tamias.quads() == {f"<{here}> <{here}#to> <{site.url(to)}> <{here}> ." for to in ("/b", "/c")}


def test_a_forgotten_body_that_a_far_worker_brings_again_is_not_stored(tamias, service, site, tmp_path):
    url = site.url("/a")
    site.pages["/a"] = b'<> <#says> "forgotten" .'
    assert tamias.crawl("--sink", "archive", url).returncode == 0
    assert tamias.run("forget", url, "--version", "1", "--reason", "asked for").returncode == 0
    words = ("--allow-private", "--delay", "0", "--in-service", "--crawl", "again")
    assert tamias.run("crawl", *words, url).returncode == 0
    far = start_far(tamias, service().address, tmp_path / "scratch", "--crawl", "again", workers=1)
    tamias.wait_until(lambda: len(tamias.attempts()[url]) == 2)
    ended(far)
    assert ("refused", "asked for") in forgotten_reasons(tamias, url)
    assert tamias.quads() == set()
