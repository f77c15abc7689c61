"""Block lists as a user meets them: links not followed, seeds and known URLs refused, all of it counted."""

import tarfile

from tamias.model.errors import ConfigError
from tests.messages import unsaid


def page(*links):
    return "".join(f"<#a> <#b> <{link}> .\n" for link in links).encode()


def test_a_listed_link_is_not_followed_and_counted_by_its_list(tamias, site, tmp_path):
    site.pages["/start"] = page("/good", "/bad/1", "/bad/2")
    site.pages["/good"] = page()
    (tmp_path / "nasty").write_text("127.0.0.1/bad\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    assert tamias.crawl(site.url("/start")).returncode == 0
    assert (site.asked("/good"), site.asked("/bad/1")) == (1, 0)
    assert not unsaid(tamias.run("stats").stdout, "2")


def test_a_listed_seed_is_refused_by_the_name_of_its_list(tamias, site, tmp_path):
    (tmp_path / "nasty").write_text("127.0.0.1\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    done = tamias.crawl(site.url("/start"))
    assert done.returncode == 2
    assert not unsaid(done.stderr, "nasty", "127.0.0.1")


def test_an_archive_of_lists_is_refused_and_its_folder_is_read(tamias, site, tmp_path):
    site.pages["/start"] = page("/good", "http://first.example/")
    for category, names in (("adult", "first.example\nsecond.example\n"), ("games", "third.example\n")):
        (tmp_path / "blacklists" / category).mkdir(parents=True)
        (tmp_path / "blacklists" / category / "domains").write_text(names)
    archive = tmp_path / "blacklists.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tmp_path / "blacklists", "blacklists")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(archive)
    done = tamias.crawl(site.url("/start"))
    assert (done.returncode, site.log) == (ConfigError.exit_code, []), done.stderr
    assert not unsaid(done.stderr, "blacklists.tar.gz")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "blacklists")
    assert tamias.crawl(site.url("/start")).returncode == 0
    assert not unsaid(tamias.run("stats").stdout, "1", "blacklists/adult", part=2)


def test_a_known_url_that_is_listed_later_is_refused_without_a_request(tamias, site, tmp_path):
    site.pages["/start"] = page("/later")
    tamias.crawl("--max-urls", "1", site.url("/start"))
    asked = len(site.log)
    (tmp_path / "nasty").write_text("127.0.0.1\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    assert tamias.crawl().returncode == 0
    (attempt,) = tamias.attempts()[site.url("/later")]
    assert (attempt["outcome"], attempt["reason"]) == ("refused", "block list nasty: 127.0.0.1")
    assert len(site.log) == asked


def test_a_list_that_nothing_reads_stops_the_crawl(tamias, site, tmp_path):
    (tmp_path / "nasty").write_text("127.0.0.1/bad\n")
    tamias.env |= {"TAMIAS_FILTERS__BLOCKLISTS": str(tmp_path / "nasty"), "TAMIAS_WITHOUT": "blocklists"}
    done = tamias.crawl(site.url("/start"))
    assert (done.returncode, "'blocklist'" in done.stderr) == (ConfigError.exit_code, True), done.stderr
    assert site.asked("/start") == 0
