"""Every option of `tamias crawl` does what its help says."""

import json

import pytest

from tests.messages import unsaid

LAST = 12


def link(*paths):
    return "".join(f"<> <#next> <{path}> .\n" for path in paths).encode()


@pytest.fixture
def chain(site):
    """Pages that lead from one to the next, /0 to /12, and aside to /a/0 ... and /b/0 ...."""
    for number in range(LAST):
        site.pages[f"/{number}"] = link(f"/{number + 1}", f"/a/{number}", f"/b/{number}")
        site.pages |= {f"/a/{number}": link("/0"), f"/b/{number}": link("/0")}
    site.pages[f"/{LAST}"] = link("/0")
    return site


def asked(site):
    return sorted(path for path, _ in site.log if path != "/robots.txt")


def test_depth_counts_steps_from_the_seeds(tamias, chain):
    assert tamias.crawl(chain.url("/0"), "--depth", 2).returncode == 0
    assert asked(chain) == ["/0", "/1", "/2", "/a/0", "/a/1", "/b/0", "/b/1"]


@pytest.mark.parametrize("workers", [1, 3])
def test_max_urls_is_exact_and_a_later_run_goes_on(tamias, chain, workers):
    done = tamias.crawl(chain.url("/0"), "--max-urls", 7, "--workers", workers)
    assert (done.returncode, len(asked(chain))) == (5, 7), done.stderr
    assert "7 URLs visited" in done.stderr
    assert f"'tamias crawl --data {tamias.data}' continues" in done.stderr
    assert tamias.run("crawl").returncode == 0
    assert asked(chain) == sorted(chain.pages)


def test_max_time_ends_the_crawl_with_its_own_code(tamias, site):
    site.pages["/"] = link("/later")
    done = tamias.crawl(site.url("/"), "--delay", 60, "--max-time", 1)
    assert (done.returncode, "1 URL is left" in done.stderr) == (5, True)


def test_include_and_exclude_choose_among_links(tamias, chain):
    done = tamias.crawl(chain.url("/0"), "--include", r"/\d+$", "--include", "/a/", "--exclude", "/b/|/7$")
    assert done.returncode == 0, done.stderr
    assert asked(chain) == sorted([f"/{n}" for n in range(7)] + [f"/a/{n}" for n in range(7)])


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("prefix", {"/here/0", "/here/1"}),
        ("host", {"/here/0", "/here/1", "/there"}),
        ("domain", {"/here/0", "/here/1", "/there"}),
        ("any", {"/here/0", "/here/1", "/there", "/other"}),
    ],
)
def test_scope_keeps_near_the_seeds(tamias, site, site_at, scope, expected):
    other = site_at("127.0.0.2")
    other.pages["/other"] = b""
    site.pages |= {"/here/0": link("/here/1", "/there", other.url("/other")), "/here/1": b"", "/there": b""}
    assert tamias.crawl(site.url("/here/0"), "--scope", scope, "--depth", 1).returncode == 0
    assert {*asked(site), *asked(other)} == expected


def test_seeds_come_from_files_of_lines_and_of_tables(tamias, site, tmp_path):
    site.pages |= {"/one": b"", "/two": b"", "/three": b""}
    (tmp_path / "list.txt").write_text(f"# a list\n\n{site.url('/one')}\n")
    (tmp_path / "table.csv").write_text(f'name,uri\n"a, b",{site.url("/two")}\n')
    words = ("--seeds", tmp_path / "list.txt", "--seeds", tmp_path / "table.csv", site.url("/three"))
    assert tamias.crawl(*words).returncode == 0
    assert asked(site) == ["/one", "/three", "/two"]


