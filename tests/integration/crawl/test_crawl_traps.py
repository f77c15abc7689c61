"""A site without an end is left alone when its budget is used up, counted once for all workers."""

import json
import re

from tamias.model.errors import LimitReached
from tests.messages import unsaid

LIMIT = LimitReached.exit_code
BUDGET = 40
PAGES = 3 * BUDGET
ENDPOINT_BUDGET = 2 * BUDGET  # a survey comes before the copy


def number_of(path):
    return int(path.rpartition("/")[2])


def chained(site, text):
    """Documents that each name the next two, all known beforehand to the server."""
    for number in range(PAGES):
        links = ", ".join(f"<{site.url(f'/{n}')}>" for n in (2 * number + 1, 2 * number + 2))
        site.pages[f"/{number}"] = (
            f'<> <http://v.test/label> "{text(number)}" ; <http://v.test/next> {links} .'.encode()
        )


def crawl(tamias, site, workers):
    tamias.env["TAMIAS_PERMIT__HOST_BUDGET"] = str(BUDGET)
    tamias.env["TAMIAS_FRONTIER__PER_ROUND"] = "5"
    words = ("--allow-private", "--delay", "0", "--workers", workers, "--scope", "host")
    return tamias.run("crawl", *words, site.url("/0"))


def test_what_it_invents_is_cut_after_its_budget_whoever_visits_it(tamias, site):
    chained(site, lambda number: f"Number {number}")
    done = crawl(tamias, site, "3")
    assert done.returncode == LIMIT, done.stderr
    asked = [path for path in site.pages if site.asked(path)]
    assert BUDGET <= len(asked) <= 1.6 * BUDGET
    cut = [url for url, told in tamias.attempts().items() if told[-1]["outcome"] == "skipped"]
    assert cut
    assert all("permit.host_budget" in tamias.attempts()[url][-1]["reason"] for url in cut[:3])


def test_a_site_that_says_something_new_is_had_to_its_end(tamias, site):
    chained(site, lambda number: "".join(chr(97 + int(digit)) for digit in f"{number:04}"))
    done = crawl(tamias, site, "2")
    assert done.returncode == 0, done.stderr
    assert all(site.asked(path) for path in site.pages)


def test_a_catalogue_whose_pages_have_a_long_head_is_had_to_its_end(tamias, site, reply):
    head = "<meta name='x' content='the same on every page'>" * 500

    def page(number):
        following = [each for each in (2 * number + 1, 2 * number + 2) if each < PAGES]
        links = "".join(f"<a href='/{each}'>x</a>" for each in following)
        word = "".join(chr(97 + int(digit)) for digit in f"{number:04}")
        text = f"<html><head>{head}</head><body><p>About {word}</p>{links}</body></html>"
        return reply(200, text.encode(), **{"Content-Type": "text/html"})

    site.pages |= {f"/{number}": page(number) for number in range(PAGES)}
    done = crawl(tamias, site, "2")
    assert done.returncode == 0, done.stderr
    assert all(site.asked(path) for path in site.pages)


def test_a_cut_crawl_is_not_finished_and_says_how_to_go_on(tamias, site):
    chained(site, lambda number: f"Number {number}")
    cut = crawl(tamias, site, "1")
    found = re.search(
        r"1 queue stopped as traps; ([0-9]+) known URLs there were not visited; '(.*)'", cut.stderr
    )
    assert (cut.returncode, bool(found)) == (LIMIT, True), cut.stderr
    left = sum(told[-1]["outcome"] == "skipped" for told in tamias.attempts().values())
    assert int(found[1]) == left
    again = tamias.crawl("--max-wait", "5")
    assert again.returncode == LIMIT, again.stderr
    settings, _, command = found[2].partition(" tamias ")
    tamias.env |= dict(each.split("=") for each in settings.split())
    assert command == f"crawl --data {tamias.data}"
    opened = tamias.run("crawl", "--workers", "1")
    assert opened.returncode == 0, opened.stderr
    assert all(site.asked(path) for path in site.pages)


