"""One row of a crawl holds its options: every process, every resume and every worker goes by it."""

import json
import signal
import threading
import time
from contextlib import closing

import click
import httpx
import pytest

from tamias.cli.crawl import command as crawl_verb
from tamias.database.connect import Database
from tamias.database.migrate import FIRST, migrations
from tamias.frontier.postgres import PostgresFrontier
from tamias.model.errors import ConfigError, LimitReached
from tamias.model.item import Item
from tests import commands
from tests.ports import free_port

LIMIT = LimitReached.exit_code
LAST = 12


class Chain:
    """Pages that each link to the next: the number of a page is its depth."""

    def __init__(self, site):
        self.site = site
        for number in range(LAST):
            site.pages[f"/{number}"] = f"<> <#to> </{number + 1}> .".encode()
        site.pages[f"/{LAST}"] = b"<> <#is> <#last> ."
        site.pages["/other"] = b"<> <#to> </other/1> ."
        site.pages["/other/1"] = b"<> <#to> </other/2> ."
        site.pages["/other/2"] = b"<> <#is> <#last> ."

    @property
    def seed(self):
        return self.site.url("/0")

    def depths(self):
        """The numbers of the pages that were requested, each as often as it was."""
        return sorted(int(path[1:]) for path, _ in self.site.log if path[1:].isdigit())


@pytest.fixture
def chain(site):
    return Chain(site)


@pytest.fixture
def chains(site_at, reply):
    """Several, so slow that whoever else may work on the crawl finds something to do."""
    found = [Chain(site_at(f"127.0.0.{number}")) for number in range(3, 9)]
    for chain in found:
        for path, body in chain.site.pages.items():
            chain.site.pages[path] = slow(reply(200, body, Content_Type="text/turtle"))
    return found


def slow(page):
    def answer(handler):
        time.sleep(0.2)
        page(handler)

    return answer


@pytest.fixture
def serve(tamias):
    """`serve(*words)` runs the service on the same data until the test is over."""
    running = []

    def start(*words):
        port = free_port()
        service = tamias.start("serve", "--port", str(port), "--workers", "1", *words)
        said = next(line for line in service.stderr if "serving at" in line or "tamias:" in line)
        assert "serving at" in said, said
        threading.Thread(target=service.stderr.read, daemon=True).start()
        running.append(service)
        return f"http://127.0.0.1:{port}"

    yield start
    for service in running:
        service.terminate()
        service.wait(timeout=30)


def wait_for_watched(tamias, chain):
    """Until the service has tried a watched resource: then it has looked for work since."""
    path = f"/watched-{len(chain.site.pages)}.ttl"
    chain.site.pages[path] = b"<> <#is> <#watched> ."
    assert tamias.run("add", chain.site.url(path)).returncode == 0
    tamias.wait_until(lambda: chain.site.asked(path))


def wait_for_handed(tamias, chain):
    """Until the service has worked on another crawl: then it has looked which crawls were handed to it."""
    path, name = f"/handed-{len(chain.site.pages)}.ttl", f"witness {len(chain.site.pages)}"
    chain.site.pages[path] = b"<> <#is> <#handed> ."
    words = ("--in-service", "--allow-private", "--delay", "0", "--crawl", name)
    assert tamias.run("crawl", *words, chain.site.url(path)).returncode == 0
    tamias.wait_until(lambda: chain.site.asked(path))
    wait_for_others(tamias)


def start_worker(tamias, chain):
    """Start a worker; return when it has visited the seed of the chain, so that it is there."""
    words = ("--in-service", "--allow-private", "--delay", "0", "--depth", "0", chain.seed)
    assert tamias.run("crawl", *words).returncode == 0
    tamias.start("worker", "--workers", "1", "--allow-private")
    tamias.wait_until(lambda: (row(tamias)["known"], row(tamias)["open"]) == (1, 0))


def wait_for_others(tamias):
    """Until workers beside the crawl have read that it is over, and finished the requests under way."""
    time.sleep(2)


def row(tamias, name="default"):
    """The options in the row of a crawl."""
    crawls = json.loads(tamias.run("crawls", "--json").stdout)
    return next(each for each in crawls if each["name"] == name)


def crawl_slowly(tamias, chains, *words):
    """A crawl that visits one host at a time, so that others find hosts to lease, if they may."""
    words = ("--delay", "0.1", "--concurrency", "1", *words)
    return tamias.crawl(*words, *[chain.seed for chain in chains])


