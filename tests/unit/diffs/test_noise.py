"""Noise and the diff never disagree: whatever is done to a file, it is noise just when its diff is empty."""

import csv
import gzip
import io
import json
import os
import random
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pyoxigraph import RdfFormat, parse, serialize

from tamias.features.archive.canonical.content_digest import (
    Stored,
    content_digest,
    fingerprint_of,
    noise_between,
)
from tamias.features.archive.canonical.tables import found_table
from tamias.features.diffs.compare import diff
from tamias.model.diff import DiffKind
from tamias.model.document import Unreadable
from tests.examples import examples
from tests.messages import unsaid
from tests.workbook_files import ods, xlsx, zipped

CSV, TSV, JSON, TURTLE = "text/csv", "text/tab-separated-values", "application/json", "text/turtle"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
MOST = 40_000
EVERY = 1 if os.environ.get("TAMIAS_NIGHTLY") else 5
"""Of the real tables."""
BASE = "http://data.example/file"


@pytest.fixture
def judged(tmp_path):
    """What is said of two contents: whether a version is noise, whether the diff is empty, and the reason."""

    def judge(old, new, media_type, old_type=None):
        (tmp_path / "old").write_bytes(old)
        (tmp_path / "new").write_bytes(new)
        was = Stored(source=tmp_path / "old", media_type=old_type or media_type, base=BASE)
        now = Stored(source=tmp_path / "new", media_type=media_type, base=BASE)
        fingerprints = [fingerprint_of(content_digest(each)) for each in (was, now)]
        at_hand = fingerprint_of(content_digest(Stored(source=new, media_type=media_type, base=BASE)))
        assert at_hand == fingerprints[1], "bytes at hand are the same as a file of them"
        is_noise = fingerprints[0] is not None and fingerprints[0] == fingerprints[1]
        found = diff(tmp_path / "old", tmp_path / "new", media_type, old_type=old_type, base=BASE)
        noise = noise_between(was, now)
        assert (noise is not None) is is_noise
        assert found.is_empty is (is_noise or old == new), (is_noise, found)
        return noise and noise.reason, found

    return judge


def written(rows, *, delimiter=",", quoting=csv.QUOTE_MINIMAL, end="\n", encoding="utf-8"):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    return text.getvalue().encode(encoding)


def shuffled(rows):
    return [rows[0], *random.Random(1).sample(rows[1:], len(rows) - 1)]


SAME_TABLE = {
    "delimiter": (lambda rows: written(rows, delimiter="|"), "delimiter | instead of"),
    "semicolons": (lambda rows: written(rows, delimiter=";"), "delimiter ; instead of"),
    "quoting": (lambda rows: written(rows, quoting=csv.QUOTE_ALL), "other quotation marks"),
    "encoding": (lambda rows: written(rows, encoding="utf-16"), "encoding utf-16"),
    "line ends": (lambda rows: written(rows, end="\r\n"), "other line ends"),
    "order": (lambda rows: written(shuffled(rows)), "rows in another order"),
}
OTHER_TABLE = {
    "cell": lambda rows: written([*rows[:-1], [rows[-1][0] + "x", *rows[-1][1:]]]),
    "row gone": lambda rows: written(rows[:-1]),
    "row twice": lambda rows: written([*rows, rows[-1]]),
    "row more": lambda rows: written([*rows, ["new"] * len(rows[-1])]),
    "column renamed": lambda rows: written([["renamed", *rows[0][1:]], *rows[1:]]),
    "column more": lambda rows: written([[*row, "more"] for row in rows]),
    "columns exchanged": lambda rows: written([row[::-1] for row in rows]),
    "cells of two rows exchanged": lambda rows: written(
        [*rows[:-2], [rows[-1][0], *rows[-2][1:]], [rows[-2][0], *rows[-1][1:]]]
    ),
}


def real_tables(folder):
    """The rows of each real table that has some, as its own reader finds them."""
    for path in sorted(folder.rglob("*.[ct]sv"))[::EVERY]:
        if path.stat().st_size > MOST:
            continue
        try:
            table = found_table(path, MOST)
            rows = list(table.all_rows())
        except Unreadable:
            continue
        if len(rows) > 3 and table.width > 1 and len({len(row) for row in rows}) == 1:
            yield path, rows


