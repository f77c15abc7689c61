"""Values of messages: which queue, crawl and time a client means, and whether a URL is one."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tamias.features.remote_workers.grpc.connection import CallError, Code
from tamias.frontier.service import NamedQueues
from tamias.frontier.tags import metadata_and_tags
from tamias.model.errors import UrlError
from tamias.model.item import NEVER, TAGS, Item
from tamias.model.url import fetch_url, host, key_of_fetched, url_key

MAX_URL = 32_768
MAX_INFO = 256 << 10
"""Bytes of a URL with its metadata."""
MAX_NAME = 255
"""Characters of a queue's key or a crawl's name."""
LAST_SECOND = 253_402_300_799
"""The end of the year 9999: a later date is taken for this one."""


def milliseconds(seconds: int) -> int:
    """A client's date."""
    return min(seconds, LAST_SECOND) * 1000


def due_of(date: int) -> int:
    """The due time of a known URL: a client says 0 for never."""
    return milliseconds(date) if date else NEVER


def date_of(due: int) -> int:
    """The date of a due time, as clients know it."""
    return 0 if due == NEVER else max(1, due // 1000)


def is_name(text: str) -> bool:
    """Return whether a text may name a queue or a crawl."""
    return len(text) <= MAX_NAME and "\0" not in text and "\x1f" not in text


def checked(name: str) -> str:
    """A name, or the reason why it cannot be one."""
    if not is_name(name):
        raise CallError(
            Code.INVALID_ARGUMENT, f"a name has at most {MAX_NAME} characters, none of them U+0000 or U+001F"
        )
    return name


def queue_key(url: str) -> str:
    """The key of a URL that comes without one: its host; empty where it has none.

    >>> queue_key("http://user:pw@[::1]:80/"), queue_key("http://gac.icann.org/?a"), queue_key("mailto:x")
    ('::1', 'gac.icann.org', '')
    """
    return host(url).lower().strip("[]")


class Addresses:
    """Reads URLs; `session_names` are the parameters that do not tell URLs apart."""

    def __init__(self, session_names: frozenset[str]) -> None:
        self._session_names = session_names

    def key(self, url: str) -> str:
        """Return the key that tells a URL from others."""
        return url_key(url, self._session_names)

    def same(self, one: str, other: str) -> bool:
        """Return whether two texts are one URL."""
        return self.key(one) == self.key(other)

    def read_item(
        self, info: Any, crawl: NamedQueues, *, known: bool = False, due: int | None = None
    ) -> Item | None:
        """A client's URL as the frontier takes it; None for what is not a URL or fits no queue."""
        spelling = info.url
        if not spelling or len(spelling) > MAX_URL or "\0" in spelling:
            return None
        try:
            url = fetch_url(spelling)
            queue = info.key or queue_key(url)
            key = key_of_fetched(url, self._session_names)
        except UrlError:
            return None
        if not queue or not is_name(queue):
            return None
        if info.metadata and info.ByteSize() > MAX_INFO:
            return None
        written, tags = metadata_and_tags(_metadata(info)) if info.metadata else (None, None)
        if written is not None and "\\u0000" in written:
            return None
        return Item(
            url=url,
            key=key,
            host=crawl.host(queue),
            crawl=crawl.crawl,
            due=due,
            spelling=None if spelling == url else spelling,
            metadata=written,
            tags=tags or (),
            overwrites=known,
            keeps_tags=tags is None,
        )


def _metadata(info: Any) -> dict[str, list[str]]:
    return {name: list(each.values) for name, each in info.metadata.items()}


def fill_metadata(info: Any, written: str | None, tags: Iterable[str] | None) -> None:
    """Puts tags and stored metadata into a message."""
    if tags:
        info.metadata[TAGS].values.extend(tags)
    if written is not None:
        for name, values in msgspec.json.decode(written).items():
            info.metadata[name].values.extend(values)
