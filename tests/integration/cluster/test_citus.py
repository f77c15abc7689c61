"""`tamias` on a real Citus cluster: what its verbs do there is what they do on one server."""

import json
import urllib.request
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tamias.database.connect import Database
from tamias.database.months import divide_months
from tests.messages import unsaid

from .conftest import done

HOSTS = 6
PAGES = 5
BUCKETS = "16"
SCORE = """
CREATE FUNCTION score_url(u known_url) RETURNS float8 LANGUAGE sql AS $$ SELECT 1.0 / (1 + (u).depth) $$;
"""
READING = """
CREATE FUNCTION score_url(u known_url) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN RETURN (SELECT count(*) FROM frontier_urls WHERE frontier_urls.host = (u).host) / 100.0; END $$;
"""
_CAPTURE = """
INSERT INTO capture (bucket, capture, qid, crawl, uid, started_at, ended_at, outcome, depth, url, reason,
                     worker, agent)
SELECT mod(n, 16), ({id} || lpad(to_hex(n), 20, '0'))::uuid, n, 1, n, n, n, 1, 0, 'http://a.example/' || n,
       '', 'w', 'a'
FROM generate_series(1, {count}) AS n"""
OLD_CAPTURES = _CAPTURE.format(id="'019400000000'", count=1000)
LATER_CAPTURES = _CAPTURE.format(id="lpad(to_hex(%s::int8), 12, '0')", count=64)
ROWS = {
    "url": "SELECT url, crawl, status, depth, fails, due = 9223372036854775807 FROM url",
    "host": "SELECT hkey, token, visits FROM host",
    "queue": "SELECT qid, crawl, lane, known, open FROM queue",
    "capture": "SELECT url, crawl, outcome, status, depth, quads, links, encode(sha256, 'hex') FROM capture",
    "document": "SELECT document, segment IS NOT NULL, cut FROM current_document",
    "resource": "SELECT url, state, versions, encode(sha256, 'hex'), media_type FROM resource",
    "version": "SELECT resource, number, encode(sha256, 'hex'), byte_size, media_type, noise FROM version",
    "blob": "SELECT encode(sha256, 'hex'), size FROM blob",
    "link": "SELECT from_url, to_url, anchor FROM link",
    "findable": "SELECT resource, words::text FROM findable",
    "counted": "SELECT what, key, sum(n)::int, sum(bytes)::int"
    " FROM (TABLE tally UNION ALL TABLE tally_news) AS t GROUP BY 1, 2",
}


@pytest.fixture
def web(site_at, reply):
    """Hosts whose pages lead to each other's, and a table that changes."""
    sites = [site_at(f"127.0.0.{10 + number}") for number in range(HOSTS)]
    for number, site in enumerate(sites):
        for page in range(PAGES):
            following = [site.url(f"/{page + 1}.ttl"), sites[(number + 1) % HOSTS].url(f"/{page}.ttl")]
            links = " , ".join(f"<{url}>" for url in following)
            site.pages[f"/{page}.ttl"] = (
                f"<> <urn:x:leads> {links} ; <urn:x:n> {number * 10 + page} .".encode()
            )
    sites[0].pages["/t.csv"] = reply(200, b"a,b\n1,2\n", **{"Content-Type": "text/csv"})
    return sites


@pytest.fixture
def at(tamias_at, citus):
    """`at(name, url)`: the executable on a data directory and a database of their own."""

    def make(name, url):
        tamias = tamias_at(name)
        tamias.env |= {"TAMIAS_DB": url, "TAMIAS_FRONTIER__BUCKETS": BUCKETS, "PGOPTIONS": ""}
        return tamias

    return make


@pytest.fixture
def cluster(at, database_of):
    """The executable on an initialised cluster."""
    tamias = at("cluster", database_of("spread"))
    done(tamias.run("cluster init", "--shards", "8"))
    return tamias


@pytest.fixture
def plain(at, database_of):
    """The same on one server."""
    return at("plain", database_of("plain", nodes=0))


def rows(url):
    """What is in the tables, without what every run makes anew: times and numbers."""
    with closing(psycopg.connect(url)) as connection:
        connection.execute("SET search_path = tamias, public")
        return {name: sorted(map(repr, connection.execute(asked))) for name, asked in ROWS.items()}


def shown(tamias, *urls):
    """What a user sees: quads, attempts, versions."""
    versions = [
        [(each["number"], each["sha256"], each["byte_size"]) for each in json.loads(line(tamias, url))]
        for url in urls
    ]
    tried = {
        url: sorted((each["outcome"], each.get("httpStatus")) for each in attempts)
        for url, attempts in tamias.attempts().items()
    }
    return tamias.quads(), tried, versions


