"""Five people with a browser: what each clicks, what the page says, and what it offers next."""

import gzip
import re
from uuid import uuid4

import pytest

from tests.messages import unsaid

SECRET = "acorns"
FOREST, PORTAL = "forest.example", "data.nutwood.example"
BONES = b"bone,years\nrib,9000\n"


@pytest.fixture
def page(chromium, forest, tab_on):
    """A tab on the service of five people; what goes wrong in it fails the test."""
    opened = tab_on(chromium, forest.address)
    opened.page.set_default_timeout(15_000)
    yield opened.page
    opened.context.close()
    assert [each for each in opened.faults if "410" not in each and "404" not in each] == []


def heading(page):
    return page.locator("h1").inner_text()


def click(page, name, role="link", **words):
    """In what the page itself says, without its header and footer."""
    page.locator("main").get_by_role(role, name=name, **words).first.click()


def navigate(page, name):
    page.locator("nav").get_by_role("link", name=name, exact=True).click()


def sign_in(page):
    page.locator("header").get_by_role("link", name="Sign in").click()
    page.get_by_label("Secret").fill(SECRET)
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_role("button", name="Sign out").count() == 1


def until(page, seen):
    """Loads the page again until something is seen, as people do."""
    for _ in range(60):
        if seen():
            return
        page.wait_for_timeout(500)
        page.reload()
    raise AssertionError(page.locator("main").inner_text())


@pytest.mark.usefixtures("libraries")
def test_a_researcher_follows_statements_and_asks_what_names_a_document(page, forest):
    page.goto("/")
    navigate(page, "Documents")
    page.get_by_label("Part of the URL").fill("oak.ttl")
    click(page, "Search", "button")
    click(page, forest.web.url(FOREST, "/oak.ttl"))
    assert heading(page) == "Oak 2"
    row = page.get_by_role("row", name=re.compile("terms.example.next"))
    row.get_by_role("link", name=re.compile("elm.ttl")).click()
    assert heading(page) == "Elm 1"
    click(page, "Find documents that name it")
    assert heading(page) == "Query with SPARQL"
    found = page.locator(".yasr_results td", has_text="oak.ttl")

    def ask():
        """The catalogue may not have the document yet: then one asks again."""
        page.locator(".yasqe_queryButton").click()
        page.wait_for_timeout(1500)
        return found.count() > 0

    until(page, ask)
    page.goto(f"/document?url={forest.web.url(FOREST, '/unknown.ttl')}")
    assert not unsaid(page.locator("main").inner_text())
    click(page, "watch its address")
    assert heading(page) == "Watch an address"


def test_a_portal_operator_signs_in_once_adds_a_portal_and_sees_what_is_wrong(page, forest):
    page.goto("/")
    attention = page.get_by_role("table", name="Datasets whose last visit brought nothing")
    attention.get_by_role("link", name="Old register: file").click()
    assert "500 Internal Server Error" in page.get_by_role("alert").inner_text()
    sign_in(page)
    assert heading(page) == "Old register: file"  # where they were
    navigate(page, "Portals")
    click(page, "Add a portal")
    assert page.get_by_label("What it is").input_value() == "portal"
    page.get_by_label("Address (URL)").fill(forest.web.url(FOREST, "/"))
    click(page, "Watch this address", "button")
    told = page.get_by_role("status").inner_text()
    assert told.startswith("It is watched now. Its datasets appear when it has been read.")
    click(page, "Its page")
    until(page, lambda: page.get_by_role("link", name="Seeds of the forest: file").count())
    assert heading(page) == forest.web.url(FOREST, "").removeprefix("http://")
    feed = page.locator("main").get_by_role("link", name="Feed of changes").get_attribute("href")
    read = "(at) => fetch(at).then((answer) => answer.text())"  # a file is listed before its first visit
    until(page, lambda: "Seeds of the forest" in page.evaluate(read, feed))
    navigate(page, "Portals")
    names = [forest.web.url(host, "").removeprefix("http://") for host in (PORTAL, FOREST)]
    until(page, lambda: page.locator("tbody th a").all_inner_texts() == names)
    page.goto("/datasets?state=failing")
    click(page, "Old register: file")
    click(page, "Visit now", "button")  # signed in: without asking for the secret again
    assert heading(page) == "Old register: file"