def meanings(rows):
    """The rows with what their order says of them; all of them in their order where it says more."""
    start = found_table(written(rows), 2 * MOST).rows_above
    below = [row for row in rows[start:] if any(row)]
    if not all(any(row[1:]) for row in below):
        return rows
    if sum(not row[0] for row in below) * 20 <= len(below):
        return sorted(rows)
    filled = [row for row in rows if any(row)]
    found = groups(filled)
    if len(filled) == len(rows) and not any(below for _, below in found):
        return sorted(rows)
    return [len(rows) - len(filled), found]


def test_rows_of_no_group_mean_the_same_whichever_is_first():
    rows = [["", "a", ""], ["", "a", "a"]]
    assert meanings(rows) == meanings(rows[::-1])


def groups(rows):
    """Each row with those below it that begin with more empty cells, both in no order."""
    found, place = [], 0
    empty = [next(place for place, cell in enumerate(row) if cell) for row in rows]
    while place < len(rows):
        ends = (end for end in range(place + 1, len(rows)) if empty[end] <= empty[place])
        end = next(ends, len(rows))
        found.append((list(rows[place]), groups(rows[place + 1 : end])))
        place = end
    return sorted(found)


@pytest.mark.parametrize("edit", [*SAME_TABLE, *OTHER_TABLE])
def test_real_tables_that_are_edited_are_noise_just_when_their_diff_is_empty(suites, judged, edit):
    tables = 0
    for path, rows in real_tables(suites("real-csv-samples")):
        old = written(rows)
        if edit == "order" and meanings(rows) != meanings(shuffled(rows)):
            assert judged(old, written(shuffled(rows)), CSV)[0] is None, path.name
        elif edit in SAME_TABLE:
            make, why = SAME_TABLE[edit]
            reason, found = judged(old, make(rows), CSV)
            assert reason is not None or make(rows) == old, (path.name, found)
            assert reason is None or why in reason, (path.name, reason)
        else:
            new = OTHER_TABLE[edit](rows)
            reason, found = judged(old, new, CSV)
            is_same = meanings(list(csv.reader(io.StringIO(new.decode())))) == meanings(rows)
            assert (reason is not None) is is_same, (path.name, reason, found)
        tables += 1
    assert tables > 15 // EVERY


def test_real_tables_as_they_are_keep_their_fingerprint_in_other_line_ends(suites, judged):
    for path in sorted(suites("real-csv-samples").rglob("*.*sv"))[::EVERY]:
        old = path.read_bytes()
        if len(old) < MOST and b"\0" not in old:
            judged(old, old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"), CSV)
            judged(old, old[:-3], CSV)


def test_commas_become_tabs_and_the_type_changes_with_them(judged):
    rows = [["id", "name"], ["1", "a"], ["2", "b"]]
    reason, found = judged(written(rows), written(rows, delimiter="\t"), TSV, CSV)
    assert (reason, found.kind) == ("delimiter tab instead of ,", DiffKind.ROWS)
    [problem] = found.notes
    assert not unsaid(problem)


def test_windows_1252_and_utf_8_say_the_same(judged):
    rows = [["id", "name"], ["1", "Müller"], ["2", "Straße"]]
    reason, _ = judged(written(rows, encoding="cp1252"), written(rows), CSV)
    assert not unsaid(reason, "8")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"id,name\n1,a\n2,b\n", b" id,name\n1,a\n2,b\n"),
        (b"Title\nid,name\n1,a\n2,b\n", b"Other title\nid,name\n1,a\n2,b\n"),
        (b"name,town\na,b\nc,d\n", b"a,b\nname,town\nc,d\n"),
        (b"", b"id,name\n"),
        (b"a\n", b"a\n\n"),
        (b"x", b"y"),
        (b'"a\n', b"a\n"),
    ],
)
def test_small_tables_at_the_edge_are_judged_alike(judged, old, new):
    judged(old, new, CSV)
    judged(new, old, CSV)


