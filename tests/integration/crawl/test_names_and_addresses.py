"""What a name resolves to holds for queues, leases and connections alike; a dead name is given up."""

import time

import pytest

from tests.messages import unsaid

NAMES = [f"{name}.test" for name in ("oak", "elm", "ash", "fir", "yew", "box")]


def slowly(handler):
    time.sleep(0.03)
    body = b"<> <#is> <#here> ."
    handler.send_response(200)
    handler.send_header("Content-Type", "text/turtle")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.answering = time.monotonic()
    handler.wfile.write(body)


def url_at(site, name, path):
    return site.url(path).replace(site.address, name)


@pytest.mark.parametrize(
    "settings",
    [{"QUEUE": "ip"}, {"QUEUE": "domain", "PER_ADDRESS": "1"}, {"QUEUE": "host", "PER_ADDRESS": "1"}],
    ids=["ip", "domain", "host"],
)
def test_requests_to_one_address_under_many_names_do_not_overlap(tamias, site, settings):
    site.pages |= {f"/{number}": slowly for number in range(4)}
    tamias.env |= {f"TAMIAS_FRONTIER__{name}": value for name, value in settings.items()}
    resolve = [word for name in NAMES for word in ("--resolve", f"{name.upper()}:{site.address}")]
    seeds = [url_at(site, name, path) for name in NAMES for path in site.pages]
    words = ("--allow-private", "--no-robots", "--delay", "0", "--workers", "2", "--depth", "0")
    done = tamias.run("crawl", *words, *resolve, *seeds)
    assert done.returncode == 0, done.stderr
    assert len(site.log) == len(seeds)
    assert min(site.gaps()) >= 0


def test_a_redirect_to_another_address_of_the_queue_is_another_visit(tamias, site_at):
    near, far = site_at("127.0.0.3"), site_at("127.0.0.4")
    port = far.server.server_port
    near.pages["/a"] = lambda handler: moved(handler, f"http://far.oak.test:{port}/b")
    far.pages["/b"] = b"<> <#is> <#here> ."
    tamias.env["TAMIAS_FRONTIER__PER_ADDRESS"] = "1"
    resolve = ("--resolve", "near.oak.test:127.0.0.3", "--resolve", "far.oak.test:127.0.0.4")
    done = tamias.crawl("--no-robots", *resolve, url_at(near, "near.oak.test", "/a"))
    assert done.returncode == 0, done.stderr
    assert (near.asked("/a"), far.asked("/b")) == (1, 1)


def moved(handler, target):
    handler.send_response(302)
    handler.send_header("Location", target)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def test_a_name_that_is_none_is_given_up_after_one_more_try_and_the_crawl_is_finished(tamias, site):
    dead = [f"http://dead{number}.invalid/x" for number in range(10)]
    site.pages["/"] = "".join(f"<> <#to> <{url}> .\n" for url in dead).encode()
    tamias.env["TAMIAS_CRAWL__RETRY_WAIT"] = "1"
    done = tamias.crawl(url_at(site, "localhost", "/"))
    assert done.returncode == 0, done.stderr
    assert not unsaid(done.stderr)
    tried = tamias.attempts()
    for url in dead:
        reasons = [each["reason"] for each in tried[url]]
        assert len(reasons) == 2, reasons
        assert any("(2 tries): name does not resolve" in each for each in reasons), reasons
