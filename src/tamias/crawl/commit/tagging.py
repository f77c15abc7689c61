"""Tags that a visit tells: from the page's content, by the parts that the setting `tags.content` names."""

import logging
from collections.abc import Sequence

import msgspec

from tamias.analyse.tags.content import NEAR, page_hash, quarters
from tamias.crawl.plan.admit import Reference
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.database.threads import SessionThread
from tamias.frontier.keys import hash64
from tamias.frontier.tagging.tags import MOST_TAGS, is_tag
from tamias.model.capture import Outcome
from tamias.model.document import Page
from tamias.model.lease import Done
from tamias.plugins import load
from tamias.protocols import Tagger
from tamias.settings import TagsSettings

_log = logging.getLogger(__name__)

NEAR_DUPLICATE = "near-duplicate"
_NEAR = "near"
_MOST_ALIKE = 2000
_TEXTS = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
_SQL = statements("tamias.crawl.commit", "tagging.sql")


class PageTags:
    """What the content of pages tells. Nothing, where the setting names nothing."""

    def __init__(self, settings: TagsSettings, thread: SessionThread) -> None:
        self._taggers: list[Tagger] = [load("taggers", name)() for name in settings.content if name != _NEAR]
        self._near = _NEAR in settings.content
        self._inherit = settings.inherit
        self._thread = thread

    async def told(self, visit: Visit) -> tuple[str, ...]:
        """The tags that a page's content tells; none where nothing was read."""
        if not (self._taggers or self._near) or visit.capture.outcome is not Outcome.OK:
            return ()
        page = _page(visit)
        told = [tag for tagger in self._taggers for tag in _asked(tagger, page)]
        if self._near and await self._is_near(page):
            told.append(NEAR_DUPLICATE)
        return tuple(dict.fromkeys(told))[:MOST_TAGS]

    def handed_on(self, references: Sequence[Reference], told: tuple[str, ...]) -> Sequence[Reference]:
        """The links of a page, with its tags where they inherit them."""
        tags = tuple(tag for tag in told if tag != NEAR_DUPLICATE)
        if not self._inherit or not tags:
            return references
        return [msgspec.structs.replace(each, tags=(*each.tags, *tags)) for each in references]

    async def _is_near(self, page: Page) -> bool:
        number = page_hash(page.body) if page.media_type in _TEXTS else None
        return number is not None and await self._thread.run(self._note, hash64(page.url), number)

    def _note(self, page: int, number: int) -> bool:
        parts = quarters(number)
        asked = {
            "page": page,
            "hash": number,
            "quarters": parts,
            "first": parts[0],
            "near": NEAR,
            "most": _MOST_ALIKE,
            "now": self._thread.session.now(),
        }

        def look(cursor: Cursor) -> bool:
            cursor.execute(_SQL["keep_likeness"].text, asked)
            row = cursor.execute(_SQL["find_alike"].text, asked).fetchone()
            return row is not None and bool(row[0])

        return self._thread.session.transact(look)


def tagged(done: Done, told: tuple[str, ...]) -> Done:
    """With the URL's tags from now on: what content told before gives way to what it tells now."""
    if not told:
        return done
    names = {tag.partition("=")[0] for tag in told} | {NEAR_DUPLICATE}
    kept = [tag for tag in done.task.tags if tag.partition("=")[0] not in names]
    return msgspec.structs.replace(done, tags=(*kept, *told))


def _asked(tagger: Tagger, page: Page) -> list[str]:
    """What one part tells, as far as these are tags; its faults are its own."""
    try:
        return [tag for tag in tagger.tags(page) if is_tag(tag)]
    except Exception:  # noqa: BLE001 (told, and the visit counts without these tags)
        _log.exception("tags of %s", page.url)
        return []


def _page(visit: Visit) -> Page:
    capture = visit.capture
    return Page(
        url=capture.final_url,
        media_type=visit.found.media_type,
        headers=capture.hops[-1].headers if capture.hops else (),
        body=(capture.body.data or b"") if capture.body else b"",
    )
