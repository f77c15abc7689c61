"""The list of an FTP directory, lines of JSON that the fetcher made of it, into links."""

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tamias.analyse.chunks import as_stream, read_chunks
from tamias.analyse.rdf.statements import BATCH, RdfStatements, StatementAnalyser
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.finding import Finding, Links

_MOST_LINE = 64 * 1024
_NO_NAME = re.compile(r"|\.|\.\.|(?s:.*[/\x00-\x1f\x7f].*)")
"""What is no name of something in this directory: nothing, a path, or a line break for some command."""


class FtpListingAnalyser(StatementAnalyser):
    """Links to what stands in a directory: files, and directories with a slash at their end."""

    media_types = read_by(__name__)

    def _read(self, document: Document, statements: RdfStatements) -> Iterator[Finding]:
        batch: list[str] = []
        with as_stream(read_chunks(document.stream)) as lines:
            for number, line in enumerate(iter(lambda: lines.readline(_MOST_LINE), b""), start=1):
                try:
                    batch.append(_reference(line))
                except (ValueError, RecursionError) as error:
                    yield from statements.fault(f"list of the directory: {error}", number)
                if len(batch) >= BATCH:
                    yield Links(batch, document.base)
                    batch = []
        if batch:
            yield Links(batch, document.base)


def _reference(line: bytes) -> str:
    """Relative to the directory. Raises `ValueError` with what is wrong with the line."""
    entry: Any = json.loads(line)
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")
    if isinstance(entry.get("problem"), str):
        raise ValueError(entry["problem"])
    name = entry.get("name")
    if not isinstance(name, str):
        raise ValueError("an entry without a name")
    if _NO_NAME.fullmatch(name):
        raise ValueError(f"refused as a name: {name[:200]!a}")
    # Bytes that are no UTF-8 come as lone surrogates; any other surrogate stands for nothing.
    return quote(name.encode("utf-8", "surrogateescape"), safe="") + (
        "/" if entry.get("type") == "dir" else ""
    )
