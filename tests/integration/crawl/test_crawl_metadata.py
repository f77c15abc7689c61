"""What the metadata graph tells of every attempt is the truth."""

import time

from tests.messages import unsaid

PAGE = b'<> <#says> "page" .'


def test_the_metadata_tells_of_what_was_missing_late_forbidden_and_elsewhere(tamias, site, reply):
    site.pages |= {
        "/robots.txt": b"User-agent: *\nDisallow: /shut\n",
        "/late": lambda handler: time.sleep(2),
        "/shut": PAGE,
        "/moved": reply(302, Location="/here"),
        "/here": PAGE,
    }
    tamias.env |= {"TAMIAS_FETCH__FIRST_BYTE_TIMEOUT": "0.5", "TAMIAS_CRAWL__RETRIES": "1"}
    seeds = [site.url(path) for path in ("/missing", "/late", "/shut", "/moved")]
    done = tamias.crawl(*seeds, "--scope", "host", "--contact", "https://example.org/me", "--depth", 0)
    assert done.returncode == 0, done.stderr
    told = tamias.attempts()
    assert set(told) == set(seeds)

    (missing,) = told[site.url("/missing")]
    assert (missing["outcome"], missing["status"], missing["reason"]) == ("gone", "404", "404 Not Found")
    late = told[site.url("/late")]
    assert [each["outcome"] for each in late] == ["failed", "failed"]
    assert "first_byte_timeout" in late[0]["reason"]
    assert "status" not in late[0]
    (shut,) = told[site.url("/shut")]
    assert shut["outcome"] == "refused"
    assert not unsaid(shut["reason"], "robots.txt", "2", "/shut")
    assert site.asked("/shut") == 0
    (moved,) = told[site.url("/moved")]
    assert (moved["outcome"], moved["finalUrl"], moved["status"]) == ("ok", site.url("/here"), "200")
    assert moved["triples"] == "1"
    assert moved["foundType"] == "text/turtle"
    assert moved["address"] == "127.0.0.1"
    assert moved["byteSize"] == str(len(PAGE))
    assert "https://example.org/me" in moved["userAgent"]
    assert {line.rpartition(" <")[2] for line in tamias.quads()} == {f"{site.url('/here')}> ."}


def test_where_a_redirect_led_is_known_and_not_asked_for_again(tamias, site, reply):
    site.pages |= {
        "/": f"<> <{site.url('/moved')}> <{site.url('/here')}> .".encode(),
        "/moved": reply(302, Location="/here"),
        "/here": PAGE,
    }
    assert tamias.crawl(site.url("/moved"), "--scope", "host").returncode == 0
    assert tamias.crawl(site.url("/"), "--scope", "host").returncode == 0
    assert site.asked("/here") == 1
    assert site.asked("/moved") == 1