def test_an_archivist_replays_a_capture_of_a_time_lists_and_imports(page, forest, run_verb):
    page.goto("/search?q=air")
    click(page, "Air quality: file")
    days = page.get_by_role("img", name=re.compile("^Calendar of changes"))
    assert days.locator("title").count() > 0
    url = forest.web.url(FOREST, "/oak.ttl")
    page.goto(f"/document?url={url}")
    captures = page.get_by_role("region", name="Captures").get_by_role("link")
    assert captures.count() == 2
    captures.last.click()  # the older one
    assert '"Oak 1"@en' in page.locator("body").inner_text()
    assert "/memento/" in page.url
    page.go_back()
    with page.expect_response("**/cdx?*") as told:
        click(page, "CDX")
    stamps = [line.split(" ")[1] for line in told.value.text().splitlines()]
    assert stamps == sorted(stamps)
    assert len(stamps) == 2
    page.goto(f"/document?url={forest.web.url(FOREST, '/nests.ttl')}")
    assert "forgotten on" in page.locator("main").inner_text()
    assert "where rare birds nest" in page.locator("main").inner_text()
    page.goto(f"/timegate/{forest.web.url(FOREST, '/nests.ttl')}")
    assert heading(page) == "410 Gone"
    run_verb("import", forest.data, str(museum(forest.data.with_name("museum.warc.gz"))), "--archive")
    page.goto("/search?q=museum")
    click(page, "http://museum.example/bones.csv")
    assert "2019-05-04" in page.get_by_role("region", name="Versions").inner_text()
    with page.expect_download() as begun:
        page.get_by_label("Memento of version 1").click()
    assert ("/memento/20190504" in begun.value.url, begun.value.path().read_bytes()) == (True, BONES)


def museum(path):
    """A WARC file of another crawler, years ago."""
    response = b"HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\n\r\n" + BONES
    head = (
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://museum.example/bones.csv\r\n"
        f"WARC-Date: 2019-05-04T03:02:01Z\r\nWARC-Record-ID: <urn:uuid:{uuid4()}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(response)}\r\n\r\n"
    )
    path.write_bytes(gzip.compress(head.encode() + response + b"\r\n\r\n"))
    return path


def test_a_data_engineer_reads_a_histogram_a_difference_bytes_and_the_api(page, forest, air_of):
    page.goto("/datasets")
    click(page, "Air quality: file")
    column = page.get_by_role("row", name=re.compile("^pm10 "))
    assert column.get_by_role("img", name=re.compile("How the values lie between")).count() == 1
    page.get_by_label("Version 1 as the old side").check()
    click(page, "Compare the two", "button")
    assert not unsaid(heading(page), "1", "3")
    page.go_back()
    for number in (1, 2, 3):
        with page.expect_download() as begun:
            page.get_by_label(f"Download version {number}").click()
        assert begun.value.path().read_bytes() == air_of(number)
    click(page, "In the API")
    assert page.url.endswith(f"/api/v1/get/dataset/{forest.air}")
    page.goto("/datasets")
    navigate(page, "API")
    page.locator("summary", has_text="/api/v1/get/file/{URL}").click()
    assert "curl" in page.locator("details[open] pre").inner_text()


def test_a_crawler_engineer_learns_why_and_opens_again(page, forest):
    page.goto("/")
    navigate(page, "Hosts")
    page.get_by_role("region", name=re.compile("^URLs that failed")).get_by_role("link", name=FOREST).click()
    assert not unsaid(page.locator("main").inner_text(), "robots.txt", "2", "/private/")
    click(page, "private/map.ttl")
    assert page.get_by_role("status").inner_text().startswith("The latest visit was refused: robots.txt")
    assert not unsaid(page.locator("main").inner_text(), "--no-robots", part=2)
    navigate(page, "Frontier")
    page.get_by_role("region", name="Crawls").get_by_role("link", name="default").click()
    reasons = page.get_by_role("region", name="Why URLs are not stored")
    assert not unsaid(page.locator("main").inner_text(), "--outcome", part=3)
    sign_in(page)
    assert heading(page) == "Crawl “default”"
    forest.web.mended = True
    reasons.get_by_role("button", name=re.compile("failed, 500")).click()
    assert page.get_by_role("status").inner_text().startswith("1 URL is due again")
    page.goto(f"/document?url={forest.web.url(FOREST, '/broken.ttl')}")
    assert heading(page) in ("Birch 1", forest.web.url(FOREST, "/broken.ttl").removeprefix("http://"))
