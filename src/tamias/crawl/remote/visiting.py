"""The path of one URL through a worker without a database: seen, packed, handed over to be delivered."""

import logging
from collections.abc import Callable

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.held_lease import Apart, Held, NotNow
from tamias.crawl.remote.client import bare
from tamias.crawl.remote.delivery_queue import Post
from tamias.crawl.remote.quad_spool import ScratchShelf
from tamias.crawl.remote.wire import Brought
from tamias.crawl.visit.runner import Seen, Sight
from tamias.model.capture import Body, Capture
from tamias.model.errors import TamiasError
from tamias.model.item import Item
from tamias.model.lease import Task
from tamias.model.outcome import Outcome
from tamias.model.url import without_password

_log = logging.getLogger(__name__)


class FarVisitor:
    """Works through leases, one URL after another. What is seen is judged at the service."""

    def __init__(
        self,
        sight: Sight,
        admission: Admission,
        post: Post,
        shelf: ScratchShelf,
        now: Callable[[], int],
        *,
        all_links: bool,
    ) -> None:
        """`all_links`: also those that are known are delivered."""
        self._all_links = all_links
        self._sight = sight
        self._admission = admission
        self._post = post
        self._shelf = shelf
        self._now = now

    async def work(self, held: Held) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None:
                break
            try:
                seen = await self._see(task, held)
            except NotNow:
                break
            if seen.capture.retry_after_ms is not None:
                held.blocked_until = self._now() + seen.capture.retry_after_ms
            links = [] if self._all_links else self._narrow(seen)
            packet = self._shelf.take(seen.found.extent)
            await self._post.add(self._brought(seen, task, held), packet, links)
        self._post.release(held)

    async def _see(self, task: Task, held: Held) -> Seen:
        try:
            seen = await self._sight.see(task, held)
            return seen if seen.later is None else await seen.later(Apart())
        except (TamiasError, NotNow):
            raise
        except Exception as error:  # noqa: BLE001 (the last line of defence)
            _log.exception("visit of %s", without_password(task.url))
            reason = f"internal error: {type(error).__name__}: {error}"
            return Seen(self._sight.unasked(task.url, Outcome.FAILED, reason))

    def _narrow(self, seen: Seen) -> list[Item]:
        """Takes out what the filters refuse and what is known; returns what will be known by this visit."""
        admitted = [self._admission.admit(each) for each in seen.references]
        fresh = [items for items, _ in admitted]
        for _, cut in admitted:
            seen.found.cut |= cut
        seen.references = [
            msgspec.structs.replace(reference, references=[item.url for item in items])
            for reference, items in zip(seen.references, fresh, strict=True)
            if items
        ]
        return [item for items in fresh for item in items]

    def _brought(self, seen: Seen, task: Task, held: Held) -> Brought:
        granted, held.granted = held.granted, None
        found = msgspec.structs.replace(seen.found, extent=None)
        return Brought(
            lease=bare(held.lease),
            task=task,
            capture=_without_bytes(seen.capture),
            found=found,
            references=seen.references,
            items=seen.items,
            put_off=seen.put_off,
            is_context=seen.is_context,
            context=seen.context,
            delay_ms=held.delay_ms,
            blocked_until=held.blocked_until,
            granted=granted,
            due=seen.due,
            news=dict(held.news),
        )


def _without_bytes(capture: Capture) -> Capture:
    if capture.body is None:
        return capture
    body = Body(size=capture.body.size, sha256=capture.body.sha256)
    return msgspec.structs.replace(capture, body=body)
