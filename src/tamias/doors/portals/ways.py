"""Several ways into one portal, tried in turn; the walk's state says which one is being taken."""

from collections.abc import AsyncIterator, Callable, Mapping

import msgspec

from tamias.doors.portals.listing import state_of
from tamias.doors.portals.place import Place
from tamias.model.outcome import Outcome
from tamias.model.walk import Step, Walk, WalkEnd
from tamias.protocols import Door, Guide

Way = Callable[[], AsyncIterator[Step]]


async def in_turn(place: Place, ways: Mapping[str, Way]) -> AsyncIterator[Step]:
    """Takes the first way that brings anything, beginning with the one that the place names.

    A way is left for the next if it ends badly before it brought a dataset; a portal that asked us to wait
    is waited for.
    """
    names = list(ways)
    for name in names[names.index(place.stage) if place.stage in names else 0 :]:
        place.stage = name
        left: WalkEnd | None = None
        async for step in ways[name]():
            if step.end and name != names[-1] and _leads_nowhere(step.end, place):
                left = step.end
            else:
                yield _told(step, place)
        if left is None:
            return
        place.note = "; ".join(filter(None, [place.note, _reason(left)]))
        place.restart()
        place.second = False


async def through(door: Door, url: str, kind: str, place: Place, guide: Guide) -> AsyncIterator[Step]:
    """The walk of another door, with its state inside of ours."""
    async for step in door.walk(Walk(url=url, kind=kind, state=place.inner), guide):
        place.inner = step.state
        place.taken += sum(len(getattr(finding, "datasets", ())) for finding in step.findings)
        yield msgspec.structs.replace(step, state=state_of(place))


def _leads_nowhere(end: WalkEnd, place: Place) -> bool:
    return end.outcome is not Outcome.OK and end.retry_after_ms is None and not place.taken


def _reason(end: WalkEnd) -> str:
    if end.outcome is not Outcome.REFUSED:
        return end.reason
    return (
        f"{end.reason}: the portal's robots.txt forbids its API; where its operator permits it, "
        "name the host under `[permit] granted`"
    )


def _told(step: Step, place: Place) -> Step:
    """The step; its end says which ways were left before."""
    if step.end is None:
        return step
    reason = _reason(step.end) if step.end.outcome is Outcome.REFUSED else step.end.reason
    said = f"{reason} (before that: {place.note})" if place.note else reason
    return msgspec.structs.replace(step, end=msgspec.structs.replace(step.end, reason=said[:4000]))
