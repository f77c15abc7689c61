"""Every page in a real browser: what it shows, what can be done with it, who can read it."""

import json
import re
import zipfile
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

import pytest

SECRET = "acorns"
LANDMARKS = ("header", 'nav[aria-label="Pages"]', "main", "footer")
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def places(made):
    """The address of every page, by name."""
    return {
        "overview": "/",
        "datasets": "/datasets",
        "failing datasets": "/datasets?state=failing",
        "no datasets": "/datasets?state=stopped",
        "search": "/search?q=nutwood",
        "nothing found": "/search?q=xylophone",
        "dataset": f"/dataset/{made.air}",
        "filtered search": "/search?q=nutwood&type=text/csv",
        "rows": f"/rows?url={made.air}&where=pm10%20%3E%2020&sort=-pm10",
        "refused rows": f"/rows?url={made.air}&where=lower(place)",
        "statistics": "/stats",
        "strategies": "/strategies",
        "graph dataset": f"/dataset/{made.terms}",
        "hostile dataset": f"/dataset/{made.hostile}",
        "hidden dataset": f"/dataset/{made.hidden}",
        "difference": f"/dataset/{made.air}/diff?a=1&b=3",
        "difference of graphs": f"/dataset/{made.terms}/diff?a=1&b=2",
        "preview": f"/dataset/{made.air}/preview?version=1",
        "version": f"/dataset/{made.air}/2",
        "version of a graph": f"/dataset/{made.terms}/1",
        "hidden version": f"/dataset/{made.hidden}/1",
        "hosts": "/hosts",
        "host": f"/host/{made.hosts[0]}",
        "broken host": f"/host/{made.hosts[3]}",
        "portals": "/portals",
        "portal": f"/portal?url={quote(made.portal, safe='')}",
        "portal at a time": f"/portal/at?url={quote(made.portal, safe='')}",
        "document": f"/document?url={quote(made.web.url(made.hosts[2], '/terms.ttl'), safe='')}",
        "failed document": f"/document?url={quote(made.web.url(made.hosts[3], '/register.csv'), safe='')}",
        "snapshots": "/snapshots",
        "snapshot": "/snapshot/nutwood-2026",
        "frontier": "/frontier",
        "crawls": "/crawls",
        "crawl": "/crawl/default",
        "documents": "/documents",
        "changes of documents": "/documents/changes?since=2020",
        "graph": "/graph",
        "query": "/query",
        "add": "/add",
        "sign in": "/sign-in",
        "account": "/add?url=http%3A%2F%2Fnew.example%2Fa.csv",
        "api": "/api",
        "missing": "/dataset/000000000000000000000000",
    }


NAMES = ["overview", "datasets", "failing datasets", "no datasets",
         "filtered search", "rows", "refused rows", "statistics", "strategies", "search", "nothing found",
         "dataset", "graph dataset", "hostile dataset",
         "hidden dataset", "difference", "difference of graphs", "preview", "version",
         "version of a graph", "hidden version", "hosts", "host", "broken host",
         "portals", "portal", "portal at a time", "document", "failed document", "snapshots", "snapshot",
         "frontier", "crawls", "crawl", "documents", "changes of documents", "graph", "query", "add",
         "sign in", "account", "api",
         "missing"]  # fmt: skip
_SENT = """() => ["navigation", "resource"].flatMap((kind) => performance.getEntriesByType(kind))
    .reduce((sum, each) => sum + each.transferSize, 0)"""
_RULES = """async (only) => {
    const wanted = only ? {runOnly: {type: "rule", values: only}} : {};
    const found = await axe.run(document, {resultTypes: ["violations"], ...wanted});
    return found.violations.filter((each) => ["serious", "critical"].includes(each.impact))
        .map((each) => each.id + ": " + each.nodes.map((node) => node.html.slice(0, 150)).join(" | "));
}"""


class Seen(NamedTuple):
    """What one look at a page told: each page is opened once, and judged by several tests."""

    faults: list
    sent: int
    levels: list
    landmarks: list
    serious: list
    serious_in_the_dark: list
    widths: list