def test_dry_run_names_the_line_that_forbids_and_fetches_nothing_else(tamias_at, site):
    tamias = tamias_at("nothing")
    site.pages |= {"/robots.txt": b"User-agent: *\nDisallow: /shut\n", "/open": b"", "/shut": b""}
    done = tamias.crawl("--dry-run", site.url("/open"), site.url("/shut"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"fetch  {site.url('/open')}",
        f"skip   {site.url('/shut')}  (robots.txt: line 2: Disallow: /shut)",
    ]
    assert [path for path, _ in site.log] == ["/robots.txt"]
    assert not tamias.data.exists()
    done = tamias.crawl("--dry-run", "--json", site.url("/shut"))
    assert json.loads(done.stdout) == {
        "url": site.url("/shut"),
        "refusal": "robots.txt: line 2: Disallow: /shut",
    }


def test_private_addresses_need_permission(tamias, site):
    site.pages["/"] = b""
    done = tamias.run("crawl", site.url("/"))
    assert done.returncode == 1, done.stderr
    assert site.log == []
    assert tamias.attempts()[site.url("/")][0]["outcome"] == "refused"


def test_json_is_lines_of_json_and_nothing_else(tamias, chain):
    done = tamias.crawl(chain.url("/0"), "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[-1]["ended"], lines[-1]["open"]) == ("done", 0)
    assert lines[-1]["visited"] == lines[-1]["outcomes"]["ok"] == len(chain.pages)


def test_strict_tells_of_failures_for_good_also_of_an_earlier_run(tamias, site, reply):
    site.pages |= {"/": link("/broken", "/recovers"), "/broken": reply(400), "/recovers": link("/")}
    assert tamias.crawl(site.url("/")).returncode == 0
    assert tamias.crawl(site.url("/"), "--strict").returncode == 3


def test_strict_does_not_mind_what_succeeded_at_last(tamias, site, reply):
    def at_last(handler):
        page = reply(200) if site.asked("/") > 2 else reply(500)
        page(handler)

    site.pages["/"] = at_last
    done = tamias.crawl(site.url("/"), "--strict")
    assert (done.returncode, site.asked("/")) == (0, 3), done.stderr


def test_resolve_gives_a_name_its_address(tamias, site):
    site.pages["/"] = b'<> <#says> "page" .'
    seed = site.url("/").replace("127.0.0.1", "somewhere.example")
    done = tamias.crawl(seed, "--resolve", "somewhere.example:127.0.0.1")
    assert done.returncode == 0, done.stderr
    assert {line.rpartition(" <")[2] for line in tamias.quads()} == {f"{seed}> ."}


def test_a_pause_longer_than_max_wait_ends_the_crawl_and_a_later_run_goes_on(tamias, site, reply):
    site.pages |= {"/busy": reply(503, Retry_After="3"), "/other": b""}
    done = tamias.crawl(site.url("/busy"), "--max-wait", 1)
    assert (done.returncode, "more than --max-wait; 1 URL is left" in done.stderr) == (5, True), done.stderr
    site.pages["/busy"] = b'<> <#says> "page" .'
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    assert len(tamias.quads()) == 1
    (_, first), (_, second) = [visit for visit in site.log if visit[0] == "/busy"]
    assert second - first >= 3.0


def test_a_host_that_asks_for_a_pause_even_for_robots_is_left_alone(tamias, site, reply):
    site.pages |= {"/robots.txt": reply(503, Retry_After="3600"), "/": b""}
    done = tamias.crawl(site.url("/"), "--max-wait", 5)
    assert (done.returncode, len(site.log)) == (5, 1), done.stderr
    (told,) = tamias.attempts()[site.url("/")]
    assert (told["outcome"], told["reason"]) == ("failed", "robots.txt: 503 Service Unavailable")


def test_a_crawl_goes_on_under_the_policy_it_began_with(tamias, chain, site_at):
    other = site_at("127.0.0.2")
    chain.pages["/0"] += link(other.url("/other"))
    words = ("--scope", "host", "--exclude", "/b/", "--max-urls", 1)
    assert tamias.crawl(chain.url("/0"), *words).returncode == 5
    done = tamias.run("crawl")
    assert done.returncode == 0, done.stderr
    assert asked(chain) == sorted(path for path in chain.pages if not path.startswith("/b/"))
    assert other.log == []


def test_an_absurd_crawl_delay_is_a_long_pause_and_no_fault(tamias, site):
    site.pages |= {"/robots.txt": b"User-agent: *\nCrawl-delay: 99999999\n", "/": link("/next")}
    done = tamias.crawl(site.url("/"), "--delay", 0)
    assert done.returncode == 5, done.stderr
    assert "more than --max-wait" in done.stderr


def test_a_crawl_whose_only_seed_cannot_be_fetched_fails(tamias, site, reply):
    site.pages |= {"/robots.txt": b"User-agent: *\nDisallow: /shut\n", "/broken": reply(400)}
    for path, told in (
        ("/broken", "failed: 400 Bad Request"),
        ("/shut", "refused: robots.txt: line 2: Disallow: /shut"),
        ("/gone", "gone: 404 Not Found"),
    ):
        done = tamias.crawl(site.url(path), "--strict")
        assert done.returncode == 1, (path, done.stderr)
        assert done.stderr.splitlines()[-2:] == [
            "tamias: no seed could be fetched:",
            f"  {site.url(path)}: {told}",
        ]
    assert tamias.run("crawl").returncode == 1


def test_the_end_of_a_run_tells_the_top_reasons_with_an_example_and_what_to_do(tamias, site, reply):
    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /shut\n",
        "/": link("/shut/1", "/shut/2", "/shut/3", "/broken/1", "/broken/2", "/odd", "/gone"),
        "/broken/1": reply(501),
        "/broken/2": reply(501),
        "/odd": reply(302, Location=site.url("/excluded")),
    }
    done = tamias.crawl(site.url("/"), "--exclude", "/excluded", "--json")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    first = next(number for number, line in enumerate(lines) if "visited in" in line)
    assert lines[first].endswith(": 1 ok, 2 failed, 1 gone, 3 refused, 1 skipped; 7 quads")
    shut, broken = (line.partition(site.url("/")) for line in lines[first + 1 : first + 3])
    assert shut[0] == "  3 refused: robots.txt, e.g. "
    assert not unsaid(shut[2].partition("; ")[2], "--no-robots", part=2)
    example, _, advice = broken[2].partition("; ")
    assert (broken[0], example[:-1]) == ("  2 failed: 501 Not Implemented, e.g. ", "broken/")
    assert not unsaid(advice, "--outcome")
    assert not unsaid(lines[first + 3], "--exclude", "/excluded", site.url("/odd"), part=3)
    told = json.loads(done.stdout.splitlines()[-1])["reasons"]
    assert [(each["outcome"], each["count"], each["kind"]) for each in told] == [
        ("refused", 3, "robots.txt"),
        ("failed", 2, "501 Not Implemented"),
        ("skipped", 1, "--exclude '/excluded'"),
    ]
    assert not unsaid(told[0]["reason"], "robots.txt", "2", "/shut", part=4)


def test_a_refused_private_address_is_told_with_the_option_that_allows_it(tamias, site):
    done = tamias.run("crawl", site.url("/"))
    assert done.returncode == 1
    assert f"  1 refused: loopback address, e.g. {site.url('/')}; use --allow-private" in done.stderr
    assert f"  {site.url('/')}: refused: loopback address 127.0.0.1\n" in done.stderr


def test_one_seed_that_can_be_fetched_is_enough(tamias, site, reply):
    site.pages |= {"/broken": reply(400), "/": b""}
    assert tamias.crawl(site.url("/broken"), site.url("/")).returncode == 0
    assert tamias.crawl(site.url("/")).returncode == 0
    assert tamias.crawl(site.url("/broken")).returncode == 1
    assert tamias.run("crawl").returncode == 0