RDF = {
    ".ttl": RdfFormat.TURTLE,
    ".nt": RdfFormat.N_TRIPLES,
    ".rdf": RdfFormat.RDF_XML,
    ".owl": RdfFormat.RDF_XML,
}


def rdf_files(folder, *endings):
    for path in sorted(each for each in folder.rglob("*") if each.suffix in endings):
        if path.stat().st_size < MOST // 2:
            yield path


@pytest.mark.parametrize("ending", RDF)
def test_real_rdf_that_is_written_again_is_noise_and_that_says_less_is_not(suites, judged, ending):
    syntax, read = RDF[ending], 0
    for path in rdf_files(suites("real-rdf-files"), ending):
        old = path.read_bytes()
        judged(old, old[: len(old) // 2], syntax.media_type)  # mostly broken
        judged(old, old + b"\n", syntax.media_type)
        try:
            quads = list(dict.fromkeys(parse(old, format=syntax, base_iri=BASE)))
            new = serialize(quads[::-1], format=syntax) or b""
        except (SyntaxError, ValueError):
            continue
        if not quads:
            continue
        same, found = judged(old, new, syntax.media_type)
        less, _ = judged(old, serialize(quads[1:], format=syntax) or b"", syntax.media_type)
        # Rings of blank nodes that cannot be distinguished are compared as text.
        assert same is not None or found.kind is not DiffKind.TRIPLES, (path.name, found)
        assert less is None, path.name
        read += 1
    assert read


def test_broken_rdf_is_compared_by_the_statements_that_can_be_read(judged):
    good = "".join(f"<http://x.example/{n}> <http://x.example/p> {n} .\n" for n in range(20))
    broken = good.replace("<http://x.example/p> 7 .", "<http://x.example/p> .")
    reason, found = judged(good.encode(), broken.encode(), TURTLE)
    assert (reason, found.kind, found.added, found.removed) == (None, DiffKind.TRIPLES, 0, 1)
    assert found.notes[0].startswith("the new version is broken (not Turtle: ")
    assert "/7>" in found.changes[0].old


def json_files(folder):
    for path in sorted(folder.rglob("*.json")):
        if path.stat().st_size < MOST:
            try:
                yield path, json.loads(path.read_bytes())
            except ValueError:
                continue


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(each) for each in value] if isinstance(value, list) else value


def test_real_json_is_noise_in_another_order_of_keys_and_not_with_another_value(suites, judged):
    read = 0
    for path, value in json_files(suites("real-portal-records")):
        old = json.dumps(value).encode()
        reason, _ = judged(old, json.dumps(value, indent=2, ensure_ascii=False).encode(), JSON)
        assert reason is None or not unsaid(reason)
        turned = json.dumps(reversed_keys(value)).encode()
        reason, _ = judged(old, turned, JSON)
        assert reason == "keys in another order" or turned == old, path
        reason, _ = judged(old, json.dumps([value, 1]).encode(), JSON)
        assert reason is None
        read += 1
    assert read > 5


def test_items_with_identifiers_may_change_their_order_others_not(judged):
    features = [{"id": n, "tags": [n, n + 1]} for n in range(5)]
    old = json.dumps({"features": features}).encode()
    reason, _ = judged(old, json.dumps({"features": features[::-1]}).encode(), JSON)
    assert not unsaid(reason)
    features[0]["tags"].reverse()
    reason, found = judged(old, json.dumps({"features": features}).encode(), JSON)
    assert (reason, found.kind, found.added, found.removed) == (None, DiffKind.JSON, 1, 1)


def test_a_large_array_is_a_set_like_a_small_one(judged):
    features = [{"id": n, "text": "x" * 100} for n in range(4000)]
    reason, _ = judged(json.dumps(features).encode(), json.dumps(features[::-1], indent=1).encode(), JSON)
    assert not unsaid(reason)


@pytest.mark.parametrize("name", ["fields", "columns", "headers", "dimensions"])
@pytest.mark.parametrize("filler", [1, 300_000], ids=["small", "large"])
def test_columns_in_another_order_are_a_change(judged, name, filler):
    columns = [{"id": "a", "type": "x" * filler}, {"id": "b", "type": "int"}]
    for wrapped in (lambda value: value, lambda value: {"all": [value]}):
        old, new = ({"data": {name: wrapped(each)}} for each in (columns, columns[::-1]))
        reason, found = judged(json.dumps(old).encode(), json.dumps(new).encode(), JSON)
        assert (reason, found.kind) == (None, DiffKind.JSON)


def test_items_that_have_no_more_than_a_name_are_in_order(judged):
    steps = [{"name": "first", "n": 1}, {"name": "second", "n": 2}, {"name": "third", "n": 3}]
    reason, found = judged(json.dumps(steps).encode(), json.dumps(steps[::-1]).encode(), JSON)
    assert (reason, found.kind) == (None, DiffKind.JSON)
    steps[1]["n"] = 5
    old = json.dumps([*steps[:1], {"name": "second", "n": 2}, steps[2]]).encode()
    reason, found = judged(old, json.dumps(steps).encode(), JSON)
    assert [each.where for each in found.changes] == ['$[?@.name=="second"].n']


LD = "application/ld+json"
GOOD = {
    "@context": {"label": "http://x.example/label"}, "@id": "http://x.example/1", "label": "a", "price": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ({"price": 99}, DiffKind.JSON),
        ({"more": 1}, DiffKind.JSON),
        ({"@context": {}}, DiffKind.TRIPLES),
        ({"label": "b"}, DiffKind.TRIPLES),
    ],
)
def test_json_ld_is_compared_by_its_statements_and_by_what_makes_none(judged, other, kind):
    old = json.dumps(GOOD).encode()
    reason, found = judged(old, json.dumps({**GOOD, **other}).encode(), LD)
    assert (reason, found.kind) == (None, kind)
    assert judged(old, json.dumps(reversed_keys(GOOD), indent=1).encode(), LD)[0] is not None


