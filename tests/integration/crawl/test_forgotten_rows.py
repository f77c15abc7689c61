"""What is forgotten goes out of every table: a search of all rows, also of their bytes, finds nothing."""

import json
from contextlib import closing

import pytest

from tamias.database.connect import Database

SECRET = "Zaphod"
TABLES = """
SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'tamias'::regnamespace
"""
LINKS = "SELECT from_url, to_url, anchor FROM link ORDER BY from_url, to_url"
RECORDS = "SELECT record FROM source_record"
"""Whose bytes are packed."""


@pytest.fixture
def elsewhere(site_at):
    """Where the context stands: one of the same host is not stored."""
    return site_at("127.0.0.3")


@pytest.fixture
def archive(tamias, site, elsewhere, reply):
    """A page with links and a title, a JSON-LD context, and a portal's record; each names somebody."""

    def page(body, kind):
        return reply(200, body.encode(), Content_Type=kind)

    context = {"@context": {"name": "urn:x:name", SECRET: "urn:x:other"}}
    document = {"@context": elsewhere.url("/context"), "@id": "", "name": "somebody"}
    record = {
        "id": "two", "name": "two", "title": f"About {SECRET}", "notes": SECRET,
        "resources": [{"id": "r", "url": site.url("/a.csv"), "format": "CSV", "name": SECRET}],
    }  # fmt: skip
    found = {"success": True, "result": {"count": 1, "results": [record]}}
    site.pages |= {
        "/page": page(
            f"<title>{SECRET}</title><p>of {SECRET} <a href='/other'>{SECRET}</a> too</p>", "text/html"
        ),
        "/other": page("<p>the <a href='/page'>page</a> before</p>", "text/html"),
        "/document": page(json.dumps(document), "application/ld+json"),
        "/table.csv": page(f"id,name\n1,{SECRET}\n", "text/csv"),
        "/api/3/action/package_search?": page(json.dumps(found), "application/json"),
    }
    elsewhere.pages["/context"] = page(json.dumps(context), "application/ld+json")
    tamias.env["TAMIAS_STRATEGY__LINKS"] = "true"
    seeds = [site.url("/page"), site.url("/document"), site.url("/table.csv"), f"ckan:{site.url('/')}"]
    done = tamias.crawl("--sink", "archive", *seeds)
    assert done.returncode in (0, 1), done.stderr
    return tamias


def fetch(tamias, statement):
    with closing(Database(tamias.data, create=False)) as database, closing(database.session()) as session:
        return session.transact(lambda cursor: cursor.execute(statement).fetchall())


def tables_with(tamias, word):
    """The tables that have a word in a row; values of bytes are hexadecimal in its text."""
    found = set()
    for (table,) in fetch(tamias, TABLES):
        row = f"FROM tamias.{table} AS row WHERE row::text LIKE ANY ('{{%{word}%,%{word.encode().hex()}%}}')"
        if fetch(tamias, f"SELECT EXISTS (SELECT {row})") == [(True,)]:
            found.add(table)
    return found


def forget(tamias, url):
    done = tamias.run("forget", url, "--reason", "asked for")
    assert done.returncode == 0, done.stderr


def test_no_row_of_any_table_has_anything_of_what_was_forgotten(archive, site, elsewhere):
    assert tables_with(archive, SECRET) >= {"link", "context", "described", "offered"}
    links = fetch(archive, LINKS)
    assert (site.url("/page"), site.url("/other"), SECRET) in links
    assert fetch(archive, RECORDS) == [("two",)]
    for url in (*map(site.url, ("/page", "/table.csv", "/#two")), elsewhere.url("/context")):
        forget(archive, url)
    assert tables_with(archive, SECRET) == set()
    assert fetch(archive, RECORDS) == []
    assert fetch(archive, LINKS) == [each for each in links if each[0] != site.url("/page")]
    assert site.url("/document") in archive.attempts()
    assert archive.run("check").returncode == 0
