"""Parts of a workbook (XLSX) beside its cells: pictures, comments, embedded files, macros, links."""

import re
import zipfile
import zlib
from html import unescape

from tamias.content.canonical import Unreadable
from tamias.content.canonical.text import Source, open_source
from tamias.content.containers.directory import bounded_zip, members
from tamias.model.document import LimitExceeded

MOST_LINKS = 1 << 22
"""Bytes of all relations that are read; those of a larger workbook are compared by their checksums."""
_PART = re.compile(r"/media/|/embeddings/|comment[^/]*$|/vbaproject\.bin$|^pictures/", re.IGNORECASE)
_RELATIONS = re.compile(r"/worksheets/_rels/[^/]+\.rels$")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\b[^>]*>")
_OUTSIDE = re.compile(rb"""\bTargetMode\s*=\s*["']External["']""")
_TARGET = re.compile(rb"""\bTarget\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_FAULTS = (
    zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, OverflowError, EOFError, LimitExceeded,
)  # fmt: skip


def beside_cells(source: Source) -> list[str]:
    """The checksums of its parts and the addresses of its links, sorted; without names, which are numbers.

    Nothing of what is no zip archive.
    """
    try:
        found = members(source)
    except Unreadable:
        return []
    parts = [f"{each.crc:08x} {each.size}" for each in found if _PART.search(each.name)]
    relations = [each for each in found if _RELATIONS.search(each.name)]
    try:
        links = _links(source, [each.name for each in relations])
    except _FAULTS:
        links = [f"{each.crc:08x} {each.size}" for each in relations]
    return sorted(parts) + sorted(links)


def _links(source: Source, names: list[str]) -> list[str]:
    links: list[str] = []
    if not names:
        return links
    left = MOST_LINKS
    with open_source(source) as file, bounded_zip(file) as archive:
        for name in names:
            with archive.open(name) as member:
                text = member.read(left + 1)
            left -= len(text)
            if left < 0:
                raise LimitExceeded(f"more than {MOST_LINKS} bytes of relations")
            links += map(_address, filter(_OUTSIDE.search, _RELATION.findall(text)))
    return links


def _address(relation: bytes) -> str:
    found = _TARGET.search(relation)
    return unescape((found[1] or found[2] or b"").decode("utf-8", "replace")) if found else ""