@pytest.fixture(scope="module")
def seen(chromium, address, axe, places, tab_on):
    known = {}

    def look(name):
        if name not in known:
            known[name] = observed(tab_on(chromium, address), places[name], name, axe)
        return known[name]

    return look


def observed(opened, place, name, axe):
    page = opened.open(place)
    ready(page, name)
    sent, faults = page.evaluate(_SENT), list(opened.faults)
    tags = page.locator("h1, h2, h3").evaluate_all("all => all.map(each => each.tagName)")
    landmarks = [page.locator(each).count() for each in LANDMARKS]
    page.evaluate(axe)
    serious = page.evaluate(_RULES)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(_RULES, ["color-contrast"])
    page.set_viewport_size(PHONE)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    opened.context.close()
    return Seen(faults, sent, [int(tag[1]) for tag in tags], landmarks, serious, dark, widths)


@pytest.mark.parametrize("name", NAMES)
def test_axe_has_no_serious_finding(seen, name):
    assert seen(name).serious == []


@pytest.mark.parametrize("name", NAMES)
def test_axe_has_no_serious_finding_in_the_dark(seen, name):
    assert seen(name).serious_in_the_dark == []


@pytest.mark.parametrize("name", NAMES)
def test_a_phone_shows_the_page_without_scrolling_sideways(seen, name):
    width, screen = seen(name).widths
    assert width <= screen


@pytest.mark.parametrize("name", [name for name in NAMES if name != "missing"])
def test_no_page_says_an_error_or_breaks_its_own_policy(seen, name):
    assert seen(name).faults == []


@pytest.mark.parametrize("name", [name for name in NAMES if name != "query"])
def test_a_page_comes_in_less_than_100_kilobytes(seen, name):
    assert 0 < seen(name).sent < 100_000


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_landmarks_one_title_and_headings_in_order(seen, name):
    found = seen(name)
    steps = [after - before for before, after in pairwise(found.levels)]
    told = found.landmarks, found.levels.count(1), found.levels[0], max(steps, default=0) <= 1
    assert told == ([1, 1, 1, 1], 1, 1, True)


def test_the_first_key_leads_past_the_navigation(page):
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#content"