def test_a_depth_limit_holds_while_the_service_runs(tamias, chains, serve):
    serve("--allow-private", "--delay", "0.1")
    wait_for_watched(tamias, chains[0])
    done = crawl_slowly(tamias, chains, "--depth", "3")
    assert done.returncode == 0, done.stderr
    wait_for_watched(tamias, chains[0])
    assert [chain.depths() for chain in chains] == [[0, 1, 2, 3]] * len(chains)


def test_a_crawl_may_reach_private_addresses_that_the_service_may_not(tamias, chains, serve):
    serve("--delay", "0.1")
    done = crawl_slowly(tamias, chains, "--depth", "3")
    assert done.returncode == 0, done.stderr
    outcomes = [each["outcome"] for tried in tamias.attempts().values() for each in tried]
    assert outcomes == ["ok"] * 4 * len(chains)


def test_nobody_goes_on_with_a_crawl_that_a_limit_stopped(tamias, chain, serve):
    serve("--allow-private", "--delay", "0")
    done = tamias.crawl("--max-urls", "3", chain.seed)
    assert done.returncode == LIMIT, done.stderr
    wait_for_handed(tamias, chain)
    assert chain.depths() == [0, 1, 2]


def test_the_service_works_on_what_is_handed_to_it_by_the_options_of_the_crawl(tamias, chain, serve):
    serve()
    words = ("--in-service", "--allow-private", "--delay", "0", "--depth", "3", "--sink", "warc")
    done = tamias.run("crawl", *words, chain.seed)
    assert (done.returncode, "tamias serve" in done.stderr) == (0, True), done.stderr
    tamias.wait_until(lambda: len(chain.depths()) == 4)
    tamias.wait_until(lambda: row(tamias)["open"] == 0)
    done = tamias.run("crawl", "--in-service", "--depth", "5")
    assert done.returncode == 0, done.stderr
    tamias.wait_until(lambda: row(tamias)["open"] == 0 and max(chain.depths()) == 5)
    assert set(chain.depths()) == {0, 1, 2, 3, 4, 5}
    assert any((tamias.data / "warc").iterdir())


def test_what_the_service_may_do_it_may_not_do_in_a_crawl_that_is_handed_to_it(tamias, chain, reply, serve):
    rules = b"User-agent: *\nDisallow: /2\n"
    chain.site.pages["/robots.txt"] = reply(200, rules, Content_Type="text/plain")
    serve("--allow-private", "--no-robots", "--delay", "0")
    assert tamias.run("crawl", "--in-service", "--crawl", "public", chain.seed).returncode == 0
    tamias.wait_until(lambda: (row(tamias, "public")["known"], row(tamias, "public")["open"]) == (1, 0))
    assert tamias.attempts()[chain.seed][0]["outcome"] == "refused"
    assert chain.site.log == []
    words = ("--in-service", "--allow-private", "--delay", "0.5")
    assert tamias.run("crawl", *words, chain.seed).returncode == 0
    tamias.wait_until(lambda: (row(tamias)["known"], row(tamias)["open"]) == (3, 0))
    assert chain.depths() == [0, 1]
    assert min(chain.site.gaps()) >= 0.5


def test_the_service_leaves_a_handed_crawl_when_its_limit_is_reached_until_its_user_resumes_it(
    tamias, chain, serve
):
    serve("--allow-private", "--delay", "0")
    words = ("--in-service", "--allow-private", "--delay", "0", "--max-urls", "3")
    assert tamias.run("crawl", *words, chain.seed).returncode == 0
    tamias.wait_until(lambda: row(tamias)["state"] == "stopped")
    wait_for_handed(tamias, chain)
    assert chain.depths() == [0, 1, 2]
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: row(tamias)["state"] == "stopped")
    wait_for_handed(tamias, chain)
    assert chain.depths() == [0, 1, 2, 3, 4, 5]


def test_the_button_on_the_page_lets_the_service_work_on_a_crawl(tamias, chain, serve):
    assert tamias.crawl("--max-urls", "3", "--depth", "4", chain.seed).returncode == LIMIT
    service = serve("--allow-private", "--delay", "0")
    fields = {"secret": (tamias.data / "secret").read_text().strip(), "do": "resume"}
    assert httpx.post(f"{service}/crawl/default/steer", data={**fields, "secret": "no"}).status_code == 403
    wait_for_handed(tamias, chain)
    assert chain.depths() == [0, 1, 2]
    assert httpx.post(f"{service}/crawl/default/steer", data=fields).status_code == 303
    tamias.wait_until(lambda: row(tamias)["open"] == 0)
    assert chain.depths() == [0, 1, 2, 3, 4]


