"""Several services behind one address: own folders, one database, one store, nginx before them."""

import os
import re
import shutil
import signal
import subprocess
import time
from urllib.parse import urlencode

import httpx
import psycopg
import pytest

from tests.integration.archive.blobs import s3_server

from .conftest import free_port
from .test_webhooks import Receiver, wait_until

SECRET = "open sesame"
NAMES = [f"/{letter}.csv" for letter in "abcdefgh"]
NGINX = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log error;
events {{ worker_connections 512; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream tamias {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://tamias; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header Host $http_host; proxy_next_upstream error timeout; proxy_buffering off;
            add_header X-Served-By $upstream_addr;
        }}
    }}
}}
"""
DATASETS = "SELECT (count(DISTINCT ?d) AS ?n) WHERE { GRAPH ?g { ?d a dcat:Dataset } }"


@pytest.fixture
def database(administrator):
    """The URL of an empty database on somebody's server."""
    name = f"several_{os.urandom(4).hex()}"
    with psycopg.connect(**administrator, autocommit=True) as boss:
        boss.execute(f"CREATE DATABASE {name}")
        yield "postgresql:///?" + urlencode({**administrator, "dbname": name})
        boss.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def variables(database):
    """What every process is told: where the database and the store are, and the secret."""
    with s3_server.serving() as store:
        yield {
            "TAMIAS_DB": database,
            "TAMIAS_SECRET": SECRET,
            "TAMIAS_ARCHIVE__STORE": "s3://bucket/archive",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.server_port}",
            "AWS_ACCESS_KEY_ID": s3_server.CREDENTIALS.key,
            "AWS_SECRET_ACCESS_KEY": s3_server.CREDENTIALS.secret,
        }


@pytest.fixture
def visited(tamias_at, site, reply, variables):
    """`visited(text)`: a third machine visits all resources, which are this text now."""
    crawler = tamias_at("crawler")
    crawler.env |= variables

    def visit(text):
        for name in NAMES:
            site.pages[name] = reply(200, f"name,{text}\n{name},1\n".encode(), **{"Content-Type": "text/csv"})
        urls = [site.url(name) for name in NAMES]
        words = ["--allow-private", "--delay", "0", "--workers", "1"]
        for verb, given in (("add", urls), ("crawl", ["--recrawl", *urls, *words])):
            done = crawler.run(verb, *given)
            assert done.returncode == 0, done.stderr
        return urls

    return visit


@pytest.fixture
def services(tmp_path, variables, starting):
    """Two services, each with a folder of its own."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    made = [
        starting(tmp_path / name, "--no-crawl", "--allow-private", TAMIAS_SERVE__ADDRESS=address, **variables)
        for name in ("one", "other")
    ]
    return port, address, made


@pytest.fixture
def before(services, tmp_path):
    """A client of the address that both stand behind."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    port, address, made = services
    servers = " ".join(f"server 127.0.0.1:{each.port} fail_timeout=1s;" for each in made)
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(NGINX.format(folder=tmp_path, port=port, servers=servers))
    words = [program, "-p", str(tmp_path), "-c", str(configuration), "-e", str(tmp_path / "error.log")]
    with subprocess.Popen(words) as process, httpx.Client(base_url=address, timeout=60) as client:
        wait_until(lambda: answers(client))
        yield client
        process.terminate()


def answers(client):
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def datasets(client):
    """How many the catalogue has: each resource is one, and each version of it."""
    answer = client.get("/sparql", params={"query": DATASETS}, headers={"Accept": "text/csv"})
    return int(answer.text.split()[1]) if answer.status_code == 200 else None


