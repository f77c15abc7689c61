"""The links between URLs as a graph for visualisation tools: GraphML, DOT and Parquet, row by row."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tamias.database.connect import Session
from tamias.database.sql import statements

COLUMNS = {
    "from_url": "VARCHAR",
    "to_url": "VARCHAR",
    "crawl": "VARCHAR",
    "anchor": "VARCHAR",
    "context_left": "VARCHAR",
    "context_right": "VARCHAR",
    "count": "INTEGER",
    "language": "VARCHAR",
    "from_score": "DOUBLE",
    "from_quads": "BIGINT",
    "first_seen": "TIMESTAMPTZ",
}
"""The columns of `links.parquet`; all but the first two are the data of an edge in GraphML."""

_SQL = statements("tamias.features.exports", "exports.sql")
_DATA = list(COLUMNS)[2:]
_KINDS = {"INTEGER": "int", "BIGINT": "long", "DOUBLE": "double"}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_link_graph(session: Session, form: str, crawl: str | None = None) -> Iterator[bytes]:
    """The file, line by line: all URLs first, then the links between them."""
    lines = _graphml if form == "graphml" else _dot
    nodes = (row[0] for row in session.rows(_SQL["nodes"].text, {"crawl": crawl}))
    for line in lines(nodes, link_edges(session, crawl)):
        yield f"{line}\n".encode()


def link_edges(session: Session, crawl: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `links.parquet`."""
    return session.rows(_SQL["edges"].text, {"crawl": crawl})


def _graphml(nodes: Iterator[str], edges: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for name in _DATA:
        kind = _KINDS.get(COLUMNS[name], "string")
        yield f'  <key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>'
    yield '  <graph edgedefault="directed">'
    for url in nodes:
        yield f"    <node id={_attribute(url)}/>"
    for source, target, *values in edges:
        data = "".join(
            f'<data key="{name}">{escape(xml_text(_plain(name, value)))}</data>'
            for name, value in zip(_DATA, values, strict=True)
            if value is not None
        )
        yield f"    <edge source={_attribute(source)} target={_attribute(target)}>{data}</edge>"
    yield "  </graph>"
    yield "</graphml>"


def _dot(nodes: Iterator[str], edges: Iterator[tuple[Any, ...]]) -> Iterator[str]:
    yield "digraph links {"
    for url in nodes:
        yield f"  {_quoted(url)};"
    for source, target, crawl, anchor, _, _, count, *_ in edges:
        label = f"label={_quoted(anchor)}, " if anchor else ""
        yield f"  {_quoted(source)} -> {_quoted(target)} [{label}weight={count}, crawl={_quoted(crawl)}];"
    yield "}"


def _plain(name: str, value: Any) -> str:
    return datetime.fromtimestamp(value / 1000, UTC).isoformat() if name == "first_seen" else str(value)


def xml_text(text: str) -> str:
    """The text without what XML cannot say."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _attribute(text: str) -> str:
    return quoteattr(xml_text(text))


def _quoted(text: str) -> str:
    r"""A string of the DOT language, in which a backslash before a letter would mean something.

    >>> _quoted('a "b" \\n')
    '"a \\"b\\" \\\\n"'
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'
