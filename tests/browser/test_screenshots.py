"""The pictures of the documentation: `make screenshots` takes them, else it is seen that they are there."""

import os
from pathlib import Path
from urllib.parse import quote

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
NAMES = (
    "overview",
    "datasets",
    "search",
    "dataset",
    "version",
    "difference",
    "host",
    "portal",
    "documents",
    "crawl",
    "frontier",
    "graph",
    "query",
    "add",
    "api",
)
WIDTHS = {
    "desktop": {"viewport": {"width": 1280, "height": 860}},
    "phone": {"viewport": {"width": 390, "height": 844}},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
}
DARK = ("overview", "datasets", "dataset", "query")
"""What there is a dark picture of; the others have the same colours."""
PICTURES = [(name, width) for name in NAMES for width in WIDTHS if width != "dark" or name in DARK]
MOST_BYTES = 150_000
VARIABLE = "SCREENSHOTS"
"""The folder into which they are written."""


@pytest.mark.parametrize(("name", "width"), PICTURES)
def test_there_is_a_picture_of_every_main_page(name, width):
    picture = FOLDER / f"{name}-{width}.png"
    assert 1_000 < picture.stat().st_size < MOST_BYTES


@pytest.mark.parametrize(("name", "width"), PICTURES)
@pytest.mark.skipif(VARIABLE not in os.environ, reason="taken by 'make screenshots'")
def test_pictures_are_taken_when_asked_for(tab, made, name, width):
    folder = os.environ[VARIABLE]
    page = tab(**WIDTHS[width]).open(place(made, name))
    if name == "graph":
        page.locator("#graph[data-drawn]").wait_for()
    if name == "query":
        page.locator(".yasqe_queryButton").wait_for()
        page.locator(".yasqe_queryButton").click()
        page.locator(".yasr_results td").first.wait_for(timeout=20_000)
    Path(folder).mkdir(parents=True, exist_ok=True)
    page.screenshot(path=Path(folder) / f"{name}-{width}.png")


def place(made, name):
    """The address of a page; not of all hosts and datasets there are pictures."""
    known = {
        "overview": "/",
        "crawl": "/crawl/watch",
        "search": "/search?q=nutwood",
        "dataset": f"/dataset/{made.air}",
        "version": f"/dataset/{made.air}/2",
        "difference": f"/dataset/{made.air}/diff?a=1&b=3",
        "host": f"/host/{made.hosts[0]}",
        "portal": f"/portal?url={quote(made.portal, safe='')}",
        "add": f"/add?url={quote(made.web.url(made.hosts[1], '/no2.csv'), safe='')}",
    }
    return known.get(name, f"/{name}")
