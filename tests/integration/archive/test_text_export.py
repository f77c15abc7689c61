"""`tamias export --format parquet --text`: the text of pages, without what stands around it."""

import json

import duckdb
import pytest

pytest.importorskip("resiliparse")

STORY = " ".join(f"The squirrel hid acorn number {number} under the old oak." for number in range(40))
PAGE = f"""<!DOCTYPE html><html lang="en-GB"><head><title> A  story </title><base href="/deep/"></head><body>
<nav><ul><li><a href="/menu">Menu of the site</a></li><li><a href="/login">Log in here</a></li></ul></nav>
<main><article><h1>Acorns</h1><p>{STORY}</p><h2>Où <em>next</em></h2><p>{STORY}</p>
<p>See <a href="next.html">the next one</a> and <a href="mailto:x@y.example">me</a>.</p></article></main>
<footer>Copyright notice of the site</footer><script>var hidden = "script text";</script></body></html>"""
OLDER = PAGE.replace("Acorns", "Older acorns")


@pytest.fixture
def exported(filled, tamias, tmp_path):
    filled.put("http://pages.example/story", OLDER.encode(), PAGE.encode("utf-16"), media_type="text/html")
    filled.put("http://pages.example/data.csv", b"a,b\n1,2\n")

    def export(*words):
        folder = tmp_path / "out"
        done = tamias("export", "--format", "parquet", "--text", "-o", str(folder), *words)
        assert done.returncode == 0, done.stderr
        found = duckdb.sql(f"SELECT * EXCLUDE captured_at FROM '{folder / 'pages.parquet'}' ORDER BY version")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    return export


def test_a_page_is_a_row_with_its_text(exported):
    [row] = exported()
    assert (row["url"], row["version"], row["title"]) == ("http://pages.example/story", 2, "A story")
    assert (row["language"], row["headings"]) == ("en", ["Acorns", "Où next"])
    links = {"http://pages.example/menu", "http://pages.example/login", "http://pages.example/deep/next.html"}
    assert links <= set(row["links"])
    assert row["text"].count("acorn number 39") == 2
    assert not any(word in row["text"] for word in ("script text", "Log in here", "Copyright notice"))
    assert (row["signals"], row["not_permitted"]) == ([], [])


def test_all_versions_come_with_the_history(exported):
    assert [(row["version"], row["headings"][0]) for row in exported("--history")] == [
        (1, "Older acorns"),
        (2, "Acorns"),
    ]


def test_text_goes_with_parquet_and_a_folder(tamias, filled):
    for words in (("--format", "nquads", "--text"), ("--format", "parquet", "--text")):
        done = tamias("export", *words)
        assert (done.returncode, "--text" in done.stderr) == (2, True)


def test_an_index_of_the_pages_has_their_words(exported, tamias, tmp_path):
    file = tmp_path / "pages.ciff"
    done = tamias("export", "--format", "ciff", "-o", str(file))
    assert done.returncode == 0, done.stderr
    content = file.read_bytes()
    assert all(word in content for word in (b"squirrel", b"acorns", b"http://pages.example/story"))
    assert b"copyright" not in content


def test_what_is_reserved_is_in_no_text_and_no_index(filled, tamias, tmp_path):
    for word in ("open", "mined"):
        page = PAGE.replace("squirrel", f"{word}squirrel")
        filled.put(f"http://reserved.example/{word}", page.encode(), media_type="text/html")
    said = json.dumps([{"source": "header", "key": "tdm-reservation", "value": "1"}])
    filled.run(
        "UPDATE capture SET signals = %b::text::jsonb WHERE url = %b", said, "http://reserved.example/mined"
    )
    found = {}
    for words in ((), ("--include-reserved",)):
        done = tamias("export", "--format", "ciff", "-o", str(tmp_path / "index.ciff"), *words)
        assert done.returncode == 0, done.stderr
        done = tamias("export", "--format", "parquet", "--text", "-o", str(tmp_path / "text"), *words)
        assert done.returncode == 0, done.stderr
        index = (tmp_path / "index.ciff").read_bytes()
        rows = duckdb.sql(
            f"SELECT url, not_permitted FROM '{tmp_path / 'text' / 'pages.parquet'}'"
        ).fetchall()
        found[words] = b"minedsquirrel" in index, b"opensquirrel" in index, sorted(rows)
    reserved = ("http://reserved.example/mined", ["tdm_reserved (header tdm-reservation: 1)"])
    opened = ("http://reserved.example/open", [])
    assert found == {
        (): (False, True, [opened]),
        ("--include-reserved",): (True, True, [reserved, opened]),
    }
