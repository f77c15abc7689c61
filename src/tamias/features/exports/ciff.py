"""CIFF, the Common Index File Format: an inverted index that search engines such as Lucene and PISA take.

A header, a postings list for each term in order, a record for each document; each is a message of Protocol
Buffers behind its length (github.com/osirrc/ciff). DuckDB inverts the index, on disk where it is large.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    import duckdb

VERSION: Final = 1
LONGEST_TERM: Final = 100
"""A longer run of letters is no word."""
_AT_ONCE: Final = 1_000
_TERM: Final = re.compile(r"\w+")
_COUNTS: Final = (
    "SELECT count(*), coalesce(sum(length), 0), (SELECT count(DISTINCT term) FROM posting) FROM document"
)
_POSTINGS: Final = (
    "SELECT term, list(document ORDER BY document), list(tf ORDER BY document) FROM posting"
    " GROUP BY term ORDER BY encode(term)"
)


def export_ciff(documents: Iterable[tuple[str, str]], out: BinaryIO, description: str) -> int:
    """Writes the index of documents, each a name and a text; returns how many there were."""
    import duckdb

    with TemporaryDirectory(prefix="tamias-ciff-") as work:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": "512MB",
            "temp_directory": str(Path(work) / "spill"),
        }
        with closing(duckdb.connect(Path(work) / "index.duckdb", config=settings)) as index:
            count = _fill(index, documents)
            out.writelines(_messages(index, description))
    return count


def terms(text: str) -> Iterator[str]:
    """The terms of a text: runs of letters and digits in lower case, without stemming or stop words.

    >>> list(terms("The crawler's 2 Häuser"))
    ['the', 'crawler', 's', '2', 'häuser']
    """
    return (word for found in _TERM.finditer(text.lower()) if len(word := found[0]) <= LONGEST_TERM)


def _fill(index: "duckdb.DuckDBPyConnection", documents: Iterable[tuple[str, str]]) -> int:
    import numpy as np

    index.execute("CREATE TABLE document (document INTEGER, name VARCHAR, length INTEGER)")
    index.execute("CREATE TABLE posting (term VARCHAR, document INTEGER, tf INTEGER)")
    numbered = enumerate(documents)
    count = 0
    while batch := list(islice(numbered, _AT_ONCE)):
        counts = [Counter(terms(text)) for _, (_, text) in batch]
        rows = [(number, name, each.total()) for (number, (name, _)), each in zip(batch, counts, strict=True)]
        index.executemany("INSERT INTO document VALUES (?, ?, ?)", rows)
        postings = [
            (term, number, tf)
            for (number, _), each in zip(batch, counts, strict=True)
            for term, tf in each.items()
        ]
        columns = zip(*postings, strict=True) if postings else ((), (), ())
        arrays = dict(zip(("term", "document", "tf"), map(np.array, columns), strict=True))
        index.register("batch", arrays)
        index.execute("INSERT INTO posting SELECT term, document, tf FROM batch")
        index.unregister("batch")
        count += len(batch)
    return count


def _messages(index: "duckdb.DuckDBPyConnection", description: str) -> Iterator[bytes]:
    found = index.execute(_COUNTS).fetchall()
    documents, total, lists = map(int, found[0])
    sizes = (VERSION, lists, documents, lists, documents, total)
    header = b"".join(_number(field, value) for field, value in enumerate(sizes, 1))
    average = _tag(7, 1) + pack("<d", total / documents if documents else 0.0)
    yield _delimited(header + average + _text(8, description))
    postings = index.cursor().execute(_POSTINGS)
    while row := postings.fetchone():
        yield _delimited(_postings_list(*row))
    named = index.cursor().execute("SELECT document, name, length FROM document ORDER BY document")
    while row := named.fetchone():
        yield _delimited(_number(1, row[0]) + _text(2, row[1]) + _number(3, row[2]))


def _postings_list(term: str, documents: list[int], tfs: list[int]) -> bytes:
    parts = [_text(1, term), _number(2, len(documents)), _number(3, sum(tfs))]
    before = 0
    for document, tf in zip(documents, tfs, strict=True):
        posting = _number(1, document - before) + _number(2, tf)
        parts.append(_tag(4, 2) + _varint(len(posting)) + posting)
        before = document
    return b"".join(parts)


def _delimited(message: bytes) -> bytes:
    return _varint(len(message)) + message


def _text(field: int, value: str) -> bytes:
    content = value.encode("utf-8", "replace")
    return _tag(field, 2) + _varint(len(content)) + content if content else b""


def _number(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value) if value else b""


def _tag(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
