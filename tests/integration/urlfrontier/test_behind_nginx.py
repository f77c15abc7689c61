"""Several frontier services behind one address: nginx passes each call to any of them, and one is killed."""

import shutil
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import grpc
import pytest
from frontier_client import Client, Instance, discovered, known

from tests.integration.serve.conftest import free_port

HOSTS = 40
PAGES = 25
URLS = {f"http://h{host}.example/{page}" for host in range(HOSTS) for page in range(PAGES)}
CLIENTS = 6
NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log error;
events {{ worker_connections 512; }}
http {{
    log_format asked $upstream_addr; access_log {folder}/access.log asked;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream frontier {{ {servers} }}
    server {{
        listen 127.0.0.1:{port} http2;
        location / {{ grpc_pass grpc://frontier; grpc_next_upstream error timeout non_idempotent; }}
    }}
}}
"""


@pytest.fixture
def services(tmp_path):
    made = [Instance(tmp_path / "data") for _ in range(3)]
    yield made
    for each in made:
        if each.process.poll() is None:
            each.stop()


@pytest.fixture
def address(services, tmp_path):
    """Behind which all of them are."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{each.port} fail_timeout=1s;" for each in services)
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(NGINX.format(folder=tmp_path, port=port, servers=servers))
    words = [program, "-p", str(tmp_path), "-c", str(configuration), "-e", str(tmp_path / "error.log")]
    with subprocess.Popen(words) as process:
        yield f"127.0.0.1:{port}"
        process.terminate()


def insist(address, work):
    """Calls until it is answered, as a crawler would: whoever answers may be killed meanwhile."""
    while True:
        with closing(Client(address)) as client, suppress(grpc.RpcError):
            return work(client)


def put(address, urls):
    for name, status in insist(
        address, lambda client: client.put(*(discovered(url, name=url) for url in urls))
    ):
        assert name
        assert status in (0, 1)


def crawl(address, finished):
    """Gets URLs and reports them as done; returns all that it was given."""
    given = []
    while len(finished) < len(URLS):
        urls = insist(address, lambda client: client.get(urls=3, queues=5, hold=20))
        given += urls
        if urls:
            insist(address, lambda client, urls=urls: client.put(*(known(url, 0, name=url) for url in urls)))
            finished.update(urls)
        else:
            time.sleep(0.1)
    return given


def test_no_url_is_given_twice_and_none_is_lost_when_one_of_them_is_killed(services, address, tmp_path):
    parts = [sorted(URLS)[number::CLIENTS] for number in range(CLIENTS)]
    finished = set()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda part: put(address, part), parts))
        with closing(Client(address)) as client:
            client.call("SetDelay", key="", crawlID="DEFAULT", delay_requestable=0)
            assert client.stats().size == len(URLS)
        crawls = [pool.submit(crawl, address, finished) for _ in range(CLIENTS)]
        while len(finished) < len(URLS) // 3:
            time.sleep(0.05)
        services[0].kill()
        given = Counter(url for each in crawls for url in each.result(240))
    assert set(given) == URLS
    # What a killed one was about to give is held for its time, and then given by another.
    assert set(given.values()) == {1}
    asked = Counter((tmp_path / "access.log").read_text().replace(",", " ").split())
    assert {f"127.0.0.1:{each.port}" for each in services} <= set(asked)
    with closing(Client(address)) as client:
        stats = client.stats()
        assert (stats.size, stats.counts["completed"]) == (0, len(URLS))
