"""Block lists as a user meets them: links not followed, seeds and known URLs refused, all of it counted."""


def page(*links):
    return "".join(f"<#a> <#b> <{link}> .\n" for link in links).encode()


def test_a_listed_link_is_not_followed_and_counted_by_its_list(tamias, site, tmp_path):
    site.pages["/start"] = page("/good", "/bad/1", "/bad/2")
    site.pages["/good"] = page()
    (tmp_path / "nasty").write_text("127.0.0.1/bad\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    assert tamias.crawl(site.url("/start")).returncode == 0
    assert (site.asked("/good"), site.asked("/bad/1")) == (1, 0)
    assert "2 by the block list nasty" in tamias.run("stats").stdout


def test_a_listed_seed_is_refused_by_the_name_of_its_list(tamias, site, tmp_path):
    (tmp_path / "nasty").write_text("127.0.0.1\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    done = tamias.crawl(site.url("/start"))
    assert done.returncode == 2
    assert "is excluded: block list nasty: 127.0.0.1" in done.stderr


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