def test_dark_and_light_are_told_apart(tab):
    colours = []
    for scheme in ("light", "dark"):
        shown = tab(color_scheme=scheme).open("/")
        colours.append(shown.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(253, 252, 250)", "rgb(24, 21, 19)"]


@pytest.mark.usefixtures("libraries")
def test_the_overview_brings_itself_up_to_date(page):
    page.clock.install()
    page.goto("/")
    with page.expect_response("**/overview/live") as told:
        page.clock.fast_forward(11_000)
    assert told.value.status == 200


@pytest.mark.usefixtures("libraries")
def test_the_overview_stays_as_it_is_when_it_is_told_so(page):
    page.goto("/")
    asked = []
    page.get_by_role("button", name="Pause updates").click()
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("htmx.trigger('#live', 'news')")
    page.wait_for_timeout(300)
    assert asked == []


def test_a_failing_dataset_is_never_green(page, made):
    page.goto("/datasets?state=failing")
    assert page.locator("tbody th a").all_inner_texts() == ["Old register: file"]
    for path in ("/datasets", f"/portal?url={quote(made.portal, safe='')}", f"/host/{made.hosts[3]}"):
        page.goto(path)
        row = page.locator("tr", has_text="Old register").filter(has=page.locator(".state"))
        assert row.locator(".state").first.inner_text() == "failing"


@pytest.mark.usefixtures("libraries")
def test_the_answer_to_a_query_is_whole(page):
    page.goto("/query")
    page.locator(".yasqe_queryButton").click()
    page.locator(".yasr_results td").first.wait_for(timeout=20_000)
    names = page.locator(".yasr_results tbody td:nth-child(2)").all_inner_texts()
    assert names
    assert all("/dataset/" in each for each in names)
    # Nothing is beyond the edge of a usual screen.
    wide, seen = page.locator(".yasgui-place").evaluate("(at) => [at.scrollWidth, at.clientWidth]")
    assert wide <= seen


@pytest.mark.usefixtures("libraries")
def test_words_find_datasets_while_they_are_typed(page):
    page.goto("/search")
    page.get_by_label("Words of the title").press_sequentially("air qual")
    page.locator("#found tbody tr").wait_for()
    assert page.locator("#found tbody tr").count() == 1
    assert page.locator("#found a").first.inner_text() == "Air quality: file"


def test_a_search_works_without_scripts(tab):
    page = tab(java_script_enabled=False).open("/")
    page.get_by_label("Search titles, addresses, hosts and columns").fill("rodents")
    page.get_by_role("button", name="Search").click()
    assert page.locator("#found tbody tr").count() == 1


def test_a_column_is_found_and_named(page):
    page.goto("/search?q=amount")
    assert "columns: amount_eur" in page.locator("#found tbody").inner_text()


def test_two_versions_are_chosen_and_shown_side_by_side(page, made):
    page.goto(f"/dataset/{made.air}")
    page.get_by_label("Version 1 as the old side").check()
    page.get_by_label("Version 3 as the new side").check()
    page.get_by_role("button", name="Compare the two").click()
    assert page.locator("h1").inner_text() == "What changed from version 1 to 3"
    row = page.locator("tr", has_text="S005").first
    assert [row.locator(each).inner_text() for each in ("del", "ins")] == ["46", "48"]


def test_a_version_is_not_compared_with_itself(page, made):
    page.goto(f"/dataset/{made.air}")
    page.get_by_label("Version 3 as the old side").check()
    page.get_by_role("button", name="Compare the two").click()
    assert page.get_by_role("alert").inner_text().startswith("Choose two versions")


def test_other_versions_are_chosen_on_the_page_of_a_difference(page, made):
    page.goto(f"/dataset/{made.terms}/diff?a=1&b=3")
    page.get_by_label("Compare").select_option("2")
    page.get_by_role("button", name="Compare").click()
    assert re.search(r"a=2&b=3$", page.url)


def test_the_page_of_a_dataset_has_timeline_rows_profile_quality_and_reason(page, made):
    page.goto(f"/dataset/{made.air}")
    assert page.get_by_role("img", name=re.compile("^3 versions from")).locator("rect").count() == 3
    text = page.locator("main").inner_text()
    wanted = ["The first 20 rows", "Nutwood 3", "46 rows, 4 columns", "every 9 days",
              "The next visit is 2 days after the last", "Format (accuracy)"]  # fmt: skip
    assert [each for each in wanted if each not in text] == []


def test_a_graph_is_drawn_and_listed(page, made):
    page.goto(f"/dataset/{made.terms}")
    drawn = page.locator(".star text").all_text_contents()
    assert {"Chipmunk", "prefLabel", "inScheme"} <= set(drawn)
    assert page.get_by_role("row", name=re.compile("terms#Chipmunk.*prefLabel.*Chipmunk")).count() == 1


def test_a_download_has_the_bytes_that_came(page, made):
    page.goto(f"/dataset/{made.air}")
    with page.expect_download() as begun:
        page.get_by_label("Download version 2").click()
    content = begun.value.path().read_bytes()
    assert (begun.value.suggested_filename, content[:30]) == ("pm10.csv", b"station,measured_on,pm10,place")


def test_archived_pages_cannot_run_scripts_nor_reach_this_origin(tab, made):
    opened = tab()
    page = opened.open(f"/dataset/{made.html}")
    page.get_by_label("Memento of version 1").click()
    page.wait_for_load_state()
    assert (page.title(), page.evaluate("self.origin")) == ("x", "null")


def test_what_was_crawled_is_text_and_nothing_else(page, made):
    page.goto(f"/dataset/{made.hostile}")
    assert page.locator("h1").inner_text() == "<script>alert(1)</script>"
    assert page.locator("main script").count() == 0


def test_a_reader_walks_from_version_to_version_and_to_what_changed(page, made):
    page.goto(f"/dataset/{made.air}")
    page.get_by_role("link", name="Version 1", exact=True).click()
    page.get_by_role("link", name="Version 2, after it").click()
    assert page.locator("h1").inner_text() == "Version 2 of Air quality: file"
    assert re.search(r"Compared as\s+rows", page.locator("main").inner_text())
    page.get_by_role("link", name="See both side by side").click()
    assert page.locator("h1").inner_text() == "What changed from version 1 to 2"


def test_the_page_of_a_version_works_without_scripts(tab, made):
    page = tab(java_script_enabled=False).open(f"/dataset/{made.terms}/3")
    page.get_by_role("link", name="Version 2, before it").click()
    with page.expect_download() as begun:
        page.get_by_role("link", name="Download the bytes").click()
    assert begun.value.suggested_filename == "terms.ttl"


def test_a_version_that_is_not_to_be_shown_has_no_download(page, made):
    page.goto(f"/dataset/{made.hidden}/1")
    assert "asks that its content is not shown" in page.locator("main").inner_text()
    assert page.get_by_role("link", name="Download the bytes").count() == 0


def test_what_is_not_to_be_listed_or_shown_is_neither(page, made):
    page.goto(f"/dataset/{made.hidden}")
    assert page.locator('meta[name="robots"]').get_attribute("content") == "noindex"
    assert page.locator('script[type="application/ld+json"]').count() == 0
    assert "asks that its content is not shown" in page.locator("#preview").inner_text()


def test_what_may_be_listed_is_described_for_search_engines(page, made):
    page.goto(f"/dataset/{made.air}")
    told = page.evaluate(
        "JSON.parse(document.querySelector('script[type=\"application/ld+json\"]').textContent)"
    )
    assert told["name"] == "Air quality: file"


def test_a_host_shows_its_errors_its_pace_and_its_robots(page, made):
    page.goto(f"/host/{made.hosts[3]}")
    assert page.get_by_role("row", name=re.compile("failed 500 .*register.csv")).count() >= 1
    page.goto(f"/host/{made.hosts[0]}")
    text = page.locator("main").inner_text()
    assert ("Disallow: /private/" in text, "Seconds between requests" in text) == (True, True)


def test_a_portal_shows_what_it_describes_and_what_fails(page, made):
    page.goto("/portals")
    page.locator("main").get_by_role("link", name="data.nutwood.example").click()
    text = page.locator("main").inner_text()
    wanted = [
        "A data portal (ckan)",
        "Means over its datasets",
        "Old register: file",
        "Budget of Nutwood: file",
    ]
    assert [each for each in wanted if each not in text] == []
    assert page.get_by_role("row", name=re.compile(r"old\.elm\.example 1 0 1 1")).count() == 1


def test_the_frontier_shows_queues_and_tags(page):
    page.goto("/frontier")
    assert page.get_by_role("row", name=re.compile("^nutwood.example")).count() >= 1
    assert page.get_by_role("rowheader", name="kind=ckan").count() == 1


def test_the_graph_is_drawn_and_a_host_can_be_pointed_at(page, made):
    page.goto("/graph")
    page.locator("#graph[data-drawn='4']").wait_for()
    box = page.locator("#graph").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#graph-told").inner_text().startswith(f"{made.hosts[0]}: 5 datasets")
    painted = page.locator("#graph").evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(each => each > 0)"
    )
    assert painted


