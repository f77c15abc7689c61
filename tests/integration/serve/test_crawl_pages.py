"""The pages of a crawl and of its documents, of a site on Python's own web server."""

import functools
import http.server
import threading
import time
from contextlib import closing
from urllib.parse import quote

import httpx
import pytest
from pyoxigraph import RdfFormat, parse

from benchmarks.serve.fill import fill_documents
from tamias.database.connect import Database
from tests import commands
from tests.messages import unsaid

from .conftest import Running, environment

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HOSTILE = "<script>alert(1)</script>"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def guess_type(self, path):
        return "text/turtle" if str(path).endswith(".ttl") else super().guess_type(path)

    def log_message(self, *_):
        pass


def tamias(data, *words):
    done = commands.run(
        [*words, "--data", str(data)],
        env=environment(), capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def web(tmp_path_factory):
    """The address of a site of four documents, one of which another page links to and is not there."""
    folder = tmp_path_factory.mktemp("site")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    here = f"http://127.0.0.1:{server.server_address[1]}"
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    (folder / "a.ttl").write_text(
        f'<> {label} "The first {HOSTILE}" ; <{here}/#next> <b.ttl>, <c.ttl>, <absent.ttl> .'
    )
    (folder / "b.ttl").write_text(f'<> {label} "The second" ; <{here}/#next> <a.ttl>, <d.ttl> .')
    skos = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
    names = "".join(f'<#{n}> skos:prefLabel "{n}" ; skos:inScheme <#all> ; a skos:Concept .' for n in "xyz")
    scheme = '<#all> a skos:ConceptScheme ; skos:prefLabel "All letters" .'
    (folder / "d.ttl").write_text(f"{skos}{names}{scheme} <b.ttl> <{here}/#next> <d.ttl> .")
    (folder / "c.ttl").write_text("".join(f'<#{n}> <#p> "{n}" .\n' for n in range(300)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield here
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def data(web, tmp_path_factory):
    data = tmp_path_factory.mktemp("crawled") / "data"
    tamias(data, "crawl", f"{web}/a.ttl", "--allow-private", "--delay", "0", "--scope", "host", "-q")
    return data


@pytest.fixture(scope="module")
def exported(data):
    """What `tamias export` writes, by graph."""
    graphs = {}
    for quad in parse(tamias(data, "export", "--format", "nquads"), format=RdfFormat.N_QUADS):
        graphs.setdefault(quad.graph_name.value, []).append(quad)
    return graphs


@pytest.fixture(scope="module")
def client(data):
    running = Running(data, "--no-crawl", TAMIAS_SECRET="open sesame")
    with httpx.Client(base_url=running.address, timeout=30) as client:
        yield client
    running.stop()


def of(client, web, name):
    return client.get("/document.json", params={"url": f"{web}/{name}"}).json()


def test_the_list_has_every_document_with_statements_and_how_many(client, web, exported):
    listed = client.get("/documents.json").json()["documents"]
    assert {each["url"]: each["statements"] for each in listed} == {
        name: len(quads) for name, quads in exported.items()
    }


def test_documents_are_found_by_a_part_of_the_url_and_by_host(client, web):
    found = client.get("/documents.json", params={"q": "B.TTL"}).json()["documents"]
    of_host = client.get("/documents.json", params={"host": "127.0.0.1"}).json()["documents"]
    assert [each["url"] for each in found] == [f"{web}/b.ttl"]
    assert [each["url"] for each in of_host] == [f"{web}/{name}.ttl" for name in "abcd"]


@pytest.mark.parametrize("name", ["a.ttl", "b.ttl"])
def test_a_document_shows_exactly_its_statements(client, web, exported, name):
    shown = of(client, web, name)["preview"]["statements"]
    assert sorted((each["subject"], each["predicate"], each["object"]) for each in shown) == sorted(
        (str(quad.subject), str(quad.predicate), str(quad.object)) for quad in exported[f"{web}/{name}"]
    )


def test_a_long_document_says_that_there_are_more_statements(client, web):
    preview = of(client, web, "c.ttl")["preview"]
    assert (len(preview["statements"]), preview["more"]) == (200, True)


def test_a_document_is_called_by_its_label(client, web):
    assert of(client, web, "b.ttl")["title"] == "The second"


def test_a_vocabulary_is_called_by_its_own_label_not_by_that_of_a_term(client, web):
    page = of(client, web, "d.ttl")
    assert page["title"] == "All letters"


def test_statements_are_shown_with_prefixes_that_people_know(client, web):
    page = client.get("/document", params={"url": f"{web}/d.ttl"}, headers=BROWSER).text
    assert ">skos:prefLabel</code>" in page
    assert 'title="&lt;http://www.w3.org/2004/02/skos/core#prefLabel&gt;"' in page


def test_links_say_which_of_them_were_crawled(client, web):
    links = {each["url"]: each["crawled"] for each in of(client, web, "a.ttl")["links_out"]}
    assert links == {f"{web}/b.ttl": True, f"{web}/c.ttl": True, f"{web}/absent.ttl": False}


def test_the_query_for_links_in_finds_the_documents_that_name_it(client, web):
    asked = {"query": of(client, web, "a.ttl")["links_query"]}
    deadline, found = time.monotonic() + 60, []
    while not found and time.monotonic() < deadline:  # the store follows the crawl some time later
        answer = client.get("/sparql", params=asked, headers={"Accept": "application/sparql-results+json"})
        found = [row["document"]["value"] for row in answer.json()["results"]["bindings"]]
    assert found == [f"{web}/b.ttl"]


def test_a_url_that_failed_has_a_page_that_says_why(client, web):
    page = client.get("/document", params={"url": f"{web}/absent.ttl"}, headers=BROWSER)
    assert page.status_code == 200
    assert "404" in page.text
    assert not unsaid(page.text, "RDF", "URL")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/document?url=http://nowhere.example/", 404),
        ("/document", 400),
        ("/document?url=%00", 400),
        ("/documents?after=1", 400),
        ("/crawl/nobody", 404),
        (f"/crawl/{'x' * 300}", 400),
    ],
)
def test_what_is_not_there_is_refused(client, path, status):
    assert client.get(path, headers=BROWSER).status_code == status


def test_every_example_of_the_sparql_page_is_answered(client):
    for each in client.get("/query.json").json()["examples"]:
        answer = client.get("/sparql", params={"query": each["query"]}, headers={"Accept": "text/csv"})
        assert answer.status_code == 200, (each, answer.text)


def test_the_page_of_a_crawl_counts_what_the_export_of_metadata_says(client, data):
    view = client.get("/crawl/default.json").json()
    said = parse(tamias(data, "export", "--graph", "metadata"), format=RdfFormat.N_QUADS)
    outcomes = {}
    for quad in said:
        if quad.predicate.value.endswith("outcome"):
            word = quad.object.value.rpartition("/")[2].rpartition("#")[2]
            outcomes[word] = outcomes.get(word, 0) + 1
    assert view["outcomes"] == outcomes
    told = ", ".join(f"{count} {word}" for word, count in view["outcomes"].items())
    assert not unsaid(client.get("/crawl/default", headers=BROWSER).text, told)
    assert sum(each["fine"] + each["other"] + each["trouble"] for each in view["slots"]) == view["attempts"]
    assert sum(view["depths"].values()) == view["attempts"]


def test_the_page_of_a_crawl_says_why_urls_are_not_stored(client, web):
    reasons = client.get("/crawl/default.json").json()["reasons"]
    missing = next(each for each in reasons if each["example"] == f"{web}/absent.ttl" or each["count"] > 1)
    assert (missing["outcome"], missing["kind"][:3]) == ("gone", "404")


@pytest.mark.parametrize(
    "path", ["/documents", "/documents?q=<script>", "/crawl/default", "/document?url={}/a.ttl"]
)
def test_words_of_a_document_are_no_markup(client, web, path):
    page = client.get(path.format(web), headers=BROWSER)
    assert (page.status_code, HOSTILE in page.text) == (200, False)


def reopen(client, outcome, reason, **fields):
    return client.post("/crawl/default/reopen", data={"outcome": outcome, "reason": reason, **fields})


@pytest.mark.parametrize(
    ("fields", "status"), [({}, 403), ({"secret": "wrong"}, 403), ({"token": "forged"}, 403)]
)
def test_nobody_reopens_urls_without_signing_in(client, fields, status):
    assert reopen(client, "gone", "404", **fields).status_code == status
    view = client.get("/crawl/default.json").json()
    assert (view["open"], view["reopening"]) == (0, None)


def test_whoever_has_the_secret_reopens_urls_and_the_page_says_how_many(client):
    """The only page that links lead to and is not there; what was only guessed is not visited again."""
    assert reopen(client, "gone", "404", secret="open sesame").status_code == 303
    view = client.get("/crawl/default.json").json()
    assert (view["open"], view["reopening"]) == (1, {"opened": 1, "done": True, "error": None})
    assert "1 URL is due again" in client.get("/crawl/default", headers=BROWSER).text


def page_with(client, path, words):
    """A page when it says so: it may be some seconds old."""
    deadline = time.monotonic() + 60
    while words not in (text := client.get(path, headers=BROWSER).text) and time.monotonic() < deadline:
        time.sleep(0.2)
    return text


def test_the_overview_counts_what_waits_as_the_page_of_the_crawl_does(client):
    reopen(client, "gone", "404", secret="open sesame")
    known = client.get("/crawl/default.json").json()["open"]
    assert known > 0
    figure = f"<dt>Still to visit</dt><dd>{known}</dd>"
    assert figure in page_with(client, "/", figure)
    assert client.get("/overview.json").json()["queued"] == known


def test_a_queue_that_a_worker_holds_is_fetching_and_has_no_next_time(client, data):
    reopen(client, "gone", "404", secret="open sesame")
    held = b"UPDATE host SET token = 1, lease_end = 9000000000000000, ready_at = 9000000000000"
    with closing(Database(data, create=False)) as database, closing(database.session()) as session:
        session.transact(lambda cursor: cursor.execute(held))
        text = page_with(client, "/frontier", "state fetching")
        session.transact(lambda cursor: cursor.execute(b"UPDATE host SET token = NULL, ready_at = 0"))
    (row,) = (line for line in text.splitlines() if "state fetching" in line)
    assert "<time" not in row


@pytest.fixture
def refused(tmp_path):
    """A service over 40,000 URLs that robots.txt forbids."""
    data = tmp_path / "many"
    with closing(Database(data)) as database, closing(database.session()) as session:
        fill_documents(database, 200)
        for said in (
            "UPDATE url SET status = 4 WHERE url.crawl = 1 AND url.status <> 0",
            "UPDATE capture SET outcome = 4, reason = 'robots.txt: line 2: Disallow: /', quads = 0",
            "DELETE FROM current_document",
        ):
            session.transact(lambda cursor, said=said: cursor.execute(said))
    running = Running(data, "--no-crawl", TAMIAS_SECRET="open sesame")
    with httpx.Client(base_url=running.address, timeout=30) as client:
        yield client
    running.stop()


def test_many_urls_are_reopened_in_the_background_while_the_page_says_how_far_it_is(refused):
    known = refused.get("/crawl/default.json").json()["open"]
    began = time.monotonic()
    assert reopen(refused, "refused", "robots.txt", secret="open sesame").status_code == 303
    waited = time.monotonic() - began
    seen = [refused.get("/crawl/default.json").json()["reopening"]]
    assert waited < 10
    if not seen[0]["done"] and reopen(refused, "gone", "404", secret="open sesame").status_code != 409:
        # It was done meanwhile, and the page tells of the second one.
        assert refused.get("/crawl/default.json").json()["open"] == known + 40_000
        return
    while not seen[-1]["done"] and time.monotonic() - began < 120:
        page = refused.get("/crawl/default", headers=BROWSER).text
        assert "URLs are being reopened: " in page or "URLs are due again" in page
        seen.append(refused.get("/crawl/default.json").json()["reopening"])
    assert seen[-1] == {"opened": 40_000, "done": True, "error": None}
    assert [each["opened"] for each in seen] == sorted(each["opened"] for each in seen)
    assert refused.get("/crawl/default.json").json()["open"] == known + 40_000


def test_documents_are_found_by_the_words_of_their_labels(client, web):
    def labelled():
        return client.get("/documents.json", params={"q": "LETTERS all"}).json()["labels"]

    deadline = time.monotonic() + 120
    while not labelled() and time.monotonic() < deadline:
        time.sleep(0.2)  # the service takes what was crawled into its store
    assert labelled() == [{"label": "All letters", "thing": f"{web}/d.ttl#all", "document": f"{web}/d.ttl"}]


def test_changes_of_documents_between_two_times_are_counted(client, web, exported):
    found = client.get("/api/v1/graphs/changes").json()
    counts = {name: {"added": len(quads), "removed": 0} for name, quads in exported.items()}
    assert found["documents"] == counts
    assert set(found["what"].values()) == {"added"}
    assert found["hosts"] == {"127.0.0.1": {"added": sum(map(len, exported.values())), "removed": 0}}
    assert sum(each["added"] for each in found["predicates"].values()) == found["added"]
    for times in ({"since": "2100"}, {"until": "2000"}):
        assert client.get("/api/v1/graphs/changes", params=times).json()["what"] == {}
    assert client.get("/api/v1/graphs/changes", params={"since": "soon"}).status_code == 400
    page = client.get("/documents/changes", params={"since": "2000"}, headers=BROWSER).text
    assert all(f"/document?url={quote(name, safe='')}" in page for name in counts)
    rows = client.get("/documents/changes", params={"since": "2000", "format": "csv"}).text.splitlines()
    assert f"document,{web}/b.ttl,{counts[f'{web}/b.ttl']['added']},0" in rows
    asked = client.get("/documents/changes", headers=BROWSER)
    assert asked.status_code == 200
    assert "/document?url" not in asked.text
