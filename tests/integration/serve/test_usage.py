"""What servers asked for is kept on every way to a body and in every search; the owner gets everything."""

import io
import json
import re
import zipfile
from urllib.parse import quote

import pytest

from tamias.archive.captures import insert_captures
from tamias.features.feeds.ldes import EVENTS_A_PAGE
from tamias.model.capture import CaptureRecord, Outcome
from tamias.model.lease import Lease, Task
from tamias.model.site import Signal

URL = "http://shy.example/secretive.tsv"
TYPE = "text/tab-separated-values"
LEASE = Lease(host="", qid=1, bucket=0, token=1, ends_at=0, delay_ms=0, tasks=())
TASK = Task(uid=1, url="", crawl=1, depth=0, score=0.0)
FIRST, SECOND = b"a\tb\n1\topen\n", b"a\tb\n1\tacorn\n"


def say(filled, name, number, *words):
    """As if the capture of a version had come with these rules."""
    [(capture,)] = filled.rows(
        "SELECT capture::text FROM version WHERE resource = %b AND number = %b::int4", name, number
    )
    record = CaptureRecord(
        id=capture, crawl=1, url=URL, started_at=0, ended_at=1, outcome=Outcome.OK, reason="", depth=0,
        final_url=URL, status=200, worker="w", agent="test",
        signals=tuple(Signal("header", "x-robots-tag", word) for word in words),
    )  # fmt: skip
    filled.session.transact(lambda cursor: insert_captures(cursor, [(LEASE, TASK, record)]))


@pytest.fixture(scope="module")
def shy(filled):
    """A dataset with two versions; with the second its server said `noindex` and `noarchive`."""
    name = filled.put(URL, FIRST, SECOND, media_type=TYPE, title="Hoard")
    say(filled, name, 2, "noindex", "noarchive")
    return name


BODIES = [
    "/api/v1/get/file/{url}",
    "/api/v1/get/file/{encoded}?version=2",
    "/api/v1/get/file/id/{id}",
    "/api/v1/get/file/id/{id}_2",
    "/memento/20260102000000/{url}",
    "/dataset/{id}/preview?version=2",
    "/dataset/{id}/diff?a=1&b=2",
]


def place(path, shy):
    return path.format(url=URL, encoded=quote(URL, safe=""), id=shy)


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_is_not_to_be_shown_is_refused_with_the_reason(client, shy, path):
    answer = client.get(place(path, shy))
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")
    assert "not shown (noarchive)" in answer.json()["detail"]


@pytest.mark.parametrize("path", BODIES)
def test_the_owner_gets_it_with_the_secret(writer, shy, path):
    answer = writer.get(place(path, shy))
    assert (answer.status_code, b"acorn" in answer.content) == (200, True)


def test_what_only_the_owner_gets_is_not_kept_on_the_way(writer, shy):
    answer = writer.get(f"/api/v1/get/file/id/{shy}_2")
    assert answer.headers["cache-control"] == "private, no-store"


def test_a_client_that_has_the_body_learns_nothing_either(client, writer, shy):
    path = f"/api/v1/get/file/id/{shy}_2"
    tag = writer.get(path).headers["etag"]
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 403


def test_a_wrong_secret_opens_nothing(client, shy):
    path = f"/api/v1/get/file/id/{shy}_2"
    assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 403


def test_a_version_of_which_nothing_was_said_is_given(client, shy):
    assert client.get(f"/api/v1/get/file/id/{shy}_1").content == FIRST


@pytest.mark.parametrize(
    "path", ["/api/v1/get/dataset/{id}", "/timemap/link/{url}", "/cdx?url={url}", "/dataset/{id}.ttl"]
)
def test_what_is_known_of_it_is_told(client, shy, path):
    assert client.get(place(path, shy)).status_code == 200


def members(answer):
    with zipfile.ZipFile(io.BytesIO(answer.content)) as files:
        told = [json.loads(line) for line in files.read("manifest.jsonl").splitlines()]
        return set(files.namelist()), {each["id"]: each["problem"] for each in told}


def test_a_zip_tells_why_a_file_is_not_in_it(client, shy):
    files, problems = members(client.get("/api/v1/get/files/type/tsv"))
    assert (f"{shy}_1.tsv" in files, f"{shy}_2.tsv" in files) == (True, False)
    assert (problems[f"{shy}_1"], "noarchive" in problems[f"{shy}_2"]) == (None, True)


def test_a_zip_for_the_owner_has_every_file(writer, shy):
    files, problems = members(writer.get("/api/v1/get/files/type/tsv"))
    assert (f"{shy}_2.tsv" in files, problems[f"{shy}_2"]) == (True, None)


def called(client, name, **arguments):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    answer = client.post("/mcp", json={**asked, "params": {"name": name, "arguments": arguments}})
    result = answer.json()["result"]
    return result["content"][0]["text"], result["isError"]


@pytest.mark.parametrize("tool", ["read", "diff"])
def test_an_assistant_is_told_why_it_gets_no_body(client, shy, tool):
    text, failed = called(client, tool, url=URL)
    assert (failed, "not shown (noarchive)" in text) == (True, True)


@pytest.mark.parametrize("tool", ["read", "diff"])
def test_the_assistant_of_the_owner_gets_it(writer, shy, tool):
    text, failed = called(writer, tool, url=URL)
    assert (failed, "acorn" in text) == (False, True)


SEARCHES = [
    "/search.json?q=hoard",
    "/api/v1/changes?q=hoard",
    "/api/v1/changes.atom?q=hoard",
    "/cdx?url=http://shy.example/*",
    "/cdx?url=shy.example&matchType=host",
    "/cdx?url=*.shy.example",
]