def test_ten_thousand_hosts_are_drawn(page):
    hosts = [f"h{number}.example" for number in range(10_000)]
    links = [[number % 50, number, 1] for number in range(50, 8_000)]
    data = {"hosts": hosts, "datasets": [1] * 10_000, "urls": [0] * 10_000, "links": links}
    page.route("**/graph.json", lambda route: route.fulfill(json=data))
    page.goto("/graph")
    page.locator("#graph[data-drawn='10000']").wait_for()


@pytest.mark.usefixtures("libraries")
def test_a_query_is_asked_and_answered_on_its_page(page, made):
    page.goto("/query")
    page.locator(".yasqe_queryButton").wait_for()
    page.get_by_role("link", name="Use this query: How many datasets each catalogue offers").click()
    page.locator(".yasqe_queryButton").click()
    page.locator(".yasr_results td", has_text="data.nutwood.example").first.wait_for(timeout=20_000)


def test_a_query_can_be_sent_without_scripts(tab):
    page = tab(java_script_enabled=False).open("/query")
    page.get_by_label("SPARQL query").fill("ASK { ?a ?b ?c }")
    with page.expect_response("**/sparql?*") as told:
        page.get_by_role("button", name="Get the answer").click()
    assert told.value.status == 200


@pytest.mark.usefixtures("libraries")
def test_the_files_that_a_query_names_are_downloaded(page):
    page.goto("/query")
    page.locator(".yasqe_queryButton").wait_for()
    with page.expect_download(timeout=20_000) as begun:
        page.get_by_role("button", name="Download the files").click()
    with zipfile.ZipFile(begun.value.path()) as files:
        told = [json.loads(line) for line in files.read("manifest.jsonl").splitlines()]
        given = [each for each in told if each["problem"] is None]
        assert (sum("pm10.csv" in each["url"] for each in given), len(files.namelist())) == (
            3,
            len(given) + 1,
        )
        assert [each["url"].rpartition("/")[2] for each in told if each["problem"]] == ["hidden.csv"]


