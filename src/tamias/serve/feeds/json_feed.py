"""JSON Feed, version 1.1."""

from typing import Any

import msgspec

from tamias.serve.feeds.entries import Feed, FeedEntry

JSON_FEED = "application/feed+json"


def json_feed(feed: Feed) -> bytes:
    """The feed as JSON."""
    told: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "home_page_url": feed.home,
        "feed_url": feed.here,
        "items": [_item(entry) for entry in feed.entries],
    }
    return msgspec.json.encode(told if feed.further is None else {**told, "next_url": feed.further})


def _item(entry: FeedEntry) -> dict[str, Any]:
    file = {
        "url": entry.download,
        "mime_type": entry.media_type or "application/octet-stream",
        "size_in_bytes": entry.byte_size,
    }
    return {
        "id": entry.id,
        "url": entry.page,
        "title": entry.title,
        "content_text": entry.summary,
        "date_published": entry.updated,
        "attachments": [file],
    }
