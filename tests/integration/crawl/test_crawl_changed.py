"""A later run with other options opens exactly what they now allow, and says how much."""

import json

import pytest


def link(*urls):
    return "".join(f"<> <#next> <{url}> .\n" for url in urls).encode()


def asked(*sites):
    """What was asked for since the last look, but robots.txt."""
    found = sorted(path for site in sites for path, _ in site.log if path != "/robots.txt")
    for site in sites:
        site.log.clear()
    return found


def reopened(done):
    return [
        line.removeprefix("reopened ") for line in done.stderr.splitlines() if line.startswith("reopened")
    ]


@pytest.fixture
def tree(site):
    """/ leads to /a/ and /b/, each to 1 and 2, which lead to one page each; /whole leads nowhere."""
    site.pages["/"] = link("/a/", "/b/", "/whole")
    site.pages["/whole"] = b'<> <#says> "all" .'
    for part in "ab":
        site.pages[f"/{part}/"] = link(f"/{part}/1", f"/{part}/2")
        for number in "12":
            site.pages[f"/{part}/{number}"] = link(f"/{part}/{number}/deep")
            site.pages[f"/{part}/{number}/deep"] = b""
    return site


def test_more_depth_reads_again_only_what_it_had_cut(tamias, tree):
    assert tamias.crawl(tree.url("/"), "--depth", 1).returncode == 0
    assert asked(tree) == ["/", "/a/", "/b/", "/whole"]
    foreseen = tamias.run("crawl", "--dry-run", "--depth", "2")
    assert (foreseen.stdout, asked(tree)) == ("reopen 2 URLs: depth\n", []), foreseen.stderr
    done = tamias.run("crawl", "--depth", "2")
    assert (done.returncode, reopened(done)) == (0, ["2 URLs: depth"]), done.stderr
    assert asked(tree) == ["/a/", "/a/1", "/a/2", "/b/", "/b/1", "/b/2"]
    assert "6 URLs visited" in done.stderr
    done = tamias.run("crawl")
    assert (done.returncode, reopened(done), asked(tree)) == (0, [], [])
    done = tamias.crawl(tree.url("/"), "--depth", -1)
    assert reopened(done) == ["4 URLs: depth"]
    deep = [f"/{part}/{number}/deep" for part in "ab" for number in "12"]
    assert asked(tree) == sorted([*deep, "/a/1", "/a/2", "/b/1", "/b/2"])


def test_a_wider_scope_reads_again_only_pages_with_links_out_of_it(tamias, tree, site_at):
    other = site_at("127.0.0.2")
    other.pages["/other"] = b""
    tree.pages["/a/1"] += link(other.url("/other"))
    assert tamias.crawl(tree.url("/"), "--scope", "host").returncode == 0
    asked(tree)
    done = tamias.run("crawl", "--scope", "any")
    assert (done.returncode, reopened(done)) == (0, ["1 URL: scope"]), done.stderr
    assert asked(tree, other) == ["/a/1", "/other"]


def test_a_filter_that_is_gone_lets_in_what_it_kept_out(tamias, tree):
    assert tamias.crawl(tree.url("/"), "--exclude", "/b/", "--exclude", "deep").returncode == 0
    asked(tree)
    done = tamias.crawl(tree.url("/"), "--exclude", "/b/")
    assert (done.returncode, reopened(done)) == (0, ["3 URLs: filters"]), done.stderr
    assert asked(tree) == ["/", "/a/1", "/a/1/deep", "/a/2", "/a/2/deep"]
    done = tamias.crawl(tree.url("/"), "--exclude", "/b/", "--exclude", "more")
    assert (reopened(done), asked(tree)) == ([], [])


def test_private_addresses_are_fetched_when_they_are_allowed(tamias, site):
    site.pages["/"] = b'<> <#says> "page" .'
    assert tamias.run("crawl", site.url("/")).returncode == 1
    for robots in ((), ("--no-robots",)):
        foreseen = tamias.run("crawl", "--dry-run", site.url("/"), *robots)
        assert foreseen.stdout.startswith(f"skip   {site.url('/')}  (visited by an earlier run: refused)")
    foreseen = tamias.run("crawl", "--dry-run", site.url("/"), "--allow-private")
    assert foreseen.stdout == f"fetch  {site.url('/')}\nreopen 1 URL: private addresses\n"
    asked(site)
    done = tamias.run("crawl", "--allow-private", "--delay", "0")
    assert (done.returncode, reopened(done)) == (0, ["1 URL: private addresses"]), done.stderr
    assert "1 URL visited" in done.stderr
    assert asked(site) == ["/"]
    assert len(tamias.quads()) == 1


def test_what_robots_txt_forbade_is_fetched_when_it_is_not_asked(tamias, site):
    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /shut\n",
        "/": link("/shut", "/open"),
        "/shut": b'<> <#says> "shut" .',
        "/open": b"",
    }
    assert tamias.crawl(site.url("/")).returncode == 0
    assert asked(site) == ["/", "/open"]
    done = tamias.run("crawl", "--no-robots")
    assert (done.returncode, reopened(done)) == (0, ["1 URL: robots.txt"]), done.stderr
    assert asked(site) == ["/shut"]


def test_a_larger_limit_reads_again_what_had_met_it(tamias, tree, tmp_path):
    tree.pages["/whole"] = b'<> <#says> "%s" .' % (b"x" * 5000)
    config = tmp_path / "tamias.toml"
    config.write_text("[fetch]\nmax_bytes = 2000\n")
    assert tamias.crawl(tree.url("/"), "--config", config).returncode == 0
    asked(tree)
    config.write_text("[fetch]\nmax_bytes = 20000\n")
    done = tamias.run("crawl", "--config", str(config))
    assert (done.returncode, reopened(done)) == (0, ["1 URL: fetch.max_bytes"]), done.stderr
    assert asked(tree) == ["/whole"]


def test_a_dry_run_tells_what_is_known_of_the_data_and_changes_nothing(tamias, tree):
    assert tamias.crawl(tree.url("/"), "--max-urls", 1).returncode == 5
    asked(tree)
    for _ in range(2):
        done = tamias.run("crawl", "--dry-run", "--allow-private", tree.url("/"), tree.url("/a/"))
        assert (done.returncode, done.stdout.splitlines()) == (
            0,
            [
                f"skip   {tree.url('/')}  (visited by an earlier run: ok)",
                f"fetch  {tree.url('/a/')}",
                "fetch  3 URLs: left by an earlier run",
            ],
        ), done.stderr
    done = tamias.run("crawl", "--dry-run", "--json", "--allow-private")
    assert json.loads(done.stdout) == {"reopened": {}, "open": 3}
    assert asked(tree) == []


@pytest.mark.parametrize("words", [(), ("--no-robots",)])
def test_a_dry_run_knows_private_addresses(tamias_at, site, words):
    done = tamias_at("nothing").run("crawl", "--dry-run", site.url("/"), *words)
    assert done.stdout == f"skip   {site.url('/')}  (loopback address 127.0.0.1)\n"
    assert site.log == []