def test_a_worker_leaves_a_stopped_crawl_alone_until_its_user_resumes_it(tamias, chain):
    start_worker(tamias, chain)
    assert tamias.crawl("--max-urls", "3", "--depth", "9", chain.seed).returncode == LIMIT
    wait_for_others(tamias)
    assert chain.depths() == [0, 0, 1, 2, 3]  # the first is read again for its links, which does not count
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: chain.depths()[-1] == 6)
    wait_for_others(tamias)
    assert chain.depths()[-1] == 6
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: row(tamias)["open"] == 0)
    assert chain.depths() == [0, *range(10)]


def test_a_worker_beside_a_crawl_shares_its_limit(tamias, chains):
    start_worker(tamias, chains[0])
    for run in (1, 2):
        done = tamias.crawl(
            "--delay", "0.1", "--depth", "9", "--max-urls", "7", *[each.seed for each in chains]
        )
        assert done.returncode == LIMIT, done.stderr
        wait_for_others(tamias)
        assert (
            sum(len(chain.depths()) for chain in chains) - 2 == 7 * run
        )  # one page was read before, and again


def test_a_worker_leaves_a_crawl_whose_time_is_over(tamias, chains):
    start_worker(tamias, chains[0])
    done = tamias.crawl("--delay", "1", "--depth", "9", "--max-time", "3", *[each.seed for each in chains])
    assert done.returncode == LIMIT, done.stderr
    wait_for_others(tamias)
    read = [chain.depths() for chain in chains]
    time.sleep(3)
    assert [chain.depths() for chain in chains] == read


def test_a_worker_leaves_a_crawl_that_its_user_interrupted_until_its_user_resumes_it(tamias, chains):
    start_worker(tamias, chains[0])
    running = tamias.start("crawl", "--delay", "1", "--depth", "5", *[each.seed for each in chains])
    tamias.wait_until(lambda: all(chain.depths() for chain in chains))
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130, running.stderr.read()
    wait_for_others(tamias)
    read = [chain.depths() for chain in chains]
    time.sleep(3)
    assert [chain.depths() for chain in chains] == read
    assert tamias.run("crawls", "resume", "default").returncode == 0
    tamias.wait_until(lambda: all(chain.depths()[-1] == 5 for chain in chains))


def test_a_worker_alone_keeps_to_the_time_of_a_crawl(tamias, chain):
    words = ("--in-service", "--allow-private", "--delay", "1", "--max-time", "2", chain.seed)
    assert tamias.run("crawl", *words).returncode == 0
    tamias.start("worker", "--workers", "1", "--allow-private")
    tamias.wait_until(chain.depths)
    time.sleep(5)
    read = chain.depths()
    time.sleep(3)
    assert chain.depths() == read != list(range(LAST + 1))


def test_a_worker_goes_by_options_that_change_while_it_runs(tamias, chain):
    start_worker(tamias, chain)
    done = tamias.run("crawl", "--in-service", "--depth", "5")
    assert done.returncode == 0, done.stderr
    tamias.wait_until(lambda: chain.depths()[-1] >= 5 and row(tamias)["open"] == 0)
    assert set(chain.depths()) == {0, 1, 2, 3, 4, 5}


def test_a_row_cannot_send_a_worker_into_its_private_network(tamias, chain):
    assert tamias.crawl("--max-urls", "1", chain.seed).returncode == LIMIT
    done = tamias.run("worker", "--workers", "1")
    assert (done.returncode, "--allow-private" in done.stderr) == (ConfigError.exit_code, True), done.stderr


def test_a_row_cannot_give_a_worker_more_than_its_machine_allows(tamias, chains):
    words = ("--in-service", "--allow-private", "--delay", "0", "--depth", "2")
    assert tamias.run("crawl", *words, *[chain.seed for chain in chains]).returncode == 0
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.execute(b"UPDATE crawl SET policy = jsonb_set(policy, '{flags,fetch__concurrency}', '50')")
    tamias.start("worker", "--workers", "1", "--allow-private", "--concurrency", "1")
    tamias.wait_until(lambda: row(tamias)["open"] == 0)
    spans = [span for chain in chains for span in chain.site.spans]
    at_once = [sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans]
    assert max(at_once) <= 2  # a host that has not answered yet has a slot of its own


