"""Sentences that say why a resource is visited when it is. Pure."""

import msgspec

from tamias.cli.console.options import duration
from tamias.model.resource import Resource


class Schedule(msgspec.Struct, frozen=True):
    """Facts about the visits to a resource."""

    visited_at: int | None
    """The last visit that showed whether it changed."""
    tried_at: int | None
    fails: int
    """Visits in a row without a usable answer."""
    trouble: str | None = None
    """Why the latest visit brought nothing, if so."""
    every: int | None = None
    """Milliseconds between visits, where the user said so."""
    priority: float | None = None
    """What the user says it is worth, compared with 1."""
    missed: int = 0
    """Versions that probably nobody saw, between two visits."""


def reason(resource: Resource, schedule: Schedule) -> str:
    """Sentences that say what the next visit follows from."""
    if resource.state == "stopped":
        return "It is not watched any more. Its versions are kept."
    missed = f"About {schedule.missed:,} versions were probably missed between visits."
    sentences = [_of_attempts(schedule), _of_rate(resource), _of_interval(resource, schedule)]
    sentences.insert(2, missed if schedule.missed else "")
    if resource.state == "gone":
        sentences[0] = "Its server says that it is gone. It is still checked from time to time."
    return " ".join(each for each in sentences if each)


def _of_attempts(schedule: Schedule) -> str:
    if schedule.fails:
        last = "visit" if schedule.fails == 1 else f"{schedule.fails} visits"
        return f"The last {last} gave no usable answer."
    if schedule.visited_at is None:
        return "It has not been visited yet. The first visit comes as soon as politeness allows."
    return ""


def _of_rate(resource: Resource) -> str:
    if not resource.change_rate or not resource.versions:
        return ""
    every = duration(86_400 / resource.change_rate)
    if resource.versions == 1:
        return f"It has not changed so far. A change is expected about every {every}."
    return f"It changes about {resource.change_rate:.2g} times a day, that is every {every}."


def _of_interval(resource: Resource, schedule: Schedule) -> str:
    last = schedule.tried_at if schedule.fails else schedule.visited_at
    if resource.next_visit is None or last is None or resource.next_visit <= last:
        return ""
    return f"The next visit is {duration((resource.next_visit - last) / 1000)} after the last."
