"""The good sites among the hostile ones: pages of Turtle and HTML that link to each other, all to be had."""

from collections.abc import Mapping

from tests.hostile.web.wire import Answer, whole

SITES = 20
PAGES = 60
"""Of each site; a page names the next ones, so that the whole is reached from the first."""


def good_sites(sites: int, pages: int) -> dict[str, Mapping[str, Answer]]:
    """Sites by their names."""
    return {name: _site(name, pages) for name in good_names(sites)}


def good_names(sites: int) -> list[str]:
    """The names of the sites."""
    return [f"good-{number}.test" for number in range(sites)]


def good_urls(sites: int, pages: int) -> set[str]:
    """What a crawl must bring."""
    return {f"http://{name}{_path(number)}" for name in good_names(sites) for number in range(pages)}


def _path(number: int) -> str:
    return "/" if number == 0 else f"/{number}"


def _site(name: str, pages: int) -> dict[str, Answer]:
    return {_path(number): _page(name, number, pages) for number in range(pages)}


def _page(name: str, number: int, pages: int) -> Answer:
    following = [_path(each) for each in range(2 * number + 1, 2 * number + 3) if each < pages]
    if number % 2:
        links = "".join(f'<a href="{path}">{path}</a>' for path in following)
        prose = f"<p>About number {number} of {name}, in some words.</p>" * 100
        return whole(f"<!DOCTYPE html><title>{name} {number}</title>{links}{prose}", "text/html")
    lines = [f"<> <http://{name}/next> <http://{name}{path}> ." for path in following]
    lines += [f'<http://{name}/{number}#{row}> <http://{name}/value> "{number * row}" .' for row in range(50)]
    return whole("\n".join(lines))