def line(tamias, url):
    return done(tamias.run("versions", url, "--json"))


def crawled(tamias, web, reply):
    """A crawl, and an archive with two versions of a table."""
    csv = web[0].url("/t.csv")
    web[0].pages["/t.csv"] = reply(200, b"a,b\n1,2\n", **{"Content-Type": "text/csv"})
    done(tamias.crawl(web[0].url("/0.ttl"), "--depth", "4"))
    done(tamias.run("add", csv))
    done(tamias.crawl("--recrawl"))
    web[0].pages["/t.csv"] = reply(200, b"a,b\n1,2\n3,4\n", **{"Content-Type": "text/csv"})
    done(tamias.crawl("--recrawl", csv))


def same(plain, cluster, *urls):
    """Compares them; returns how much there was to compare."""
    assert shown(cluster, *urls) == shown(plain, *urls)
    here, there = rows(cluster.env["TAMIAS_DB"]), rows(plain.env["TAMIAS_DB"])
    for name in ROWS:
        assert here[name] == there[name], name
    return ", ".join(f"{name} {len(found)}" for name, found in here.items())


def test_a_crawl_and_an_archive_are_those_of_one_server(cluster, plain, web, reply, table):
    csv = web[0].url("/t.csv")
    for tamias in (plain, cluster):
        crawled(tamias, web, reply)
        done(tamias.run("check"))
        done(tamias.run("stats"))
        done(tamias.run("status", "--once"))
        done(tamias.run("list"))
    table.append(f"{'Citus: crawl, archive, check':<28}same rows: {same(plain, cluster, csv)}")


def test_roles_of_their_own_are_used_on_a_cluster(cluster):
    told = done(cluster.run("doctor"))
    assert not unsaid(told)
    assert "no superuser" in told


def test_a_backup_of_a_cluster_is_restored_to_one_and_to_a_single_server(
    cluster, at, database_of, web, reply, tmp_path, table
):
    crawled(cluster, web, reply)
    done(cluster.run("backup", str(tmp_path / "saved")))
    spread = at("again", database_of("again"))
    done(spread.run("cluster init", "--shards", "8"))
    single = at("single", database_of("single", nodes=0))
    for tamias in (spread, single):
        done(tamias.run("restore", str(tmp_path / "saved")))
        told = same(cluster, tamias, web[0].url("/t.csv"))
        done(tamias.run("check"))
        done(tamias.crawl("--depth", "5"))
    table.append(f"{'Citus: backup, restore':<28}same rows: {told}")


def test_one_server_is_copied_to_a_cluster_with_more_buckets(plain, at, database_of, web, reply, table):
    plain.env["TAMIAS_FRONTIER__BUCKETS"] = "1"
    crawled(plain, web, reply)
    there = at("plain", database_of("more"))
    done(there.run("cluster init", "--shards", "8"))
    done(plain.run("cluster rebucket", "--to", there.env["TAMIAS_DB"], "--buckets", "32"))
    told = same(plain, there, web[0].url("/t.csv"))
    done(there.run("check"))
    done(there.crawl("--depth", "5"))
    table.append(f"{'Citus: rebucket 1 to 32':<28}same rows: {told}")


def test_a_strategy_is_applied_on_a_cluster_and_reads_its_views(cluster, web, reply, tmp_path, table):
    done(cluster.crawl(web[0].url("/0.ttl"), "--depth", "2"))
    for name, text in {"plain": SCORE, "reading": READING}.items():
        (tmp_path / f"{name}.sql").write_text(text)
        done(cluster.run("strategy apply", str(tmp_path / f"{name}.sql")))
        done(cluster.crawl("--depth", "3" if name == "plain" else "4"))
    listed = json.loads(done(cluster.run("strategy list", "--json")))
    assert [each["state"] for each in listed] == ["in force", "replaced"]
    table.append(f"{'Citus: strategy':<28}applied twice, none failed in use")


