"""What a capture says of a version: why it is noise, also after an upgrade. The diff says the same."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from contextlib import closing
from functools import partial
from hashlib import sha256

import pytest
import zstandard

from tamias import Archive
from tamias.database.connect import Database
from tests.messages import unsaid
from tests.workbook_files import ODS, ods, xlsx

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
    assert not unsaid(tamias.run("versions", site.url("/a.csv")).stdout)


def test_rows_may_change_their_order_within_a_group_and_groups_theirs_but_no_row_its_group(
    tamias, site, serving
):
    berlin = [["Berlin", "2020", "5"], ["", "2021", "6"], ["", "2022", "7"]]
    again = [["Berlin", "2020", "8"], ["", "2021", "9"]]
    header = ["city", "year", "n"]
    serving("/g.csv", table([header, *berlin, *again]), "text/csv")
    serving("/g.csv", table([header, *again, berlin[0], *berlin[:0:-1]], ";"), "text/csv")
    versions = serving("/g.csv", table([header, *again, berlin[2], *berlin[:2]], ";"), "text/csv")
    assert [version["noise"] for version in versions] == [
        None, "delimiter ; instead of ,, rows in another order", None,
    ]  # fmt: skip
    same = json.loads(tamias.run("diff", site.url("/g.csv"), "1", "2", "--json").stdout)
    assert (same["kind"], same["changes"]) == ("rows", [])
    other = json.loads(tamias.run("diff", site.url("/g.csv"), "--json").stdout)
    assert (other["kind"], other["added"], other["removed"]) == ("lines", 1, 1)


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


CZECH = [["kod", "mesto"], *([str(n), f"Příliš žluťoučký kůň, Plzeň {n}"] for n in range(30))]
LINES = [json.dumps({"id": n, "name": f"name {n}", "at": [n, {"x": n}]}) for n in range(30)]
TURNED = [json.dumps({"at": [n, {"x": n}], "name": f"name {n}", "id": n}) for n in range(29, -1, -1)]


def quoted(rows, encoding):
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows).encode(encoding)


def saved_again(book, *, first=None):
    """The members of a workbook in another order; OpenDocument wants its type first and not compressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(target, "w") as new:
        names = sorted(old.namelist(), key=lambda name: (name != first, name))
        for name in names:
            packing = zipfile.ZIP_STORED if name == first else zipfile.ZIP_DEFLATED
            new.writestr(zipfile.ZipInfo(name, (2024, 5, 5, 5, 5, 6)), old.read(name), packing)
    return target.getvalue()


BOOK = ods({"Prices": ROWS})
HEAD = [["city", "year", "people"]]
BERLIN = [["Berlin", "2020", "5"], ["", "2021", "6"], ["", "2022", "7"]]
HAMBURG = [["Hamburg", "2020", "7"], ["", "2021", "8"]]


def places(numbers):
    """GeoJSON of places that have nothing to tell them apart by; some are there twice."""
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [n // 2, 1.5]},
            "properties": {"kind": "tree"},
        }
        for n in numbers
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


FILES = {f"data/{n}.csv": table([*ROWS, [str(n), "last"]]) for n in range(3)}