def test_a_seed_that_is_added_changes_no_option(tamias, chain):
    assert tamias.crawl("--depth", "1", "--exclude", "/9", chain.seed).returncode == 0
    done = tamias.run("crawl", chain.site.url("/other"))
    assert (done.returncode, "changed" in done.stderr) == (0, False), done.stderr
    assert chain.depths() == [0, 1]
    assert (chain.site.asked("/other/1"), chain.site.asked("/other/2")) == (1, 0)
    flags = row(tamias)["policy"]["flags"]
    assert (flags["crawl__depth"], flags["filters__exclude"]) == (1, ["/9"])


def test_an_option_that_is_named_changes_and_that_is_said_before_the_first_request(tamias, chain):
    assert tamias.crawl("--depth", "1", chain.seed).returncode == 0
    done = tamias.run("crawl", "--depth", "2", "--delay", "0.01")
    lines = [line for line in done.stderr.splitlines() if line.startswith("changed")]
    assert len(lines) == 1, done.stderr
    for word in ("crawl.depth 1 → 2", "fetch.delay 0", "0.01"):
        assert word in lines[0]
    assert chain.depths() == [0, 1, 1, 2]


OPTIONS = {
    "--preset": ("owler", "crawl.preset"),
    "--depth": ("3", "crawl.depth"),
    "--scope": ("host", "filters.scope"),
    "--include": ("/[0-9]", "filters.include"),
    "--exclude": ("/11", "filters.exclude"),
    "--require": ("good", "frontier.require"),
    "--forbid": ("bad", "frontier.forbid"),
    "--delay": ("0.02", "fetch.delay"),
    "--contact": ("mailto:me@example.org", "fetch.contact"),
    "--resolve": ("a.example:127.0.0.1", "fetch.resolve"),
    "--budget": ("100000", "crawl.budget"),
    "--new-share": ("0.5", "crawl.new_share"),
    "--continuous": (None, "crawl.continuous"),
    "--no-robots": (None, "permit.robots"),
    "--allow-private": (None, "permit.allow_private"),
    "--requisites": (None, "crawl.requisites"),
    "--sink": ("warc", "crawl.sinks"),
}
OF_A_RUN = {
    *("--seeds", "--max-urls", "--max-time", "--max-wait", "--workers", "--concurrency", "--store"),
    *("--again", "--crawl", "--recrawl", "--in-service", "--strict", "--dry-run"),
    *("--data", "--db", "--config", "--json", "--log", "--quiet", "--verbose"),
}


def test_every_option_is_one_of_the_crawl_or_of_a_run():
    options = [each for each in crawl_verb.params if isinstance(each, click.Option)]
    names = {name for each in options for name in (*each.opts, *each.secondary_opts) if name[:2] == "--"}
    others = {name for name in names if name.startswith("--no-")} ^ {"--no-robots"}
    assert names - others - {"--robots"} == {*OPTIONS, *OF_A_RUN}


def test_every_option_is_still_there_after_a_resume_and_after_another_seed(tamias, chain):
    tamias.env["TAMIAS_TAGS__RULES"] = "/[0-9] good"
    words = [word for name, (value, _) in OPTIONS.items() for word in (name, value) if word]
    assert tamias.run("crawl", *words, "--max-urls", "1", "--workers", "1", chain.seed).returncode == LIMIT
    del tamias.env["TAMIAS_TAGS__RULES"]
    before = row(tamias)["policy"]["options"]
    named = {key: before[key] for _, key in OPTIONS.values()}
    assert (named["permit.robots"], named["crawl.sinks"], named["frontier.require"]) == (
        *(False, ["warc"], ["good"]),
    )
    for more in ((), (chain.site.url("/5"),)):
        done = tamias.run("crawl", "--max-urls", "1", "--max-time", "2", "--workers", "1", *more)
        assert (done.returncode, "changed" in done.stderr) == (LIMIT, False), done.stderr
        after = row(tamias)["policy"]["options"]
        assert {key: after[key] for key in named} == named


def test_settings_of_a_file_that_a_later_run_does_not_read_still_hold(tamias, chain, tmp_path):
    config = tmp_path / "here.toml"
    config.write_text("[crawl]\ndepth = 2\n")
    assert tamias.crawl("--config", config, chain.seed).returncode == 0
    assert tamias.crawl(chain.site.url("/other")).returncode == 0
    assert chain.depths() == [0, 1, 2]