def test_a_context_without_terms_is_not_equal_to_anything(judged):
    assert judged(b'{"@context": {}, "a": 1}', b'{"@context": {}, "b": [2, 3]}', LD)[0] is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Berlin,2020,5\n,2021,6\nHamburg,2020,7\n,2021,8\n",
            "Berlin,2020,5\n,2021,8\nHamburg,2020,7\n,2021,6\n",
        ),
        ("city,n\nNorth,\na,1\nSouth,\nb,2\n", "city,n\nNorth,\nb,2\nSouth,\na,1\n"),
        ("line\nfirst\nthen\nlast\n", "line\nfirst\nlast\nthen\n"),
    ],
    ids=["left empty", "titles between", "list"],
)
def test_rows_that_take_their_meaning_from_those_before_them_are_in_order(judged, old, new):
    assert judged(old.encode(), new.encode(), CSV)[0] is None
    assert judged(old.encode(), old.replace("\n", "\r\n").encode(), CSV)[0] == "other line ends"
    sheets = [xlsx({"a": [line.split(",") for line in text.splitlines()]}) for text in (old, new)]
    assert judged(*sheets, XLSX)[0] is None


def test_json_lines_in_another_order_are_noise(judged):
    lines = [json.dumps({"a": n, "b": 1}).encode() for n in range(5)]
    ndjson = "application/x-ndjson"
    assert not unsaid(judged(b"\n".join(lines), b"\n".join(lines[::-1]), ndjson)[0])
    turned = [json.dumps({"b": 1, "a": n}).encode() for n in range(5)]
    assert judged(b"\n".join(lines), b"\n".join(turned), ndjson)[0].startswith("keys in another order")
    assert judged(b"\n".join(lines), b"\n".join(lines[1:]), ndjson)[0] is None


PRICES = [["id", "price", "name"], *([n, n * 1.5, f"good {n}"] for n in range(20))]


def saved_again(book):
    """The same members in another order, with other times and another record of who saved it."""
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        parts = {name: archive.read(name) for name in reversed(archive.namelist())}
    return zipped({**parts, "docProps/core.xml": "<saved>again</saved>"})


