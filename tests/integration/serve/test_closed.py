"""Rules close captures to the public: by host, by URL and by time, in replay, lists and exports."""

import gzip
import json
from contextlib import contextmanager

import httpx
import pytest

from tests.integration.import_captures.test_records import Crawler, exported, imported
from tests.integration.serve.test_warc_replay import served
from tests.messages import unnamed, unsaid

# warcio leaves the files open that it writes bodies to.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

OPEN, BLOCKED, LATER, OLD = (
    f"http://{host}.example/page" for host in ("open", "www.blocked", "later", "old")
)
RULES = [
    "blocked.example=block",
    "http://later.example/p*=until:2999-01-01",
    "http://old.example/page=block,before:2010-02-15",
    "open.example=until:2020-01-01",
]


@pytest.fixture
def archive(tamias, tmp_path):
    crawler = Crawler()
    for url in (OPEN, BLOCKED, LATER, OLD):
        for number in range(3):
            crawler.add(url, number, f"<p>{url} in {number}</p>".encode())
    path = tmp_path / "a.warc.gz"
    path.write_bytes(crawler.bytes())
    imported(tamias, path, "--archive")
    (tamias.data.parent / "tamias.toml").write_text(f"[archive]\nclosed = {json.dumps(RULES)}\n")
    return tamias


@contextmanager
def reading(client, archive, *bounds):
    """A client with a token that may read."""
    owner = {"Authorization": f"Bearer {(archive.data / 'secret').read_text().strip()}"}
    wanted = {"name": f"reader{len(bounds)}", "scopes": ["read"], "bounds": bounds}
    token = client.post("/api/v1/tokens", json=wanted, headers=owner).json()["token"]
    with httpx.Client(base_url=client.base_url, headers={"Authorization": f"Bearer {token}"}) as known:
        yield known


def listed(client, url):
    return [line.split()[1][:6] for line in client.get("/cdx", params={"url": url}).text.splitlines()]


def test_closed_captures_are_neither_listed_nor_replayed_but_for_those_who_may_read(archive):
    with served(archive) as client:
        months = ["201001", "201002", "201003"]
        assert [listed(client, url) for url in (OPEN, BLOCKED, LATER, OLD)] == [months, [], [], months[2:]]
        stamps = {url: client.get(f"/timemap/json/{url}").status_code for url in (OPEN, BLOCKED, LATER, OLD)}
        assert stamps == {OPEN: 200, BLOCKED: 403, LATER: 403, OLD: 200}
        assert not unsaid(client.get(f"/memento/20100101000000/{BLOCKED}").json()["detail"], "archive.closed")
        assert client.get(f"/memento/20100101000000/{OPEN}").content == f"<p>{OPEN} in 0</p>".encode()
        old = client.get(f"/memento/20100101000000/{OLD}")
        assert (old.status_code, old.headers["location"].endswith(f"/20100301000000/{OLD}")) == (302, True)
        for path in ("/sparql?query=ASK{}", "/api/v1/search?q=page", f"/api/v1/rows?url={OPEN}", "/"):
            assert client.get(path).status_code in (303, 401), path
        with reading(client, archive) as known:
            assert listed(known, BLOCKED) == months
            assert known.get(f"/memento/20100101000000/{OLD}").content == f"<p>{OLD} in 0</p>".encode()
            assert known.get("/sparql", params={"query": "ASK {}"}).status_code == 200
        with reading(client, archive, "later.example") as bound:
            assert (listed(bound, LATER), listed(bound, BLOCKED)) == (months, [])


def test_an_export_leaves_out_what_is_closed_and_says_so(archive):
    content, said = exported(archive)
    plain = gzip.decompress(content).decode("latin-1")
    assert not unsaid(said, "archive.closed")
    for url, months in ((OPEN, (0, 1, 2)), (BLOCKED, ()), (LATER, ()), (OLD, (2,))):
        assert [number for number in range(3) if f"{url} in {number}<" in plain] == [*months]
    assert BLOCKED not in plain
    run = archive.run(
        "export", "--format", "warc", "--include-reserved", "-o", archive.data.parent / "all.gz"
    )
    assert run.returncode == 0
    assert BLOCKED.encode() in gzip.decompress((archive.data.parent / "all.gz").read_bytes())


@pytest.mark.parametrize(
    "rule", ["a b=block", "a.example", "a.example=until:soon", "a.example=block,never:2020"]
)
def test_a_rule_that_cannot_be_read_is_named(archive, rule):
    (archive.data.parent / "tamias.toml").write_text(f"[archive]\nclosed = {json.dumps([rule])}\n")
    run = archive.run("export", "--format", "warc", "-o", archive.data.parent / "all.gz")
    assert (run.returncode, unnamed(run.stderr, "archive.closed", rule)) == (4, [])