def test_the_form_says_what_will_happen_and_then_does_it(page):
    page.goto("/add")
    page.get_by_label("Address (URL)").fill("http://fresh.example/new.csv")
    page.get_by_role("button", name="Preview").click()
    assert "It is not watched yet" in page.locator("ol").inner_text()
    page.locator("main").get_by_role("link", name="Sign in").click()
    page.get_by_label("Secret").fill(SECRET)
    page.get_by_role("button", name="Sign in").click()
    assert page.get_by_label("Address (URL)").input_value() == "http://fresh.example/new.csv"
    page.get_by_role("button", name="Watch this address").click()
    assert page.get_by_role("status").inner_text().startswith("It is watched now.")
    page.get_by_role("link", name="Its page").click()
    assert page.locator("h1").inner_text() == "http://fresh.example/new.csv"


def test_a_wrong_secret_signs_nobody_in(tab):
    page = tab().open("/sign-in")
    page.get_by_label("Secret").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    assert "neither the secret" in page.get_by_role("alert").inner_text()


def test_a_signed_in_user_stops_a_dataset_and_watches_it_again(tab, made):
    page = tab().open(f"/sign-in?next=/dataset/{made.terms}")
    page.get_by_label("Secret").fill(SECRET)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Stop watching").click()
    states = [page.locator(".figures .state").first.inner_text()]
    page.get_by_role("button", name="Watch again").click()
    states.append(page.locator(".figures .state").first.inner_text())
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"/dataset/{made.terms}")
    assert (states, page.get_by_role("button", name="Stop watching").count()) == (["stopped", "active"], 0)


def test_the_documentation_of_the_api_has_every_route(page):
    page.goto("/api")
    paths = page.evaluate("fetch('/openapi.json').then(a => a.json()).then(d => Object.keys(d.paths))")
    shown = page.locator("summary code").all_inner_texts()
    assert set(shown) == set(paths)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("missing", "add", "sign in", "account", "query")]
)
def test_the_data_of_a_page_is_had_as_json_and_as_csv(page, places, name):
    for form, kind in (("json", "application/json"), ("csv", "text/csv")):
        sign = "&" if "?" in places[name] else "?"
        answer = page.request.get(f"{places[name]}{sign}format={form}")
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)


def ready(page, name):
    """Waits for what a script draws."""
    if name == "graph":
        page.locator("#graph[data-drawn]").wait_for()
    if name == "query":
        page.locator(".yasqe_queryButton").click()
        page.locator(".yasr_results td").first.wait_for(timeout=20_000)


