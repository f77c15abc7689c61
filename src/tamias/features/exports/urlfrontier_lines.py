"""Writes the frontier as the JSON lines that URLFrontier's own client dumps and takes, page by page."""

from collections.abc import Iterator
from typing import Any

import msgspec

from tamias.database.connect import Session, read_buckets
from tamias.database.sql import statements
from tamias.model.item import NEVER, TAGS

_SQL = statements("tamias.features.exports", "exports.sql")
_PAGE = 5000
_FIRST = -(2**63)
DEFAULT_CRAWL = "DEFAULT"


def urlfrontier_lines(session: Session) -> Iterator[bytes]:
    """Yield one `URLItem` a line, in chunks: every URL as known, with the date when it is due; 0 is never."""
    buckets = session.transact(read_buckets)
    crawls = {
        number: DEFAULT_CRAWL if number == 1 else name
        for number, name in session.fetch_all(_SQL["list_crawls"])
    }
    encoder = msgspec.json.Encoder()
    for bucket in range(buckets):
        after = {"bucket": bucket, "limit": _PAGE, "qid": _FIRST, "crawl": 0, "uid": _FIRST}
        while page := session.fetch_all(_SQL["page"], after):
            qid, crawl, uid = page[-1][:3]
            after |= {"qid": qid, "crawl": crawl, "uid": uid}
            wanted = [_item(row, crawls[row[1]]) for row in page if row[1] in crawls]
            yield b"".join(encoder.encode(each) + b"\n" for each in wanted)


def _item(row: tuple[Any, ...], crawl: str) -> dict[str, Any]:
    """Long numbers are texts, as in all JSON of protocol buffers."""
    _qid, _crawl, _uid, key, url, due, first_seen, metadata, tags = row
    noted = {name: {"values": values} for name, values in _noted(metadata, tags).items()}
    info = {"url": url, "key": key, **({"metadata": noted} if noted else {}), "crawlID": crawl}
    date = 0 if due == NEVER else max(1, due // 1000)
    return {
        "known": {"info": info, "refetchableFromDate": str(date)},
        "creationDate": str(first_seen // 1000),
    }


def _noted(metadata: str | None, tags: list[str] | None) -> dict[str, list[str]]:
    noted: dict[str, Any] = msgspec.json.decode(metadata) if metadata else {}
    # What our own workers noted in another form is no metadata of URLFrontier.
    lists = {name: values for name, values in noted.items() if isinstance(values, list)}
    return {**lists, TAGS: [*tags, *lists.get(TAGS, ())]} if tags else lists