@pytest.mark.parametrize(("make", "media_type"), [(xlsx, XLSX), (ods, ODS)], ids=["xlsx", "ods"])
def test_a_workbook_is_compared_sheet_by_sheet(judged, make, media_type):
    old = make({"Prices": PRICES, "Notes": [["a", "b"], ["x", "y"]]})
    reason, _ = judged(old, saved_again(old), media_type)
    assert reason == "workbook saved again"
    turned = make({"Notes": [["a", "b"], ["x", "y"]], "Prices": [PRICES[0], *PRICES[:0:-1]]})
    reason, _ = judged(old, turned, media_type)
    assert not unsaid(reason)
    dearer = [PRICES[0], [0, 99, "good 0"], *PRICES[2:]]
    reason, found = judged(old, make({"Prices": dearer, "More": [["a"], ["1"]]}), media_type)
    assert (reason, found.kind, found.added, found.removed, found.changed) == (None, DiffKind.SHEETS, 1, 1, 1)
    assert [(each.sheet, each.what, each.key) for each in found.sheets] == [
        ("Prices", "changed", "id"),
        ("Notes", "removed", None),
        ("More", "added", None),
    ]
    assert (found.changes[0].where, found.changes[0].old, found.changes[0].new) == (
        "Prices!0",
        {"price": "0"},
        {"price": "99"},
    )


def with_members(book, members):
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        return zipped({**{name: archive.read(name) for name in archive.namelist()}, **members})


def links(*targets):
    """The relations of a sheet: links to the outside, and a part that is numbered anew with each saving."""
    outside = "".join(f'<Relationship TargetMode="External" Id="r{n}" Target="{target}"/>'
                      for n, target in enumerate(targets))  # fmt: skip
    inside = f'<Relationship Id="p" Target="../printer{len(outside)}.bin"/>'
    return f"<Relationships>{outside}{inside}</Relationships>"


RELATIONS = "xl/worksheets/_rels/sheet1.xml.rels"


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        ("xl/media/image1.png", "one", "two"),
        ("xl/comments1.xml", "one", "two"),
        ("xl/embeddings/oleObject1.bin", "one", "two"),
        ("xl/vbaProject.bin", "one", "two"),
        (RELATIONS, links("http://a.example/"), links("http://b.example/")),
    ],
)
def test_what_a_workbook_has_beside_its_cells_is_content(judged, member, old, new):
    plain = xlsx({"Prices": PRICES})
    was, now = with_members(plain, {member: old}), with_members(plain, {member: new})
    reason, found = judged(was, now, XLSX)
    assert (reason, found.kind) == (None, DiffKind.MEMBERS)


def test_parts_of_a_workbook_that_are_only_numbered_anew_are_noise(judged):
    plain, targets = xlsx({"Prices": PRICES}), ["http://a/", "http://b/?c&amp;d"]
    was = with_members(plain, {RELATIONS: links(*targets), "xl/media/image1.png": "a"})
    now = with_members(plain, {RELATIONS: links(*targets[::-1]), "xl/media/image2.png": "a"})
    assert judged(was, now, XLSX)[0] == "workbook saved again"


def test_more_relations_than_are_read_are_compared_by_their_checksums(judged):
    plain = xlsx({"Prices": PRICES})
    many = [f"http://{'x' * 1000}.example/{n}" for n in range(5000)]
    was, now = (with_members(plain, {RELATIONS: links(*many, last)}) for last in ("http://a/", "http://b/"))
    assert judged(was, now, XLSX)[0] is None


def test_a_sheet_without_rows_is_a_difference_too(judged):
    reason, found = judged(xlsx({"a": PRICES}), xlsx({"a": PRICES, "b": []}), XLSX)
    assert (reason, [(each.sheet, each.what) for each in found.sheets]) == (None, [("b", "added")])


def test_the_same_rows_as_xlsx_and_ods_are_the_same_content(judged):
    assert judged(xlsx({"Prices": PRICES}), ods({"Prices": PRICES}), ODS, XLSX)[0] == "workbook saved again"


