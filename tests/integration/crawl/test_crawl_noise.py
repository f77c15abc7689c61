"""What a capture says of a version: why it is noise, also after an upgrade. The diff says the same."""

import json
from contextlib import closing
from functools import partial
from hashlib import sha256

import pytest

from tamias.database.connect import Database
from tests.workbook_files import xlsx

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ROWS = [["id", "name"], *([str(n), f"name {n}"] for n in range(30))]


def table(rows, delimiter=","):
    return "".join(delimiter.join(row) + "\n" for row in rows).encode()


def answer(handler, body, media_type):
    handler.send_response(200)
    handler.send_header("Content-Type", media_type)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def serving(tamias, site):
    """Serves a body at a path and visits it; returns its versions as the command prints them."""
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:1"

    def visit(path, body, media_type):
        site.pages[path] = partial(answer, body=body, media_type=media_type)
        assert tamias.run("add", site.url(path)).returncode == 0
        done = tamias.run(
            "crawl", "--recrawl", site.url(path), "--allow-private", "--delay", "0", "--workers", "1"
        )
        assert done.returncode == 0, done.stderr
        return json.loads(tamias.run("versions", site.url(path), "--json").stdout)

    return visit


def test_noise_is_named_when_it_is_captured_and_the_diff_is_empty(tamias, site, serving):
    serving("/a.csv", table(ROWS), "text/csv")
    serving("/a.csv", table([ROWS[0], *ROWS[:0:-1]], ";"), "text/csv")
    versions = serving("/a.csv", table([*ROWS, ["99", "new"]]), "text/csv")
    told = [version["noise"] for version in versions]
    assert told == [None, "delimiter ; instead of ,, rows in another order", None]
    same = json.loads(tamias.run("diff", site.url("/a.csv"), "1", "2", "--json").stdout)
    assert (same["kind"], same["added"], same["removed"], same["changed"]) == ("rows", 0, 0, 0)
    other = json.loads(tamias.run("diff", site.url("/a.csv"), "--json").stdout)
    assert (other["kind"], other["added"], other["removed"], other["changed"]) == ("rows", 1, 0, 0)
    assert "the same content: delimiter ; instead of ," in tamias.run("versions", site.url("/a.csv")).stdout


def test_a_workbook_that_was_saved_again_is_noise_and_a_changed_cell_is_told_by_its_sheet(
    tamias, site, serving
):
    book = xlsx({"Prices": ROWS, "Notes": [["a"], ["b"]]})
    serving("/b.xlsx", book, XLSX)
    serving("/b.xlsx", xlsx({"Notes": [["a"], ["b"]], "Prices": ROWS}), XLSX)
    dearer = [*ROWS[:-1], [ROWS[-1][0], "other"]]
    versions = serving("/b.xlsx", xlsx({"Prices": dearer, "Notes": [["a"], ["b"]]}), XLSX)
    assert [version["noise"] for version in versions][-2:] == [
        "workbook saved again, sheets in another order",
        None,
    ]
    found = json.loads(tamias.run("diff", site.url("/b.xlsx"), "--json").stdout)
    assert (found["kind"], found["changed"], found["sheets"][0]["sheet"]) == ("sheets", 1, "Prices")
    assert found["changes"][0]["where"] == "Prices!29"


def test_a_fingerprint_of_an_earlier_version_of_tamias_makes_no_new_content(tamias, site, serving):
    serving("/c.csv", table(ROWS), "text/csv")
    database = Database(tamias.data, create=False)
    with closing(database.session()) as session:
        earlier = sha256(b"by other rules").digest()
        session.transact(
            lambda cursor: cursor.execute("UPDATE resource SET fingerprint = %s, items = NULL", (earlier,))
        )
    database.close()
    versions = serving("/c.csv", table(ROWS), "text/csv")
    assert len(versions) == 1
    versions = serving("/c.csv", table(ROWS, "\t"), "text/csv")
    assert [version["noise"] for version in versions] == [None, "delimiter tab instead of ,"]
