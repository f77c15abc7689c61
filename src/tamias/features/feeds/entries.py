"""News as any feed tells it, and as Atom (RFC 4287) and JSON Feed write it."""

import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec


class FeedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a feed."""

    id: str
    title: str
    updated: str
    page: str
    """For people."""
    data: str
    """The same for programs."""
    summary: str
    download: str | None = None
    """The file, where the news is one."""
    media_type: str | None = None
    byte_size: int = 0


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """A page of news, newest first."""

    id: str
    title: str
    home: str
    here: str
    further: str | None
    entries: tuple[FeedEntry, ...]


ATOM = "application/atom+xml"
_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(feed: Feed) -> bytes:
    """The feed as XML."""
    return "\n".join(_lines(feed)).encode()


def _lines(feed: Feed) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield '<feed xmlns="http://www.w3.org/2005/Atom">'
    yield _element("id", feed.id)
    yield _element("title", feed.title)
    yield _element("updated", feed.entries[0].updated if feed.entries else "1970-01-01T00:00:00Z")
    yield "<author><name>Tamias</name></author>"
    yield _link("self", feed.here, ATOM)
    yield _link("alternate", feed.home, "text/html")
    if feed.further is not None:
        yield _link("next", feed.further, ATOM)
    for entry in feed.entries:
        yield from _entry(entry)
    yield "</feed>"


def _entry(entry: FeedEntry) -> Iterator[str]:
    yield "<entry>"
    yield _element("id", entry.id)
    yield _element("title", entry.title)
    yield _element("updated", entry.updated)
    yield _link("alternate", entry.page, "text/html")
    yield _link("related", entry.data, "application/json")
    if entry.download is not None:
        kind = entry.media_type or "application/octet-stream"
        yield _link("enclosure", entry.download, kind, f' length="{entry.byte_size}"')
    yield _element("summary", entry.summary)
    yield "</entry>"


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(_UNFIT.sub('�', text))}</{name}>"


def _link(relation: str, address: str, media_type: str, more: str = "") -> str:
    return f'<link rel="{relation}" href={_quoted(address)} type={_quoted(media_type)}{more}/>'


def _quoted(text: str) -> str:
    return quoteattr(_UNFIT.sub("�", text))


JSON_FEED = "application/feed+json"


def json_feed(feed: Feed) -> bytes:
    """The feed as JSON."""
    document: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.home,
        "feed_url": feed.here,
        "items": [_item(entry) for entry in feed.entries],
    }
    return msgspec.json.encode(document if feed.further is None else {**document, "next_url": feed.further})


def _item(entry: FeedEntry) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": entry.id,
        "url": entry.page,
        "title": entry.title,
        "content_text": entry.summary,
        "date_published": entry.updated,
    }
    if entry.download is None:
        return item
    file = {
        "url": entry.download,
        "mime_type": entry.media_type or "application/octet-stream",
        "size_in_bytes": entry.byte_size,
    }
    return {**item, "attachments": [file]}
