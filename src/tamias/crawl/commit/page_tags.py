"""The tags that taggers give to pages by their content."""

import logging

import msgspec

from tamias.analyse.tags.content import NEAR, page_hash, quarters
from tamias.crawl.plan.admit import Reference
from tamias.crawl.store.visit import Visit
from tamias.database.connect import Cursor
from tamias.database.sql import statements
from tamias.database.threads import SessionThread
from tamias.frontier.keys import hash64
from tamias.frontier.tags import MOST_TAGS, is_tag
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
_SQL = statements("tamias.crawl.commit", "page_tags.sql")


class PageTags:
    """The tags that taggers give to pages by their content, if any are set."""

    def __init__(self, settings: TagsSettings, thread: SessionThread) -> None:
        self._taggers: list[Tagger] = [load("taggers", name)() for name in settings.content if name != _NEAR]
        self._near = _NEAR in settings.content
        self._inherit = settings.inherit
        self._thread = thread

    async def tags(self, visit: Visit) -> tuple[str, ...]:
        """The tags that a page's content tells; none where nothing was read."""
        if visit.capture.outcome is not Outcome.OK:
            return ()
        page = _page(visit)
        tags = [tag for tagger in self._taggers for tag in _tags_from(tagger, page)]
        if self._near and await self._is_near(page):
            tags.append(NEAR_DUPLICATE)
        return tuple(dict.fromkeys(tags))[:MOST_TAGS]

    def handed_on(self, references: list[Reference], page_tags: tuple[str, ...]) -> list[Reference]:
        """The links of a page, with its tags where they inherit them."""
        tags = tuple(tag for tag in page_tags if tag != NEAR_DUPLICATE)
        if not self._inherit or not tags:
            return references
        return [msgspec.structs.replace(each, tags=(*each.tags, *tags)) for each in references]

    async def _is_near(self, page: Page) -> bool:
        number = page_hash(page.body) if page.media_type in _TEXTS else None
        return number is not None and await self._thread.run(self._note, hash64(page.url), number)

    def _note(self, page: int, number: int) -> bool:
        parts = quarters(number)
        parameters = {
            "page": page,
            "hash": number,
            "quarters": parts,
            "first": parts[0],
            "near": NEAR,
            "most": _MOST_ALIKE,
            "now": self._thread.session.now(),
        }

        def look(cursor: Cursor) -> bool:
            cursor.execute(_SQL["keep_likeness"].text, parameters)
            row = cursor.execute(_SQL["find_alike"].text, parameters).fetchone()
            return row is not None and bool(row[0])

        return self._thread.session.transact(look)


def tagged(done: Done, tags: tuple[str, ...]) -> Done:
    """Return `done` with new tags from content in place of earlier ones of the same names."""
    names = {tag.partition("=")[0] for tag in tags} | {NEAR_DUPLICATE}
    others = [tag for tag in done.task.tags if tag.partition("=")[0] not in names]
    return msgspec.structs.replace(done, tags=(*others, *tags))


def _tags_from(tagger: Tagger, page: Page) -> list[str]:
    """Return the valid tags of one tagger; log its errors."""
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
