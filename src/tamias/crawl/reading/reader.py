"""Reads what was fetched: small bodies at once, large ones in a thread; waits for contexts they name."""

import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from functools import partial

import msgspec

from tamias.crawl.admit import FIRST, Reference
from tamias.crawl.archiving.keeping import WATCH
from tamias.crawl.commits.commit import Committer
from tamias.crawl.commits.marker import Marker
from tamias.crawl.commits.shelf import Shelf
from tamias.crawl.reading.aside import aside
from tamias.crawl.reading.routing import is_read_at_once
from tamias.crawl.reading.sandbox import Sandbox
from tamias.crawl.reading.study import Found, Study, TakeLinks, Wanting, is_small
from tamias.crawl.steps import Steps
from tamias.crawl.visits.contexts import ROUNDS, ContextDesk
from tamias.crawl.visits.pace import Held, NotNow
from tamias.model.capture import Body, Capture
from tamias.model.kind import PROBE, SITEMAP, kind_of
from tamias.model.lease import Task
from tamias.model.seed import TRUSTED
from tamias.seeds.usual_places import kind_there

MOST_NESTED = 3
"""Indexes of sitemaps inside each other."""
_NESTED = "nested-sitemap"

AskContext = Callable[[str], Awaitable[bytes | None]]


class Reader:
    """Reads bodies into segments; links come back, or are put as they are found where there may be many."""

    def __init__(
        self,
        study: Study,
        contexts: ContextDesk,
        shelf: Shelf,
        committer: Committer,
        marker: Marker,
        steps: Steps,
        sandbox: Sandbox | None = None,
        *,
        always_apart: bool = False,
    ) -> None:
        """`sandbox` studies what is large, packed, suspicious or has killed a worker; or everything."""
        self.study = study
        self._sandbox = sandbox
        self._always_apart = always_apart
        self._contexts = contexts
        self._shelf = shelf
        self._committer = committer
        self._marker = marker
        self._steps = steps

    async def read(
        self, capture: Capture, task: Task, held: Held, ask: AskContext
    ) -> tuple[Found, list[Reference]]:
        """Read again as long as it names contexts that nobody has tried. `ask` gets one of the same queue."""
        for _ in range(ROUNDS):
            try:
                return await self._once(capture, task, held)
            except Wanting as wanting:
                await self._contexts.supply(wanting.addresses, task, ask)
        return Found(limit=f"its contexts name each other more than {ROUNDS} times"), []

    async def _once(self, capture: Capture, task: Task, held: Held) -> tuple[Found, list[Reference]]:
        body = capture.body
        assert body is not None
        if self._is_read_at_once(capture, body, task):
            references: list[Reference] = []
            take = self._collect(task, references)
            with self._marker.studying(held.lease, task), self._steps.step("study"):
                found = self.study.study(capture, body, self._shelf.small_document, take, kind_of(task.tags))
            if _is_sitemap(task):
                found.cut |= await aside(partial(self._put_all, references))
                references = []
            return found, references
        async with self._shelf.one_large_at_a_time:
            # What is studied in the sandbox is not to blame for a worker's death.
            marked = nullcontext() if self._sandbox else self._marker.studying(held.lease, task)
            with marked:
                given_up = threading.Event()
                study = partial(self._study_large, capture, task, given_up)
                return await aside(study, given_up.set), []

    def _put_all(self, references: list[Reference]) -> int:
        """What kept links out. For a thread."""
        cut = 0
        for each in references:
            cut |= self._committer.put_now(each)
        return cut

    def _is_read_at_once(self, capture: Capture, body: Body, task: Task) -> bool:
        """Whether a document is read in the event loop, and not in the sandbox or a thread."""
        if self._sandbox is None:
            return is_small(body)
        return not self._always_apart and task.deaths == 0 and is_read_at_once(capture, body)

    def _study_large(self, capture: Capture, task: Task, given_up: threading.Event) -> Found:
        """Links are put as they come, so memory does not grow with the document."""
        assert capture.body is not None
        study = (self._sandbox or self.study).study
        cut = 0

        def put(found: Sequence[str], base: str, kind: str | None) -> None:
            nonlocal cut
            if given_up.is_set():
                raise NotNow
            if found:
                cut |= self._committer.put_now(_reference(found, base, kind, task))

        with self._steps.step("study"):
            found = study(capture, capture.body, self._shelf.large_document, put, kind_of(task.tags))
        found.cut |= cut
        return found

    def _collect(self, task: Task, references: list[Reference]) -> TakeLinks:
        def take(found: Sequence[str], base: str, kind: str | None) -> None:
            if found:
                references.append(_reference(found, base, kind, task))

        return take


def _reference(found: Sequence[str], base: str, kind: str | None, task: Task) -> Reference:
    """Links lead one step deeper; but the sitemaps of an index are the same sitemap in parts."""
    listed = _is_sitemap(task)
    if kind == SITEMAP:
        return msgspec.structs.replace(_parts(found, base, task), listed=listed)
    if task.crawl != WATCH:
        return Reference(found, base, task.depth + 1, task.crawl, kind, listed=listed)
    # What a resource links to is not under watch; what a sitemap lists is, if a user named the sitemap.
    watched = listed and TRUSTED in task.tags
    return Reference(found if watched else (), base, task.depth, task.crawl, kind, listed=listed)


def _is_sitemap(task: Task) -> bool:
    kind = kind_of(task.tags)
    return kind == SITEMAP or (kind == PROBE and kind_there(task.url) == SITEMAP)


def _parts(found: Sequence[str], base: str, task: Task) -> Reference:
    nested = len([tag for tag in task.tags if tag == _NESTED])
    if nested >= MOST_NESTED:
        return Reference((), base, task.depth, task.crawl)
    trusted = (TRUSTED,) if TRUSTED in task.tags else ()
    tags = (_NESTED,) * (nested + 1) + trusted
    return Reference(found, base, task.depth, task.crawl, SITEMAP, tags, FIRST)