def test_a_workbook_that_cannot_be_read_is_compared_by_its_members(judged):
    old = zipped({"xl/sheet1.xml": "<a/>", "docProps/core.xml": "2020"})
    new = zipped({"xl/sheet1.xml": "<b/>", "docProps/core.xml": "2021"})
    reason, found = judged(old, new, XLSX)
    assert (reason, found.kind, found.changed) == (None, DiffKind.MEMBERS, 1)


def test_other_office_files_saved_again_are_noise(judged):
    letter = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
    old = zipped({"word/document.xml": "<a/>", "docProps/core.xml": "2020"})
    reason, _ = judged(old, saved_again(old), letter)
    assert not unsaid(reason)


def test_a_file_named_like_the_record_of_who_saved_it_is_content_if_the_archive_is_no_office_file(judged):
    """As in Darwin Core archives, where `meta.xml` says what the columns are."""
    old, new = (zipped({"occurrence.csv": "id,a\n1,2\n", "meta.xml": f"<field {n}/>"}) for n in "12")
    reason, found = judged(old, new, "application/zip")
    assert (reason, [each.where for each in found.changes]) == (None, ["meta.xml"])
    text = "application/vnd.oasis.opendocument.text"
    old, new = (zipped({"content.xml": "<a/>", "meta.xml": f"<saved {n}/>"}) for n in "12")
    assert not unsaid(judged(old, new, text)[0])


def test_what_is_compressed_is_judged_by_what_is_in_it(judged):
    rows = [["id", "name"], *([str(n), f"name {n}"] for n in range(50))]
    old = gzip.compress(written(rows), 1, mtime=1)
    assert judged(old, gzip.compress(written(rows), 9, mtime=2), "application/gzip")[0] == "compressed again"
    reason, found = judged(old, gzip.compress(written(shuffled(rows)), mtime=2), "application/gzip")
    assert (unsaid(reason, "compressed", "rows"), found.kind) == ([], DiffKind.ROWS)
    reason, found = judged(old, gzip.compress(written(rows[:-1]), mtime=2), "application/gzip")
    assert (reason, found.removed) == (None, 1)


@pytest.mark.parametrize(
    "media_type", [None, "application/octet-stream", "text/plain", "text/html", CSV, JSON]
)
def test_line_ends_and_encodings_of_any_text_are_noise(judged, media_type):
    text = "Ärger, 1\nÖl, 2\n"
    reason, _ = judged(text.encode(), text.replace("\n", "\r\n").encode("cp1252"), media_type)
    assert reason.startswith("encoding cp1252 instead of utf-8")
    assert judged(text.encode(), text.upper().encode(), media_type)[0] is None


CITIES = "city,year,n\nBerlin,2020,5\n,2021,6\n,2022,9\nHamburg,2020,7\n,2021,8\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CITIES, "city,year,n\nHamburg,2020,7\n,2021,8\nBerlin,2020,5\n,2022,9\n,2021,6\n"),
        (",a,b\n,1,x\n,2,y\n,3,z\n", ",a,b\n,3,z\n,1,x\n,2,y\n"),
        (",name\n0,a\n1,b\n2,c\n", ",name\n2,c\n0,a\n1,b\n"),
        (",name,size,kind,place\n0,a,,,d\n1,b,,,e\n", ",name,size,kind,place\n1,b,,,e\n0,a,,,d\n"),
        ("id,a,b\n1,2,3\n4,5,6\n,,\n", "id,a,b\n4,5,6\n1,2,3\n,,\n"),
        (
            "a,b,n\nDE,Berlin,1\n,,2\n,Hamburg,3\n,,4\nFR,Paris,5\n,,6\n",
            "a,b,n\nFR,Paris,5\n,,6\nDE,Berlin,1\n,,2\n,Hamburg,3\n,,4\n",
        ),
    ],
    ids=["groups", "margin", "index", "wide index", "empty row", "groups in groups"],
)
def test_rows_without_a_first_cell_belong_to_those_above_and_groups_may_change_their_order(judged, old, new):
    reason, found = judged(old.encode(), new.encode(), CSV)
    assert (reason, found.changes) == ("rows in another order", [])
    sheets = [xlsx({"a": [line.split(",") for line in text.splitlines()]}) for text in (old, new)]
    assert not unsaid(judged(*sheets, XLSX)[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CITIES, CITIES.replace(",2021,6\n", "") + ",2021,6\n"),
        ("Berlin,x\n,y\nHamburg,z\n", "Hamburg,z\n,y\nBerlin,x\n"),
        ("a,b,n\nDE,Berlin,1\n,,2\n,Bonn,3\n,,4\n", "a,b,n\nDE,Berlin,1\n,,4\n,Bonn,3\n,,2\n"),
        (CITIES, CITIES.replace("Hamburg", "Bremen")),
    ],
    ids=["other group", "no header", "other group in a group", "other name"],
)
def test_a_row_that_goes_to_another_group_is_a_change(judged, old, new):
    assert judged(old.encode(), new.encode(), CSV)[0] is None


