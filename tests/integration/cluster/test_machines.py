"""Workers, a service, a database and MinIO on machines of their own: they share a network, no folder."""

import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from servers import machines as namespaces
from servers import minio, postgres_here

from .conftest import FULL

HOSTS, PAGES = 4, 40
TAMIAS = (sys.executable, "-m", "tamias")
STORE = "s3://tamias/archive"
RUN = ("--allow-private", "--no-robots", "--workers", "1", "--delay")


@pytest.fixture
def network(tmp_path, run_or_skip):
    """The machines, with a database, a store and a web."""
    if not FULL:
        pytest.skip("machines in namespaces, with MinIO, are run by `make nightly`")
    program = run_or_skip("MinIO", minio.build)
    names = ["db", "s3", "web", "plain", "one", "two", "three"]
    with ExitStack() as stack:
        made = run_or_skip(
            "machines in namespaces", lambda: stack.enter_context(namespaces.machines(names, tmp_path))
        )
        db, s3, web = made["db"], made["s3"], made["web"]
        here = Path(postgres_here.__file__)
        stack.enter_context(db.running(sys.executable, here, db.folder / "server", db.address))
        keys = {"MINIO_ROOT_USER": minio.USER, "MINIO_ROOT_PASSWORD": minio.PASSWORD}
        bucket = s3.folder / "objects" / "tamias"
        assert s3.run("mkdir", "-p", bucket).returncode == 0
        stack.enter_context(
            s3.running(program, "server", bucket.parent, "--address", f"{s3.address}:9000", environment=keys)
        )
        _serve_pages(web, stack)
        for machine, port in ((db, postgres_here.PORT), (s3, 9000), (web, 80)):
            machine.wait_for(port)
        yield made


def _serve_pages(web, stack):
    """Documents that link each other, the same at several addresses."""
    hosts = [f"{namespaces.NETWORK}.{100 + number}" for number in range(HOSTS)]
    for host in hosts:
        assert web.run("ip", "addr", "add", f"{host}/24", "dev", "eth0").returncode == 0
    program = (
        "import pathlib, sys\n"
        "hosts = sys.argv[2:]\n"
        f"for number in range({PAGES}):\n"
        "    links = ' , '.join(f'<http://{host}/{number}.ttl>' for host in hosts)\n"
        "    text = f'<> <urn:x:see> {links} , <{number + 1}.ttl> ; <urn:x:says> \"page {number}\" .'\n"
        "    pathlib.Path(sys.argv[1], f'{number}.ttl').write_text(text)\n"
    )
    pages = web.folder / "pages"
    assert web.run("mkdir", pages).returncode == 0
    assert web.run(sys.executable, "-c", program, pages, *hosts).returncode == 0
    stack.enter_context(web.running(sys.executable, "-m", "http.server", "80", "--directory", pages))


@pytest.fixture
def environment(network):
    db = f"postgresql://{postgres_here.USER}:{postgres_here.PASSWORD}@{network['db'].address}/postgres"
    return {
        "TAMIAS_DB": db,
        "TAMIAS_SECRET": "the secret of all services",
        "TAMIAS_FRONTIER__LEASE": "3",
        "TAMIAS_SEEDS__PROBE": "false",
        "AWS_ENDPOINT_URL": f"http://{network['s3'].address}:9000",
        "AWS_ACCESS_KEY_ID": minio.USER,
        "AWS_SECRET_ACCESS_KEY": minio.PASSWORD,
    }


def exported(machine, environment=None):
    done = machine.run(*TAMIAS, "export", "--data", "data", environment=environment)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines())


def captures_by_worker(machine, environment):
    """How many attempts each worker has committed."""
    asked = "SELECT worker, count(*) FROM tamias.capture GROUP BY worker"
    program = (
        "import os, psycopg\n"
        f"for row in psycopg.connect(os.environ['TAMIAS_DB']).execute('{asked}'): print(*row)"
    )
    told = machine.run(sys.executable, "-c", program, environment=environment).stdout
    return {worker: int(count) for worker, count in (line.split() for line in told.splitlines())}


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_machines_share_a_database_and_a_store_and_no_folder(network, environment, table):
    plain, one, two, three = (network[name] for name in ("plain", "one", "two", "three"))
    seed = f"http://{namespaces.NETWORK}.100/0.ttl"
    for name, machine in network.items():
        mount = machine.run(
            "findmnt", "-rn", "-o", "SOURCE,FSTYPE", "--target", machine.folder
        ).stdout.split()
        assert mount == [name, "tmpfs"]
        assert machine.run("pwd", "-P").stdout.strip() == str(machine.folder)
        assert "Read-only" in machine.run("touch", machine.folder.parent / "shared").stderr
        table.append(
            f"{'findmnt in ' + name:<28}{machine.folder.name} is tmpfs '{mount[0]}'; all else read-only"
        )
    alone = {"TAMIAS_SEEDS__PROBE": "false"}
    done = plain.run(*TAMIAS, "crawl", "--data", "data", *RUN, "0.02", seed, environment=alone)
    assert done.returncode == 0, done.stderr

    words = ("--data", "data", "--store", STORE)
    crawl = (*TAMIAS, "crawl", *words, *RUN, "0.4", seed)
    begun = one.run(*crawl, "--max-urls", "5", environment=environment)
    assert begun.returncode == 5, begun.stderr
    with two.running(
        *TAMIAS, "worker", *words, "--workers", "1", "--allow-private", environment=environment
    ) as worker:
        with one.running(*crawl, environment=environment) as crawling:
            # That of the first five, and one more.
            wait_until(lambda: len(captures_by_worker(three, environment)) > 1)
            crawling.send_signal(signal.SIGKILL)
        # Whoever holds all hosts may keep them to the end: now the other machine has its turn.
        before = captures_by_worker(three, environment)
        wait_until(lambda: captures_by_worker(three, environment) != before)
        with one.running(*crawl, environment=environment) as crawling:
            worker.send_signal(signal.SIGKILL)  # with its machine, for good
            assert crawling.wait(300) == 0, one.log.read_text()
    by_worker = captures_by_worker(three, environment)
    assert len(by_worker) > 2
    assert one.run("find", "data", "-name", "*.nq.zst").stdout == ""

    quads = exported(three, environment)
    assert quads == exported(plain, alone)
    assert len(quads) > HOSTS * PAGES
    checked = three.run(*TAMIAS, "check", "--data", "data", environment=environment)
    assert checked.returncode == 0, checked.stdout
    serving = (*TAMIAS, "serve", "--no-crawl", "--data", "data", "--host", three.address)
    with three.running(*serving, environment=environment):
        three.wait_for(8080)
        query = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s <urn:x:says> ?o } }"
        asked = ("curl", "-sG", "-H", "Accept: text/csv", "--data-urlencode", f"query={query}")
        address = f"http://{three.address}:8080/sparql"
        wait_until(lambda: one.run(*asked, address).stdout.split() == ["n", str(HOSTS * PAGES)])
    table.append(
        f"{'machines without a folder':<28}{sum(by_worker.values())} visits by {len(by_worker)} workers, one"
        f" killed; {len(quads)} quads read on a third machine, as those of one machine"
    )
