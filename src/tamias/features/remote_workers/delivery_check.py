"""Checks what a worker delivers against what it was lent: nothing that it says is taken on trust."""

from collections.abc import Sequence

import msgspec

from tamias.crawl.plan.admit import Admission, Reference
from tamias.features.remote_workers.wire import DeliveredVisit
from tamias.frontier.keys import shared_key
from tamias.model.capture import Capture
from tamias.model.errors import UsageError
from tamias.model.item import TRUSTED, Item
from tamias.model.kind import CONTEXT, ROBOTS, kind_of, kind_tag
from tamias.model.lease import Lease, Task, Unreachable
from tamias.permit.delay import LONGEST_WAIT_MS

CLOCK_MS = 60_000
"""Milliseconds by which the clock of a worker may be ahead."""
MOST_PROBLEMS = 100
LONGEST_PROBLEM = 1000
MOST_RENAMED = 1000


class Untrue(UsageError):
    """A worker says something that it has no right to say."""


class DeliveryCheck:
    """Checks the words of workers of one crawl."""

    def __init__(self, admission: Admission, crawl: int) -> None:
        self._admission = admission
        self._crawl = crawl

    def visit(self, delivered: DeliveredVisit, task: Task, now: int) -> DeliveredVisit:
        """Return what may be committed of a visit to a URL that was lent. Raises `Untrue`."""
        if delivered.is_context and kind_of(task.tags) not in (CONTEXT, ROBOTS):
            raise Untrue(f"{task.url} was not lent as a context")
        self._check_capture(delivered.capture, delivered.lease, task, now)
        for each in delivered.references:
            self.links(each, task)
        found = delivered.found
        found.problems = [each[:LONGEST_PROBLEM] for each in found.problems[:MOST_PROBLEMS]]
        found.renamed_graphs = found.renamed_graphs[:MOST_RENAMED]
        return msgspec.structs.replace(
            delivered,
            task=task,
            items=self.items(delivered.items),
            delay_ms=min(max(0, delivered.delay_ms), LONGEST_WAIT_MS),
            blocked_until=until(delivered.blocked_until, now),
            due=until(delivered.due, now),
            news=self.news(delivered.news, delivered.lease, now),
        )

    def items(self, items: Sequence[Item]) -> list[Item]:
        """Return items as this crawl would make them. Raises `Untrue`."""
        made = []
        for each in items:
            if each.crawl != self._crawl or each.overwrites or TRUSTED in each.tags:
                raise Untrue(f"{each.url[:200]} is not an item that a worker may put")
            kind = kind_of(each.tags)
            tags = tuple(tag for tag in each.tags if kind is None or tag != kind_tag(kind))
            item = self._admission.item(each.url, each.depth, each.crawl, kind, tags=tags, score=each.score)
            day = each.key.removeprefix(item.key)  # that a robots.txt elsewhere is asked for
            if day and not (kind == ROBOTS and day[1:].isdigit()):
                raise Untrue(f"{each.key[:200]} is not the key of {each.url[:200]}")
            made.append(msgspec.structs.replace(item, key=each.key, due=each.due))
        return made

    def links(self, reference: Reference, task: Task | None = None) -> Reference:
        """Return links that are of this crawl, and not nearer than the document. Raises `Untrue`."""
        depth, tags = (task.depth, task.tags) if task else (0, ())
        is_trusted = TRUSTED in reference.tags and TRUSTED not in tags
        if reference.crawl != self._crawl or reference.depth < depth or is_trusted:
            raise Untrue(f"the links of {reference.base[:200]} are not of the crawl that was lent")
        return reference

    def site(self, lease: Lease, crawl: int, authority: str) -> None:
        """Check that a place is of the host and the crawl that were lent. Raises `Untrue`."""
        self.place(authority, lease)
        if crawl != self._crawl:
            raise Untrue(f"the crawl {crawl} was not lent")

    def news(
        self, news: dict[str, Unreachable | None], lease: Lease, now: int
    ) -> dict[str, Unreachable | None]:
        """Return which places of the host cannot be reached. Raises `Untrue`."""
        for place in news:
            self.place(place, lease)
        return {
            place: each and msgspec.structs.replace(each, next_at=min(each.next_at, now + LONGEST_WAIT_MS))
            for place, each in news.items()
        }

    def _check_capture(self, capture: Capture, lease: Lease, task: Task, now: int) -> None:
        if capture.url != task.url:
            raise Untrue(f"{task.url} was lent, and not {capture.url[:200]}")
        if not capture.started_at <= capture.ended_at <= now + CLOCK_MS:
            raise Untrue(f"the visit to {task.url} ended in the future")
        for hop in capture.hops:
            if hop.url != task.url:
                self.place(hop.url, lease, task.url)

    def place(self, url: str, lease: Lease, lent: str | None = None) -> None:
        """Check that a URL is of the host that was lent. Raises `Untrue`.

        A queue that a client named holds URLs of any host: there the host of the lent URL counts.
        """
        queue = self._admission.queue
        if queue(url) not in {shared_key(lease.host), lent and queue(lent)}:
            raise Untrue(f"{url[:200]} is not of the host that was lent, {lease.host}")


def until(moment: int | None, now: int) -> int | None:
    """Return a time that is not too far ahead."""
    return None if moment is None else min(moment, now + LONGEST_WAIT_MS)
