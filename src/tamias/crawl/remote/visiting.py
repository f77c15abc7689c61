"""The path of one URL through a worker without a database: result, packed, handed over to be delivered."""

import logging
from collections.abc import Callable

import msgspec

from tamias.crawl.admit import Admission
from tamias.crawl.held_lease import Apart, HeldLease, NotNow
from tamias.crawl.remote.client import bare
from tamias.crawl.remote.delivery_queue import DeliveryQueue
from tamias.crawl.remote.quad_spool import QuadSpool
from tamias.crawl.remote.wire import DeliveredVisit
from tamias.crawl.visit.runner import VisitResult, VisitRunner
from tamias.model.capture import Body, Capture
from tamias.model.errors import TamiasError
from tamias.model.item import Item
from tamias.model.lease import Task
from tamias.model.outcome import Outcome
from tamias.model.url import without_password

_log = logging.getLogger(__name__)


class FarVisitor:
    """Works through leases, one URL after another. What is result is judged at the service."""

    def __init__(
        self,
        runner: VisitRunner,
        admission: Admission,
        post: DeliveryQueue,
        shelf: QuadSpool,
        now: Callable[[], int],
        *,
        all_links: bool,
    ) -> None:
        """`all_links`: also those that are known are delivered."""
        self._all_links = all_links
        self._runner = runner
        self._admission = admission
        self._post = post
        self._shelf = shelf
        self._now = now

    async def work(self, held: HeldLease) -> None:
        """Visits the lease's URLs until they are done, the lease is over, or the host wants a pause."""
        for task in held.lease.tasks:
            if held.over or held.blocked_until is not None:
                break
            try:
                result = await self._see(task, held)
            except NotNow:
                break
            if result.capture.retry_after_ms is not None:
                held.blocked_until = self._now() + result.capture.retry_after_ms
            links = [] if self._all_links else self._narrow(result)
            packet = self._shelf.take(result.found.extent)
            await self._post.add(self._brought(result, task, held), packet, links)
        self._post.release(held)

    async def _see(self, task: Task, held: HeldLease) -> VisitResult:
        try:
            result = await self._runner.run(task, held)
            return result if result.later is None else await result.later(Apart())
        except (TamiasError, NotNow):
            raise
        except Exception as error:  # noqa: BLE001 (the last line of defence)
            _log.exception("visit of %s", without_password(task.url))
            reason = f"internal error: {type(error).__name__}: {error}"
            return VisitResult(self._runner.unasked(task.url, Outcome.FAILED, reason))

    def _narrow(self, result: VisitResult) -> list[Item]:
        """Takes out what the filters refuse and what is known; returns what will be known by this visit."""
        admitted = [self._admission.admit(each) for each in result.references]
        fresh = [items for items, _ in admitted]
        for _, cut in admitted:
            result.found.cut |= cut
        result.references = [
            msgspec.structs.replace(reference, references=[item.url for item in items])
            for reference, items in zip(result.references, fresh, strict=True)
            if items
        ]
        return [item for items in fresh for item in items]

    def _brought(self, result: VisitResult, task: Task, held: HeldLease) -> DeliveredVisit:
        granted, held.granted = held.granted, None
        found = msgspec.structs.replace(result.found, extent=None)
        return DeliveredVisit(
            lease=bare(held.lease),
            task=task,
            capture=_without_bytes(result.capture),
            found=found,
            references=result.references,
            items=result.items,
            put_off=result.put_off,
            is_context=result.is_context,
            context=result.context,
            delay_ms=held.delay_ms,
            blocked_until=held.blocked_until,
            granted=granted,
            due=result.due,
            news=dict(held.news),
        )


def _without_bytes(capture: Capture) -> Capture:
    if capture.body is None:
        return capture
    body = Body(size=capture.body.size, sha256=capture.body.sha256)
    return msgspec.structs.replace(capture, body=body)