def test_of_a_table_in_which_hardly_any_row_lacks_its_first_cell_the_order_means_nothing(judged):
    rows = [["id", "name"], *([str(n), f"name {n}"] for n in range(38)), ["", "x"], ["", "y"]]
    assert not unsaid(judged(written(rows), written([rows[0], *rows[:0:-1]]), CSV)[0])
    more = [*rows, ["", "z"]]
    assert judged(written(more), written([more[0], *more[:0:-1]]), CSV)[0] is None


def test_two_groups_of_one_name_are_two_groups(judged):
    old = "city,year,n\nBerlin,2020,5\n,2021,6\n,2022,7\nBerlin,2020,8\n,2021,9\n"
    swapped = "city,year,n\nBerlin,2020,8\n,2021,6\n,2022,7\nBerlin,2020,5\n,2021,9\n"
    assert judged(old.encode(), swapped.encode(), CSV)[0] is None
    moved = "city,year,n\nBerlin,2020,5\n,2022,7\nBerlin,2020,8\n,2021,6\n,2021,9\n"
    assert judged(old.encode(), moved.encode(), CSV)[0] is None
    turned = "city,year,n\nBerlin,2020,8\n,2021,9\nBerlin,2020,5\n,2022,7\n,2021,6\n"
    assert not unsaid(judged(old.encode(), turned.encode(), CSV)[0])


FORMS = some.fixed_dictionaries(
    {
        "delimiter": some.sampled_from([",", ";", "\t", "|"]),
        "quoting": some.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        "end": some.sampled_from(["\n", "\r\n"]),
    }
)
NAMES, YEARS, COUNTS = (some.sampled_from(each) for each in (["Berlin", "Ulm"], ["2020", "2021"], "123"))
GROUPS = some.lists(
    some.tuples(
        some.tuples(NAMES, YEARS, COUNTS),
        some.lists(
            some.tuples(some.tuples(some.just(""), YEARS, COUNTS), some.lists(COUNTS, max_size=2)), max_size=3
        ),
    ),
    min_size=1,
    max_size=4,
)
"""Of each group its first row, and rows in it that may have such as begin with two empty cells."""


def flat(found):
    """The rows of groups, below a header."""
    rows = [["city", "year", "n"]]
    for first, below in found:
        rows.append(list(first))
        for row, counts in below:
            rows += [list(row), *(["", "", count] for count in counts)]
    return rows


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=GROUPS, form=FORMS, data=some.data())
def test_groups_and_their_rows_in_another_order_are_noise_in_any_form(judged, found, form, data):
    order = [
        (
            first,
            [
                (row, data.draw(some.permutations(counts)))
                for row, counts in data.draw(some.permutations(below))
            ],
        )
        for first, below in data.draw(some.permutations(found))
    ]
    old, new = written(flat(found)), written(flat(order), **form)
    assert judged(old, new, CSV)[0] is not None or old == new


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=GROUPS, form=FORMS, data=some.data())
def test_rows_that_go_anywhere_are_noise_just_when_each_stays_in_its_group(judged, found, form, data):
    rows = flat(found)
    order = [rows[0], *data.draw(some.permutations(rows[1:]))]
    old, new = written(rows), written(order, **form)
    reason, _ = judged(old, new, CSV)
    if old != new:
        assert (reason is not None) is (meanings(rows) == meanings(order))