def tarred(members, *, mtime=1, owner="a", dialect=tarfile.PAX_FORMAT):
    """A tar archive of files with these contents."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=dialect) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uname, entry.uid = len(content), mtime, owner, mtime
            archive.addfile(entry, io.BytesIO(content))
    return target.getvalue()


def tarred_again():
    """The same files from another machine, in another order."""
    names = ("./" + name for name in reversed(FILES))
    members = dict(zip(names, reversed(FILES.values()), strict=True))
    return tarred(members, mtime=1_700_000_000, owner="root", dialect=tarfile.GNU_FORMAT)


TARRED_AGAIN = "packed again: times, owners or order of the files"
AGAIN = {
    "/declared.csv": [
        ("text/csv; charset=windows-1250", quoted(CZECH, "cp1250")),
        ("text/csv; charset=utf-8", quoted(CZECH, "utf-8")),
        "encoding utf-8 instead of cp1250",
    ],
    "/other.csv": [
        ("text/csv; charset=iso-8859-2", quoted(CZECH, "iso8859-2")),
        ("text/csv; charset=windows-1250", quoted(CZECH, "cp1250")),
        "encoding cp1250 instead of iso8859-2",
    ],
    "/lines.txt": [
        ("text/plain; charset=windows-1250", quoted(CZECH[1:], "cp1250").replace(b",", b" ")),
        ("text/plain; charset=utf-8", quoted(CZECH[1:], "utf-8").replace(b",", b" ")),
        "encoding utf-8 instead of cp1250",
    ],
    "/tabs.tsv": [
        ("text/tab-separated-values", table(ROWS, "\t")),
        ("text/tab-separated-values", table(ROWS, ";")),
        "delimiter ; instead of tab",
    ],
    "/told.ndjson": [
        ("application/x-ndjson", "\n".join(LINES).encode()),
        ("application/x-ndjson", "\n".join(TURNED).encode()),
        "lines in another order",
    ],
    "/untold.json": [
        ("application/json", "\n".join(LINES).encode()),
        ("application/json", "\n".join(TURNED).encode()),
        "lines in another order",
    ],
    "/a.csv.bz2": [
        ("application/x-bzip2", bz2.compress(table(ROWS), 1)),
        ("application/x-bzip2", bz2.compress(table(ROWS), 9)),
        "compressed again",
    ],
    "/a.csv.xz": [
        ("application/x-xz", lzma.compress(table(ROWS))),
        ("application/x-xz", lzma.compress(table([ROWS[0], *ROWS[:0:-1]]))),
        "in the compressed file: rows in another order",
    ],
    "/a.csv.zst": [
        ("application/zstd", zstandard.compress(table(ROWS), 1)),
        ("application/zstd", zstandard.ZstdCompressor(19, write_checksum=True).compress(table(ROWS))),
        "compressed again",
    ],
    "/margin.csv": [
        ("text/csv", table([["", *row] for row in ROWS])),
        ("text/csv", table([["", *row] for row in [ROWS[0], *ROWS[:0:-1]]])),
        "rows in another order",
    ],
    "/index.csv": [
        ("text/csv", table([["", "name"], *ROWS[1:]])),
        ("text/csv", table([["", "name"], *ROWS[:0:-1]])),
        "rows in another order",
    ],
    "/groups.csv": [
        ("text/csv", table([*HEAD, *BERLIN, *HAMBURG])),
        ("text/csv", table([*HEAD, *HAMBURG, BERLIN[0], *BERLIN[:0:-1]])),
        "rows in another order",
    ],
    "/missing.csv": [
        ("text/csv", table([*ROWS, ["", "no id"]])),
        ("text/csv", table([ROWS[0], ["", "no id"], *ROWS[:0:-1]])),
        "rows in another order",
    ],
    "/places.geojson": [
        ("application/geo+json", places(range(30))),
        ("application/geo+json", places(range(29, -1, -1))),
        "items in another order",
    ],
    "/places.json": [
        ("application/json", places(range(30))),
        ("application/json", places(range(29, -1, -1))),
        "items in another order",
    ],
    "/a.tar": [("application/x-tar", tarred(FILES)), ("application/x-tar", tarred_again()), TARRED_AGAIN],
    "/untold.tar": [
        ("application/octet-stream", tarred(FILES)),
        ("application/octet-stream", tarred_again()),
        TARRED_AGAIN,
    ],
    "/a.tar.gz": [
        ("application/gzip", gzip.compress(tarred(FILES), mtime=1)),
        ("application/gzip", gzip.compress(tarred_again(), 1, mtime=2)),
        f"in the compressed file: {TARRED_AGAIN}",
    ],
    "/b.tar.gz": [
        ("application/gzip", gzip.compress(tarred(FILES), mtime=1)),
        ("application/zstd", zstandard.compress(tarred_again())),
        f"in the compressed file: {TARRED_AGAIN}",
    ],
    "/a.tar.bz2": [
        ("application/x-bzip2", bz2.compress(tarred(FILES))),
        ("application/x-bzip2", bz2.compress(tarred_again())),
        f"in the compressed file: {TARRED_AGAIN}",
    ],
    "/a.tar.xz": [
        ("application/x-xz", lzma.compress(tarred(FILES))),
        ("application/x-xz", lzma.compress(tarred_again())),
        f"in the compressed file: {TARRED_AGAIN}",
    ],
    "/a.tar.zst": [
        ("application/zstd", zstandard.compress(tarred(FILES))),
        ("application/zstd", zstandard.compress(tarred_again())),
        f"in the compressed file: {TARRED_AGAIN}",
    ],
    "/first.ods": [(ODS, saved_again(BOOK, first="mimetype")), (ODS, BOOK), "workbook saved again"],
    "/last.ods": [
        (ODS, saved_again(BOOK, first="mimetype")),
        (ODS, saved_again(BOOK)),
        "workbook saved again",
    ],
}
"""What came first, what came then, and why it is noise."""


def test_whatever_is_written_again_is_noise_with_its_reason(tamias, site):
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:1"
    urls = [site.url(path) for path in AGAIN]
    assert tamias.run("add", *urls).returncode == 0
    for turn in (0, 1):
        for path, told in AGAIN.items():
            media_type, body = told[turn]
            site.pages[path] = partial(answer, body=body, media_type=media_type)
        done = tamias.crawl("--recrawl", *urls)
        assert done.returncode == 0, done.stderr
    found = {}
    with Archive(tamias.data) as archive:
        for path in AGAIN:
            versions = archive.versions(site.url(path))
            diff = archive.diff(site.url(path))
            assert diff.is_empty, path
            found[path] = (versions[-1].number, versions[-1].noise)
        encodings = {row[0].value for row in archive.query("SELECT ?is WHERE { ?table csvw:encoding ?is }")}
    assert found == {path: (2, reason) for path, (_, _, reason) in AGAIN.items()}
    assert encodings == {"utf-8", "cp1250", "iso8859-2"}  # profiles read them the same way


def test_a_tar_archive_of_an_earlier_version_of_tamias_was_compared_by_bytes_and_is_no_change_now(
    tamias, site, serving
):
    serving("/d.tar", tarred(FILES), "application/x-tar")
    database = Database(tamias.data, create=False)
    with closing(database.session()) as session:
        session.transact(
            lambda cursor: cursor.execute("UPDATE resource SET fingerprint = NULL, items = NULL")
        )
    database.close()
    versions = serving("/d.tar", tarred_again(), "application/x-tar")
    assert [version["noise"] for version in versions] == [None, TARRED_AGAIN]


def test_files_of_a_tar_archive_that_came_went_and_changed_are_told(tamias, site, serving):
    """Also if it is compressed, and in another way than before."""
    serving("/e.tar.gz", gzip.compress(tarred(FILES)), "application/gzip")
    changed = {"data/1.csv": b"a,b\n", "data/2.csv": FILES["data/2.csv"], "new.txt": b"new"}
    versions = serving("/e.tar.gz", lzma.compress(tarred(changed)), "application/x-xz")
    assert [version["noise"] for version in versions] == [None, None]
    found = json.loads(tamias.run("diff", site.url("/e.tar.gz"), "--json").stdout)
    sizes = [len(FILES[f"data/{n}.csv"]) for n in range(2)]
    assert (found["kind"], found["added"], found["removed"], found["changed"]) == ("members", 1, 1, 1)
    assert [
        (each["what"], each["where"], (each["old"] or {}).get("size"), (each["new"] or {}).get("size"))
        for each in found["changes"]
    ] == [
        ("removed", "data/0.csv", sizes[0], None),
        ("changed", "data/1.csv", sizes[1], 4),
        ("added", "new.txt", None, 3),
    ]


@pytest.mark.skipif(
    not os.environ.get("TAMIAS_NIGHTLY"), reason="three times 70 MB of GeoJSON: make nightly runs it"
)
def test_geojson_that_is_too_large_for_memory_is_compared_by_its_features(tamias, site):
    tamias.env["TAMIAS_SCHEDULE__RULE"] = "fixed:1"
    features = [
        {"type": "Feature", "properties": {"n": number, "text": f"{number} " * 1500}, "geometry": None}
        for number in range(9500)
    ]

    def visit(found, **words):
        body = json.dumps({"type": "FeatureCollection", "features": found}, **words).encode()
        assert len(body) > 64 << 20
        site.pages["/large.geojson"] = partial(answer, body=body, media_type="application/geo+json")
        assert tamias.run("add", site.url("/large.geojson")).returncode == 0
        done = tamias.crawl("--recrawl", site.url("/large.geojson"), timeout=600)
        assert done.returncode == 0, done.stderr

    visit(features)
    visit(features[::-1], indent=1)
    features[7]["properties"]["n"] = "seven"
    visit(features)
    versions = json.loads(tamias.run("versions", site.url("/large.geojson"), "--json").stdout)
    assert [version["noise"] for version in versions] == [None, "items in another order", None]
    same, other = (
        json.loads(tamias.run("diff", site.url("/large.geojson"), *each, "--json", timeout=600).stdout)
        for each in (["1", "2"], ["1", "3"])
    )
    assert (same["kind"], same["changes"], same["notes"]) == (
        "json", [], ["the same content: items in another order"],
    )  # fmt: skip
    assert [(each["what"], each["where"], each["old"], each["new"]) for each in other["changes"]] == [
        ("changed", "$.features[7].properties.n", 7, "seven")
    ]
