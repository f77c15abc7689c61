"""A node that serves the test pages of the W3C's RDFa suite under its own address, as ORCA's do."""

import json
from pathlib import Path

from pyoxigraph import RdfFormat, parse

from benchmarks.dataweb.web.answers import Answer, html, response
from benchmarks.dataweb.web.context import Built, NodeContext, triple
from tamias.model.errors import UsageError

HOME = "http://rdfa.info/"
"""The domain of the suite, which is replaced by the node's, as ORCA does."""
CASES = "test-suite/test-cases/"
HOSTS = (
    ("rdfa1.0", "html4"), ("rdfa1.0", "xhtml1"), ("rdfa1.1", "html4"), ("rdfa1.1", "html5"),
    ("rdfa1.1", "xhtml1"), ("rdfa1.1", "xhtml5"),
)  # fmt: skip
SEE_ALSO = "http://www.w3.org/2000/01/rdf-schema#seeAlso"
FILE_LIMIT = 1 << 20


def check_suite(folder: Path) -> Path:
    """The folder with the manifest, which may be one below. Raises `UsageError` if it is not there."""
    for place in (folder, folder / "test-suite"):
        if (place / "manifest.jsonld").is_file():
            return place
    raise UsageError(
        f"--rdfa-suite {folder}: no manifest.jsonld there; name the folder of the W3C's RDFa test suite"
    )


def suite_node(context: NodeContext, suite: Path) -> Built:
    """The entrance links to every test page and to the other nodes."""
    pages: dict[str, Answer] = {}
    truth: list[bytes] = []
    weights: dict[str, int] = {}
    entrance = f"{context.origin}/dataset-0/resource-0"
    for path, text, said in suite_pages(suite, f"{context.origin}/"):
        kind = "application/xhtml+xml" if path.endswith(".xhtml") else "text/html"
        pages[path] = response(200, text, kind)
        truth += said
        weights[path] = len(said)
    links = [context.origin + path for path in weights] + context.targets
    truth += [triple(entrance, SEE_ALSO, url) for url in links]
    body = "".join(f'<a rel="rdfs:seeAlso" href="{url}">{turn}</a>\n' for turn, url in enumerate(links))
    pages["/dataset-0/resource-0"] = html("", f'<div about="{entrance}">\n{body}</div>')
    weights["/dataset-0/resource-0"] = len(links)
    return Built(pages, truth, weights, closed=False)


def suite_pages(suite: Path, home: str) -> list[tuple[str, bytes, list[bytes]]]:
    """Path, page and triples of every required test that expects some."""
    manifest = json.loads((suite / "manifest.jsonld").read_bytes())["@graph"]
    found = []
    for version, host in HOSTS:
        for test in manifest:
            if version in test["versions"] and host in test["hostLanguages"] and positive(test):
                found += one_page(suite, f"{version}/{host}/{test['num']}", home)
    return found


def positive(test: dict[str, object]) -> bool:
    """Whether the page itself says what is expected of it."""
    required = str(test["classification"]).endswith("required")
    return required and bool(test["expectedResults"]) and "queryParam" not in test


def one_page(suite: Path, name: str, home: str) -> list[tuple[str, bytes, list[bytes]]]:
    """One test, with the suite's address replaced by the node's; none if its files are not all there."""
    suffix = ".xhtml" if "/xhtml" in name else ".html"
    page, result = (suite / "test-cases" / f"{name}{end}" for end in (suffix, ".ttl"))
    if not (page.is_file() and result.is_file()):
        return []
    text, expected = (moved(each.read_bytes()[:FILE_LIMIT], home) for each in (page, result))
    path = f"{CASES}{name}{suffix}"
    quads = parse(expected, format=RdfFormat.TURTLE, base_iri=f"{home}{path}")
    return [(f"/{path}", text, [f"{quad.triple} .\n".encode() for quad in quads])]


def moved(text: bytes, home: str) -> bytes:
    """The same with the node's address in place of the suite's."""
    return text.replace(HOME.encode(), home.encode())