def test_workers_at_another_node_finish_a_crawl(cluster, citus, plain, web, table):
    """The seeds come by way of the coordinator, and all the rest is done by a process at a node."""
    urls = {}
    for tamias in (plain, cluster):
        limited = tamias.crawl(web[0].url("/0.ttl"), "--max-urls", "1", "--depth", "4")
        assert limited.returncode == 5, limited.stderr
        urls[tamias] = tamias.env["TAMIAS_DB"]
    name = urls[cluster].rpartition("/")[2].partition("?")[0]
    cluster.env["TAMIAS_DB"] = citus.nodes[0].url(name)
    for tamias in (plain, cluster):
        done(tamias.crawl("--depth", "4", "--sink", "archive"))
    assert shown(cluster) == shown(plain)
    cluster.env["TAMIAS_DB"] = urls[cluster]
    table.append(f"{'Citus: worker at a node':<28}{same(plain, cluster)}")


def test_a_new_node_gets_its_share_while_nothing_stops(at, database_of, citus, web, reply, table):
    tamias = at("grown", database_of("grown", nodes=1))
    done(tamias.run("cluster init", "--shards", "8"))
    done(tamias.crawl(web[0].url("/0.ttl"), "--depth", "3"))
    name = tamias.env["TAMIAS_DB"].rpartition("/")[2].partition("?")[0]
    before = rows(tamias.env["TAMIAS_DB"])
    citus.add_node(name, citus.nodes[1])
    citus.coordinator.execute("SELECT citus_rebalance_start()", name)
    citus.coordinator.execute("SELECT citus_rebalance_wait()", name)
    moved = citus.coordinator.execute(
        f"SELECT count(*) FROM citus_shards WHERE nodeport = {citus.nodes[1].port}"
        " AND table_name = 'tamias.url'::regclass",
        name,
    )[0][0]
    assert moved > 0
    assert rows(tamias.env["TAMIAS_DB"]) == before
    done(tamias.crawl("--depth", "4"))
    table.append(f"{'Citus: node added':<28}{moved} of 8 shards of url moved, the same rows")


def test_the_service_answers_on_a_cluster_as_on_one_server(cluster, plain, web, reply, table):
    told = {}
    for tamias in (plain, cluster):
        crawled(tamias, web, reply)
        told[tamias] = asked(tamias, web[0].url("/t.csv"))
    assert {path: status for path, (status, _) in told[cluster].items()} == {
        path: status for path, (status, _) in told[plain].items()
    }
    assert not [path for path, (status, _) in told[cluster].items() if status >= 500]
    for path in ("/api/v1/stats/basic", "/api/v1/hosts"):
        assert told[cluster][path][1] == told[plain][path][1], path
    table.append(f"{'Citus: serve':<28}{len(told[cluster])} addresses answer as on one server")


def asked(tamias, csv):
    """Statuses and bodies of the service's addresses, and of those that concern one resource."""
    from servers.running import free_port

    port = free_port()
    process = tamias.start("serve", "--port", str(port), "--allow-private")
    address = f"http://127.0.0.1:{port}"
    tamias.wait_until(lambda: answer(f"{address}/healthz")[0] == 200)
    described = json.loads(answer(f"{address}/openapi.json")[1])
    paths = sorted(
        path
        for path, verbs in described["paths"].items()
        if "{" not in path and "get" in verbs and "live" not in path
    )
    paths += [
        f"/api/v1/get/dataset/{csv}",
        f"/timemap/link/{csv}",
        f"/timegate/{csv}",
        "/",
        "/frontier",
        "/hosts",
    ]
    told = {path: answer(address + path) for path in paths if "events" not in path}
    process.terminate()
    assert process.wait(30) in (0, 130), process.stderr.read()
    # Links begin with the address of the service, which is another one each time.
    return {path: (status, body.replace(address.encode(), b"")) for path, (status, body) in told.items()}


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


def test_the_last_part_of_captures_is_divided_on_every_node(citus, at, database_of, table):
    url = database_of("months")
    done(at("months", url).run("cluster init", "--shards", "8"))
    with closing(Database(Path(), url)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(OLD_CAPTURES))
        before = session.fetch_all(b"SELECT bucket, capture, url FROM capture ORDER BY 1, 2")
        start = session.now() + 40 * 86_400_000
        session.now = lambda: start
        assert divide_months(session) is not None
        session.transact(lambda cursor: cursor.execute(LATER_CAPTURES, [start]))
        parts = session.fetch_all(
            b"SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'tamias.capture'::regclass"
        )
        spread = {part: session.fetch_all(f"SELECT count(*) FROM {part}".encode())[0][0] for (part,) in parts}
        assert session.fetch_one(b"SELECT count(*) FROM pages") == (len(before) + 64,)
    assert sorted(spread.values()) == [0, 64, len(before)]
    table.append(f"{'Citus: captures by month':<28}{len(before)} rows: {spread}")