def test_who_signed_in_at_one_acts_at_the_other(visited, services, before):
    urls = visited("first")
    # Links begin with the name that was asked, which is that of nginx for whoever comes by way of it.
    name = {"Host": before.base_url.netloc.decode()}
    one, other = (httpx.Client(base_url=each.address, headers=name, timeout=60) for each in services[2])
    with one, other:
        assert one.post("/sign-in", data={"secret": SECRET}).status_code == 303
        other.cookies.update(dict(one.cookies))
        form = re.search(r'name="token" value="([0-9a-f]+)"', one.get("/add").text)[1]
        new = "http://new.example/new.csv"
        assert other.post("/add", data={"url": new, "token": form}).status_code == 201
        assert one.get(f"/api/v1/get/dataset/{new}").json()["url"] == new
        for url in urls:
            told = [each.get(f"/api/v1/get/dataset/{url}").json() for each in (one, other)]
            assert told[0] == told[1]
            bodies = {each.get(f"/api/v1/get/file/{url}").content for each in (one, other)}
            assert bodies == {f"name,first\n/{url[-5:]},1\n".encode()}


def test_every_event_is_delivered_once_and_both_feeds_tell_of_it(visited, services, before):
    receiver = Receiver()
    try:
        headers = {"Authorization": f"Bearer {SECRET}"}
        made = before.post(
            "/api/v1/webhooks", json={"url": receiver.url, "kinds": ["version"]}, headers=headers
        )
        assert made.status_code == 201, made.text
        for text in ("first", "second", "third"):
            visited(text)
        wanted = sorted((name[1:], number) for name in NAMES for number in (1, 2, 3))
        wait_until(lambda: len(receiver.events()) >= len(wanted))
        time.sleep(3)  # whoever would deliver something twice does it now
        assert sorted((each["url"][-5:], each["number"]) for each in receiver.events()) == wanted
        name = {"Host": before.base_url.netloc.decode()}
        asked = [f"{each.address}/api/v1/changes" for each in services[2]]
        feeds = [httpx.get(url, headers=name, timeout=60).json() for url in asked]
        assert feeds[0] == feeds[1]
    finally:
        receiver.close()


def test_the_catalogue_is_answered_when_one_of_them_is_killed(visited, services, before):
    visited("first")
    one, other = services[2]
    for each in (one, other):
        with httpx.Client(base_url=each.address, timeout=60) as client:
            wait_until(lambda client=client: datasets(client) == 2 * len(NAMES))
    used = {before.get("/healthz").headers["x-served-by"] for _ in range(10)}
    assert len(used) == 2, "nginx asks both"
    one.stop(signal.SIGKILL)
    assert {datasets(before) for _ in range(5)} == {2 * len(NAMES)}
    visited("second")
    wait_until(lambda: datasets(before) == 3 * len(NAMES))
    assert {before.get("/healthz").status_code for _ in range(5)} == {200}


def test_what_was_kept_for_a_service_that_is_no_more_is_forgotten(
    visited, services, database, starting, tmp_path, variables
):
    """Its folder is gone with its machine; after six days its store would have to be filled again anyway."""
    visited("first")
    one, other = services[2]
    for each in (one, other):
        with httpx.Client(base_url=each.address, timeout=60) as client:
            wait_until(lambda client=client: datasets(client) == 2 * len(NAMES))
    with psycopg.connect(database, autocommit=True, options="-c search_path=tamias") as connection:
        stores = "SELECT name FROM sink WHERE name LIKE 'catalogue:%' ORDER BY sink"
        gone, kept = [name for (name,) in connection.execute(stores)]
        mark = (tmp_path / "other" / "catalogue" / "store" / "id").read_text()
        if kept != f"catalogue:{mark}":
            gone, kept = kept, gone
        one.stop(signal.SIGKILL)
        connection.execute(
            "UPDATE catalogue SET refreshed_at = now() - interval '7 days'"
            " WHERE sink = (SELECT sink FROM sink WHERE name = %s)",
            [gone],
        )
        third = starting(tmp_path / "third", "--no-crawl", **variables)
        with httpx.Client(base_url=third.address, timeout=60) as client:
            wait_until(lambda: datasets(client) == 2 * len(NAMES))
        left = [name for (name,) in connection.execute(stores)]
    assert gone not in left
    assert kept in left