CELLS = some.sampled_from(["", "", "a", "b", "1"])


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=some.integers(2, 4).flatmap(
        lambda width: some.lists(some.lists(CELLS, min_size=width, max_size=width), min_size=2, max_size=7)
    ),
    data=some.data(),
)
def test_rows_in_another_order_are_noise_just_when_their_order_says_nothing(judged, rows, data):
    order = data.draw(some.permutations(rows))
    same, found = judged(written(rows), written(order), CSV)
    tables = [found_table(written(each), MOST) for each in (rows, order)]
    if same is not None and all(table.width == len(rows[0]) for table in tables):
        assert sorted(map(tuple, rows)) == sorted(map(tuple, order))
        assert meanings(rows) == meanings(order), found


def feature(number, **more):
    point = {"type": "Point", "coordinates": [number, 0.5]}
    return {"type": "Feature", "geometry": point, "properties": {"kind": "tree"}, **more}


def collection(features, **more):
    return json.dumps({**more, "features": features, "type": "FeatureCollection"}).encode()


GEO = "application/geo+json"


@pytest.mark.parametrize("count", [5, 4000], ids=["small", "large"])
def test_features_without_identifiers_may_change_their_order(judged, count):
    features = [feature(n // 2) for n in range(count)]
    reason, found = judged(collection(features), collection(features[::-1]), GEO)
    assert (reason, found.changes) == ("items in another order", [])
    ring = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    turned = {"type": "Polygon", "coordinates": [ring["coordinates"][0][::-1]]}
    old = collection([*features, feature(0, geometry=ring)])
    assert judged(old, collection([feature(0, geometry=turned), *features]), GEO)[0] is None


def test_of_features_in_another_order_only_those_that_changed_are_told(judged):
    features = [feature(n) for n in range(300)]
    new = [*features[:0:-1], feature(0, properties={"kind": "bush"})]
    _, found = judged(collection(features), collection(new), GEO)
    assert (found.added, found.removed, found.changed) == (1, 1, 0)
    told = {(each.what, each.where): (each.old or each.new)["properties"]["kind"] for each in found.changes}
    assert told == {("removed", "$.features[0]"): "tree", ("added", "$.features[299]"): "bush"}


def test_a_feature_that_changed_in_its_place_is_told_by_what_changed(judged):
    features = [feature(n) for n in range(5)]
    new = [*features[:2], feature(2, properties={"kind": "bush"}), *features[3:]]
    _, found = judged(collection(features), collection(new), GEO)
    assert [(each.where, each.old, each.new) for each in found.changes] == [
        ("$.features[2].properties.kind", "tree", "bush")
    ]


def test_features_of_something_else_are_in_order(judged):
    old, new = (json.dumps({"features": each}).encode() for each in (["a", "b"], ["b", "a"]))
    assert judged(old, new, JSON)[0] is None
    assert judged(b'{"columns": ' + collection([feature(1), feature(2)]) + b"}",
                  b'{"columns": ' + collection([feature(2), feature(1)]) + b"}", JSON)[0] is None  # fmt: skip


FEATURES = some.lists(
    some.builds(feature, some.integers(0, 2), id=some.sampled_from([1, 2, None]))
    | some.builds(feature, some.integers(0, 2))
    | some.sampled_from([None, 1, {"name": "a"}, {"name": "b", "n": 1}]),
    max_size=5,
)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=FEATURES, new=FEATURES, data=some.data())
def test_features_are_the_same_just_when_each_is_there_as_often(judged, old, new, data):
    order = data.draw(some.permutations(old))
    reason, _ = judged(collection(old), collection(order), GEO)
    assert reason is not None
    reason, _ = judged(collection(old), collection(new), GEO)
    texts = [sorted(json.dumps(each, sort_keys=True) for each in features) for features in (old, new)]
    assert (reason is not None) is (texts[0] == texts[1])