_DRAWN = """(() => {
    const pen = CanvasRenderingContext2D.prototype;
    const text = pen.fillText, arc = pen.arc, clear = pen.clearRect;
    window.drawn = {names: [], hosts: []};
    pen.clearRect = function (...all) {
        window.drawn = {names: [], hosts: []};
        return clear.apply(this, all);
    };
    pen.fillText = function (name, x, y) {
        window.drawn.names.push({name, x, y, wide: this.measureText(name).width});
        return text.call(this, name, x, y);
    };
    pen.arc = function (x, y, size, ...all) {
        const at = this.getTransform();
        window.drawn.hosts.push({x: at.a * x + at.e, y: at.d * y + at.f, size: at.a * size});
        return arc.call(this, x, y, size, ...all);
    };
})()"""


def many_hosts():
    """Three portals that lead to sixty hosts each."""
    names = [f"{word}{n}.{word}.example" for n in range(61) for word in ("data", "open", "stats")]
    count = len(names)
    return {
        "hosts": names,
        "datasets": [max(0, 300 - 3 * place) for place in range(count)],
        "urls": [1000 - place for place in range(count)],
        "links": [[place % 3, place, 1 + place % 7] for place in range(3, count)],
        "left_out": 0,
    }


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_the_graph_fills_its_canvas_and_no_names_overlap(tab, viewport):
    page = tab(viewport=viewport).page
    page.add_init_script(_DRAWN)
    page.route("**/graph.json", lambda route: route.fulfill(json=many_hosts()))
    page.goto("/graph")
    page.locator("#graph[data-drawn]").wait_for()
    drawn, size = page.evaluate("window.drawn"), page.evaluate("[graph.width, graph.height]")
    for side, name in enumerate("xy"):
        ends = [each[name] + sign * each["size"] for each in drawn["hosts"] for sign in (-1, 1)]
        assert 0 <= min(ends) < max(ends) <= size[side]
        assert max(ends) - min(ends) > 0.85 * size[side]
    assert len(drawn["names"]) > 5
    for one in drawn["names"]:
        assert one["wide"] / 2 <= one["x"] <= size[0] - one["wide"] / 2
        for other in drawn["names"]:
            beside = abs(one["x"] - other["x"]) >= (one["wide"] + other["wide"]) / 2
            assert one is other or beside or abs(one["y"] - other["y"]) >= 14


def test_the_graph_is_zoomed_and_filtered(tab):
    page = tab().page
    page.add_init_script(_DRAWN)
    page.route("**/graph.json", lambda route: route.fulfill(json=many_hosts()))
    page.goto("/graph")
    page.locator("#graph[data-drawn='183']").wait_for()

    def spread():
        places = [each["x"] for each in page.evaluate("window.drawn.hosts")]
        return max(places) - min(places)

    whole = spread()
    page.get_by_role("button", name="Zoom in").click()
    assert round(spread() / whole, 3) == 1.5
    page.get_by_role("button", name="Show all").click()
    assert round(spread() / whole, 3) == 1
    page.get_by_label("only hosts with datasets").check()
    page.locator("#graph[data-drawn='100']").wait_for()
    page.get_by_label("Show", exact=True).fill("OPEN7.")  # beside the portal that leads there
    page.locator("#graph[data-drawn='2']").wait_for()
    assert sorted(each["name"] for each in page.evaluate("window.drawn.names")) == [
        "open0.open.example",
        "open7.open.example",
    ]
    page.get_by_label("Show", exact=True).fill("xylophone")
    assert page.locator("#graph-told").inner_text() == "No host matches."


@pytest.mark.parametrize("name", ["overview", "dataset", "api"])
def test_the_menu_takes_one_row_on_a_phone_and_shows_where_one_is(tab, places, name):
    page = tab(viewport=PHONE).open(places[name])
    links = page.locator("header nav a")
    assert len({round(each.bounding_box()["y"]) for each in links.all()}) == 1
    here = page.locator("header nav [aria-current]")
    for each in here.all():
        box = each.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= PHONE["width"]
