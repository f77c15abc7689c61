"""A site without an end is left alone when its budget is used up, counted once for all workers."""

BUDGET = 40
PAGES = 3 * BUDGET


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
    assert done.returncode == 0, done.stderr
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


def test_a_calendar_without_an_end_is_left_alone_after_so_many_pages_of_all_workers(tamias, site, reply):
    tamias.env["TAMIAS_PERMIT__MONOTONY"] = str(BUDGET)
    tamias.env["TAMIAS_FRONTIER__PER_ROUND"] = "5"

    def day(number):
        links = "".join(f"<a href='/{each}'>x</a>" for each in (2 * number + 1, 2 * number + 2))
        return reply(200, f"<h1>Day {number}</h1>{links}".encode(), **{"Content-Type": "text/html"})

    site.pages |= {f"/{number}": day(number) for number in range(10 * BUDGET)}
    words = ("--allow-private", "--delay", "0", "--workers", "4", "--scope", "host")
    done = tamias.run("crawl", *words, site.url("/0"))
    assert done.returncode == 0, done.stderr
    asked = [path for path in site.pages if site.asked(path)]
    assert BUDGET <= len(asked) <= 1.5 * BUDGET
    skipped = [each[-1] for each in tamias.attempts().values() if each[-1]["outcome"] == "skipped"]
    assert skipped
    assert all("permit.monotony" in each["reason"] for each in skipped)
