"""What the paper on OWLer (Dinzinger et al.) says of its two stages and of interests, replayed."""

from collections import Counter

PAGES = 25


def visited(site):
    return Counter(path for path, _ in site.log if path != "/robots.txt")


def test_a_queue_gives_ten_urls_in_a_round_and_the_next_round_is_five_minutes_later(tamias, site):
    """Section 3: a "minimum five-minute delay", and "only the first ten items are popped"."""
    site.pages["/robots.txt"] = b""
    for number in range(PAGES):
        site.pages[f"/{number}"] = b"<> <#is> <#page> ."
    seeds = [site.url(f"/{number}") for number in range(PAGES)]
    done = tamias.crawl("--preset", "owler", "--max-wait", "1", *seeds)
    assert done.returncode == 5, done.stderr
    assert len(visited(site)) == sum(visited(site).values()) == 10
    assert tamias.crawl("--max-wait", "1").returncode == 5  # the preset is the crawl's own
    assert sum(visited(site).values()) == 10
    assert "15 URLs are left" in done.stderr


def test_a_crawler_that_is_interested_in_tags_visits_only_what_has_them_all(tamias, site):
    """Section 3: crawlers "only interested in sitemaps of family-friendly websites"."""
    site.pages["/robots.txt"] = b""
    tags = {"/both": ("Sitemap", "FamilyFriendly"), "/one": ("Sitemap",), "/none": ()}
    for path in tags:
        site.pages[path] = b"<> <#is> <#page> ."
    assert tamias.crawl("--max-time", "0", *(site.url(path) for path in tags)).returncode == 5
    for path, names in tags.items():
        if names:
            said = tamias.run("tag", site.url(path), "--by", "ann", *(f"+{name}" for name in names))
            assert said.returncode == 0, said.stderr
            assert "Sitemap (by ann)" in said.stdout
    tamias.crawl("--require", "Sitemap", "--require", "FamilyFriendly", "--max-wait", "1")
    assert visited(site) == {"/both": 1}
