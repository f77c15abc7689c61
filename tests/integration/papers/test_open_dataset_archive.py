"""What the thesis on the Open Dataset Archive (Weber, WU Vienna) says of errors and times, replayed."""

import json
import urllib.request

import pytest

from tests.ports import free_port


@pytest.fixture
def served(tamias):
    """`served(path)` is what the service answers; it is started for it."""
    port = free_port()
    tamias.start("serve", "--no-crawl", "--port", str(port))
    base = f"http://127.0.0.1:{port}"

    def get(path):
        with urllib.request.urlopen(f"{base}{path}", timeout=60) as answer:
            return answer.read().decode()

    def up():
        try:
            return get("/healthz")
        except OSError:
            return None

    tamias.wait_until(up)
    return get


def visit(tamias, url):
    done = tamias.crawl("--no-robots", "--recrawl", url)
    assert done.returncode in (0, 5), done.stderr


def test_an_error_is_added_to_the_dataset_and_times_are_split(tamias, site, reply, request):
    """An error is added to the metadata of its dataset; response and saving times are split (Table 6)."""
    url = site.url("/data.csv")
    site.pages["/data.csv"] = reply(404, b"")
    assert tamias.run("add", url).returncode == 0
    visit(tamias, url)
    site.pages["/data.csv"] = reply(200, b"a,b\n1,2\n", Content_Type="text/csv")
    visit(tamias, url)

    stats = json.loads(tamias.run("stats", "--json").stdout)["seconds"]
    assert stats["response"] >= 0
    assert stats["saving"] >= 0
    served = request.getfixturevalue("served")
    dataset = json.loads(served(f"/api/v1/get/dataset/{url}"))
    assert [version["number"] for version in dataset["versions"]] == [1]
    assert "404" in dataset["last_error"]["reason"]
    assert dataset["last_error"]["at"] < dataset["versions"][0]["captured_at"]
    assert "404" in served(f"/dataset/{dataset['id']}").split("<dt>Last error</dt>")[1].split("</dd>")[0]
    figures = json.loads(served("/api/v1/stats"))
    assert figures["saving_seconds"] >= 0
    assert {each["outcome"]: each["saving_seconds"] is None for each in figures["attempts"]} == {
        "ok": False,
        "gone": True,
    }