def test_a_calendar_without_an_end_is_left_alone_after_so_many_pages_of_all_workers(tamias, site, reply):
    tamias.env["TAMIAS_PERMIT__MONOTONY"] = str(BUDGET)
    tamias.env["TAMIAS_FRONTIER__PER_ROUND"] = "5"

    def day(number):
        links = "".join(f"<a href='/{each}'>x</a>" for each in (2 * number + 1, 2 * number + 2))
        return reply(200, f"<h1>Day {number}</h1>{links}".encode(), **{"Content-Type": "text/html"})

    site.pages |= {f"/{number}": day(number) for number in range(10 * BUDGET)}
    words = ("--allow-private", "--delay", "0", "--workers", "4", "--scope", "host")
    done = tamias.run("crawl", *words, site.url("/0"))
    assert done.returncode == LIMIT, done.stderr
    asked = [path for path in site.pages if site.asked(path)]
    assert BUDGET <= len(asked) <= 1.5 * BUDGET
    skipped = [each[-1] for each in tamias.attempts().values() if each[-1]["outcome"] == "skipped"]
    assert skipped
    assert all("permit.monotony" in each["reason"] for each in skipped)


def test_urls_over_the_limit_of_a_host_are_skipped_without_its_delay(tamias, site):
    tamias.env["TAMIAS_PERMIT__HOST_VISITS"] = "1"
    site.pages["/"] = "".join(f"<> <#to> </{number}> .\n" for number in range(600)).encode()
    words = ("--allow-private", "--no-robots", "--delay", "6", "--workers", "1")
    done = tamias.run("crawl", *words, site.url("/"))  # with a delay for each lease of ten: six minutes
    assert (done.returncode, "known URLs there were not visited" in done.stderr) == (LIMIT, True), done.stderr
    assert len(site.log) < 5  # visits that were under way may be over the limit


def endless_endpoint(site, reply):
    """Answers whatever is asked with rows that nobody has seen before."""
    given = []

    def rows(handler):
        numbers = range(len(given), len(given) + 100)
        words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in numbers]
        given.extend(words)
        found = [
            {
                "s": {"type": "uri", "value": f"http://e.test/{word}"},
                "p": {"type": "uri", "value": "http://e.test/says"},
                "o": {"type": "literal", "value": word},
            }
            for word in words
        ]
        body = json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": found}}).encode()
        reply(200, body, **{"Content-Type": "application/sparql-results+json"})(handler)

    site.pages["/sparql?"] = rows
    return given


def test_an_endpoint_without_an_end_is_cut_told_and_can_be_opened_again(tamias, site, reply):
    given = endless_endpoint(site, reply)
    tamias.env["TAMIAS_PERMIT__HOST_BUDGET"] = str(ENDPOINT_BUDGET)
    words = (f"sparql:{site.url('/sparql')}", "--depth", "0")
    done = tamias.crawl(*words)
    assert done.returncode == LIMIT, done.stderr
    asked = len(site.log)
    assert ENDPOINT_BUDGET <= asked <= 1.5 * ENDPOINT_BUDGET
    (attempt,) = tamias.attempts()[site.url("/sparql")]
    assert (attempt["outcome"], "permit.host_budget" in attempt["reason"]) == ("ok", True)
    kept = {line.split('"')[1] for line in tamias.quads() if "<http://e.test/says>" in line}
    assert kept
    assert kept <= set(given)

    reopened = tamias.run("crawls", "reopen", "--reason", "permit.host_budget")
    assert reopened.returncode == 0
    assert not unsaid(reopened.stdout, "1")
    tamias.env["TAMIAS_PERMIT__HOST_BUDGET"] = str(3 * ENDPOINT_BUDGET)
    assert tamias.crawl(*words).returncode == LIMIT
    assert 3 * ENDPOINT_BUDGET <= len(site.log) <= 4.5 * ENDPOINT_BUDGET
    assert len({line for line in tamias.quads() if "<http://e.test/says>" in line}) > len(kept)


def test_what_is_to_be_opened_again_is_found_by_outcome_reason_and_address(tamias, site, reply):
    site.pages |= {f"/{name}": reply(400) for name in ("a", "b")} | {"/c": b"<> <#says> 1 ."}
    tamias.crawl(*map(site.url, ("/a", "/b", "/c")))
    for words, told in (
        (("--outcome", "failed", "--match", "/b$"), "1 URL is due again"),
        (("--reason", "no such reason"), "nothing matches"),
        (("--outcome", "ok"), "1 URL is due again"),
    ):
        assert tamias.run("crawls", "reopen", *words).stdout == f"default: {told}\n"
    assert tamias.run("crawls", "reopen").returncode == 2
    site.log.clear()
    assert tamias.crawl().returncode == 0
    assert sorted(path for path, _ in site.log if path != "/robots.txt") == ["/b", "/c"]