def test_files_that_a_crawl_names_are_found_from_any_folder(tamias, chain, tmp_path):
    (tmp_path / "list.txt").write_text(f"{chain.site.address}/2\n")
    (tmp_path / "elsewhere").mkdir()
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = "mine=list.txt"
    assert tamias.crawl("--max-urls", "1", "--sink", "turtle-files:files", chain.seed).returncode == LIMIT
    del tamias.env["TAMIAS_FILTERS__BLOCKLISTS"]
    words = ["crawl", "--data", tamias.data]
    done = commands.run(
        words, env=tamias.env, cwd=tmp_path / "elsewhere", new=tamias.new, capture_output=True, text=True
    )
    assert (done.returncode, "changed" in done.stderr) == (0, False), done.stderr
    assert chain.depths() == [0, 1]
    assert len((tmp_path / "files" / "index.jsonl").read_text().splitlines()) >= 2
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_options_can_be_taken_back(tamias, chain):
    words = ("--depth", "1", "--exclude", "/2", "--requisites", "--no-robots", "--sink", "warc")
    assert tamias.crawl(*words, chain.seed).returncode == 0
    back = ("--depth", "-1", "--exclude", "", "--no-requisites", "--robots", "--sink", "nquads")
    assert tamias.crawl(*back).returncode == 0
    options = row(tamias)["policy"]["options"]
    found = [options[OPTIONS[name][1]] for name in ("--depth", "--exclude", "--requisites", "--no-robots")]
    assert found == [None, [], False, True]
    assert set(chain.depths()) == set(range(LAST + 1))


@pytest.mark.parametrize(
    "words",
    [
        ("--recrawl", "{seed}", "--scope", "host"),
        ("--scope", "host"),
        ("--include", "("),
        ("{seed}", "--sink", "nowhere"),
        ("--depth", "2", "--sink", "sparql:{seed}"),
        ("--depth", "2", "--sink", "turtle-files:/dev/null/x"),
        ("--depth", "2", "--resolve", "a.example:b.example"),
        ("--depth", "2", "--seeds", "damaged.warc"),
        ("--depth", "2", "gopher://a.example/"),
    ],
)
def test_a_refused_option_does_not_stick(tamias, chain, words):
    (tamias.data.parent / "damaged.warc").write_bytes(b"WARC/1.0\r\nWARC-Type: resp")
    assert tamias.crawl("--depth", "0", chain.seed).returncode == 0
    before = row(tamias)["policy"]
    refused = tamias.run("crawl", *[word.format(seed=chain.seed) for word in words])
    assert refused.returncode in {2, 4}, refused.stderr
    assert row(tamias)["policy"] == before
    done = tamias.run("crawl")
    assert (done.returncode, chain.depths()) == (0, [0]), done.stderr


def test_it_is_said_that_a_version_which_stored_no_sinks_began_the_crawl(tamias, chain):
    assert tamias.crawl("--max-urls", "1", "--depth", "3", "--sink", "warc", chain.seed).returncode == LIMIT
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.execute(
            b"UPDATE crawl SET policy = policy #- '{options,crawl.sinks}' #- '{flags,crawl__sinks}'"
        )
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("changed")]
    assert "crawl.sinks" in line
    assert "changed" not in tamias.run("crawl").stderr


@pytest.mark.parametrize("schema", [migrations()[0], migrations()[-2]], ids=["first", "before"])
def test_data_of_earlier_schemas_is_continued_with_its_options(tamias, chain, schema):
    options = {"crawl.depth": 3, "filters.exclude": ["/9"], "crawl.max_urls": 3}
    flags = {"crawl__depth": 3, "permit__allow_private": True, "fetch__delay": 0.0}
    with_sinks = schema.number > FIRST
    policy = json.dumps(
        {"flags": flags, "options": options | ({"crawl.sinks": ["warc"]} if with_sinks else {})}
    )
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        session.execute(b"DROP SCHEMA tamias CASCADE")
    before = Database(tamias.data, upto=schema.number)
    with closing(before), closing(before.session()) as session:
        session.execute(b"UPDATE crawl SET policy = %s, state = 'stopped' WHERE crawl = 1", [policy])
        frontier = PostgresFrontier(session, same_url=str.__eq__)
        frontier.put([Item(url=chain.seed, key=chain.seed, host=chain.site.address)])
    done = tamias.run("crawl", "--workers", "1")
    assert (done.returncode, "changed" in done.stderr) == (0, not with_sinks), done.stderr
    assert chain.depths() == [0, 1, 2, 3]
    assert (tamias.data / "warc").exists() == with_sinks
    assert row(tamias)["policy"]["options"]["filters.exclude"] == ["/9"]