@pytest.mark.parametrize("path", [*SEARCHES, "/sitemap.xml"])
def test_no_search_finds_what_is_not_to_be_listed(client, shy, path):
    text = client.get(path).text
    assert (shy in text, URL in text) == (False, False)


@pytest.mark.parametrize("path", SEARCHES)
def test_the_owner_finds_it(writer, shy, path):
    text = writer.get(path).text
    assert shy in text or URL in text


def test_an_assistant_finds_it_for_the_owner_only(client, writer, shy):
    found = [shy in called(each, "search", words="hoard")[0] for each in (client, writer)]
    assert found == [False, True]


def test_a_search_looks_behind_what_is_not_to_be_listed(client, filled):
    names = [
        filled.put(f"http://walnut.example/{n}", b"x", title="Walnut", start=10**12 + n) for n in range(3)
    ]
    for name in names[1:]:
        say(filled, name, 1, "noindex")
    told, _ = called(client, "search", words="walnut", limit=1)
    assert [hit["id"] for hit in json.loads(told)["hits"]] == names[:1]


def test_the_page_of_a_dataset_offers_no_download_of_what_is_withheld(client, shy):
    text = client.get(f"/dataset/{shy}").text
    assert (f"/file/id/{shy}_1" in text, f"/file/id/{shy}_2" in text) == (True, False)


def test_the_page_of_a_dataset_shows_the_owner_how_it_begins(client, writer, shy):
    shown = ["acorn" in each.get(f"/dataset/{shy}").text for each in (client, writer)]
    assert shown == [False, True]


def test_the_page_of_a_version_that_is_withheld_shows_nothing_of_its_content(client, writer, shy):
    shown = ["acorn" in each.get(f"/dataset/{shy}/2").text for each in (client, writer)]
    assert shown == [False, True]


PIPES = "text/x-pipes"
OPT_OUTS = {
    "mined": ("header", "tdm-reservation", "1"),
    "trained": ("robots.txt", "user-agent", "ccbot gptbot"),
    "read": ("header", "content-signal", "ai-input=no"),
    "open": ("header", "content-signal", "ai-train=yes"),
}


def signalled(filled, name, signal):
    [(capture,)] = filled.rows("SELECT capture::text FROM version WHERE resource = %b", name)
    record = CaptureRecord(
        id=capture, crawl=1, url=URL, started_at=0, ended_at=1, outcome=Outcome.OK, reason="", depth=0,
        final_url=URL, status=200, worker="w", agent="test", signals=(Signal(*signal),),
    )  # fmt: skip
    filled.session.transact(lambda cursor: insert_captures(cursor, [(LEASE, TASK, record)]))


@pytest.fixture(scope="module")
def opted_out(filled):
    """Datasets, each with one version, by what their servers refuse; in a stream they are behind a page."""
    names = {}
    before = (b"x|%d" % n for n in range(EVENTS_A_PAGE))
    filled.put("http://many.example/", *before, media_type=PIPES, start=10**12, step=1)
    for word, signal in OPT_OUTS.items():
        url = f"http://optout.example/{word}"
        names[word] = filled.put(url, b"a|b\n1|chestnut\n", media_type=PIPES, title=f"Chestnut {word}")
        signalled(filled, names[word], signal)
    return names


def given(text, names):
    return {word for word, name in names.items() if name in text}


def test_a_zip_leaves_out_what_is_reserved_and_says_why(client, writer, opted_out):
    path = "/api/v1/get/files/type/text%2Fx-pipes"
    found = {}
    for who, query in [(client, ""), (client, "?for=training"), (writer, ""), (writer, "?for=training")]:
        files, problems = members(who.get(path + query))
        found[who is writer, query] = given(" ".join(files), opted_out)
        refused = set(opted_out) - given(" ".join(files), opted_out)
        assert all("its server re" in problems[f"{opted_out[word]}_1"] for word in refused)
    assert found == {
        (False, ""): {"trained", "read", "open"},
        (False, "?for=training"): {"read", "open"},
        (True, ""): set(opted_out),
        (True, "?for=training"): {"read", "open"},
    }


def all_pages(client, path):
    """What a feed says; of a stream with the pages that follow."""
    left, texts = [path], {}
    while left:
        page = left.pop()
        texts[page] = client.get(page).text
        nodes = re.findall(r"<https://w3id.org/tree#node> <([^>]+)>", texts[page])
        left += {node for node in nodes if node not in texts}
    return "".join(texts.values())


@pytest.mark.parametrize(
    "path", ["/api/v1/changes?host=optout.example", "/api/v1/changes.atom?q=chestnut", "/ldes?format=nt"]
)
def test_a_feed_leaves_out_what_is_reserved(client, writer, opted_out, path):
    training = f"{path}{'&' if '?' in path else '?'}for=training"
    assert given(all_pages(client, path), opted_out) == {"trained", "read", "open"}
    assert given(all_pages(client, training), opted_out) == {"read", "open"}
    assert given(all_pages(writer, path), opted_out) == set(opted_out)


def test_an_assistant_gets_what_no_server_refuses_to_models(client, writer, opted_out):
    def read(who):
        urls = {word: f"http://optout.example/{word}" for word in opted_out}
        return {word for word, url in urls.items() if "chestnut" in called(who, "read", url=url)[0]}

    assert (read(client), read(writer)) == ({"open"}, set(opted_out))


def test_one_file_is_no_bulk_export(client, opted_out):
    assert client.get(f"/api/v1/get/file/id/{opted_out['mined']}_1").status_code == 200


def test_a_page_says_what_is_not_permitted_and_who_says_so(client, opted_out):
    text = client.get(f"/dataset/{opted_out['trained']}").text
    assert "no_training" in text
    assert "robots.txt user-agent: ccbot gptbot" in text
