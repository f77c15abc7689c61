"""A process loads what it needs: libraries that few documents ask for come with the first that does."""

import re
import subprocess
import sys

import pytest

PAGE = '<html lang="en"><head><title>A</title><meta name="robots" content="all">{}</head><a href="/b">b</a>'
DATA = '<script type="application/ld+json">{"@id": "http://a.test/x", "http://a.test/p": 1}</script>'

FOR_SOME_DOCUMENTS = (
    *("lxml", "numpy", "openpyxl", "pyarrow", "pyfastcdc", "pyjelly", "pyld", "tomllib"),
    *("tamias.analyse.jsonld.reader", "tamias.features.markup.rdfa", "tamias.features.tables.body"),
    *(
        "tamias.analyse.rdf",
        "tamias.features.scraping.book",
        "tamias.analyse.xml.nodes",
        "tamias.features.quality",
    ),
    *(
        "tamias.archive.blobs.lines",
        "tamias.archive.blobs.objects",
        "tamias.features.dcat.datasets",
        "tamias.serve",
    ),
)
FOR_OTHER_VERBS = (*FOR_SOME_DOCUMENTS, "asyncio", "psycopg", "pycurl", "pyoxigraph", "selectolax", "uvloop")


def loaded(done):
    """Every module that the processes of a command have loaded, with the packages it is in."""
    names = re.findall(r"^import time:.*\| +([\w.]+)$", done.stderr, re.MULTILINE)
    return {name.rsplit(".", dots)[0] for name in names for dots in range(name.count(".") + 1)}


@pytest.fixture
def listed(tamias):
    """The interpreter tells what it loads, in the children of a command too."""
    tamias.env |= {"PYTHONPROFILEIMPORTTIME": "1", "TAMIAS_SEEDS__PROBE": "true"}
    return tamias


def test_a_crawl_of_pages_loads_nothing_that_only_other_documents_need(listed, site, reply):
    site.pages["/"] = site.pages["/b"] = reply(200, PAGE.format("").encode(), Content_Type="text/html")
    done = listed.crawl(site.url("/"), "-q")
    assert (done.returncode, site.asked("/b")) == (0, 1)
    found = loaded(done)
    assert {"selectolax", "tamias.crawl.worker.worker", "tamias.crawl.worker.supervisor"} <= found
    assert found.isdisjoint(FOR_SOME_DOCUMENTS), sorted(found & set(FOR_SOME_DOCUMENTS))


def test_a_page_with_data_loads_what_reads_it(listed, site, reply):
    site.pages["/"] = reply(200, PAGE.format(DATA).encode(), Content_Type="text/html")
    done = listed.crawl(site.url("/"), "--depth", 0, "-q")
    assert {"lxml", "tamias.analyse.jsonld.reader"} <= loaded(done)
    del listed.env["PYTHONPROFILEIMPORTTIME"]
    assert any(quad.startswith("<http://a.test/x> <http://a.test/p> ") for quad in listed.quads())


@pytest.mark.parametrize("words", [("--help",), ("crawl", "--help"), ("--version",)])
def test_help_loads_nothing_that_only_verbs_need(words):
    command = [sys.executable, "-X", "importtime", "-m", "tamias", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = loaded(done)
    assert (done.returncode, "click" in found) == (0, True)
    assert found.isdisjoint(FOR_OTHER_VERBS), sorted(found & set(FOR_OTHER_VERBS))


def test_the_keeper_of_the_database_loads_no_library_but_the_one_that_unpacks():
    shown = "import sys, tamias.features.embedded.keeper; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    found = {name.partition(".")[0] for name in done.stdout.split()}
    assert found.isdisjoint({"asyncio", "inspect", "msgspec", "psycopg", "typing_extensions"})
    assert found & {"backports", "compression"}
