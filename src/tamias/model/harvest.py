"""A harvest: the many requests that an address takes which is more than a document (endpoint, portal)."""

from collections.abc import Sequence

import msgspec

from tamias.model.finding import Finding
from tamias.model.outcome import Outcome


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """What a harvester is told: where to go, and how far an earlier attempt came."""

    url: str
    kind: str
    state: bytes | None = None
    """Of the last step that was kept; None begins anew."""
    bookmark: bytes | None = None
    """What the last complete harvest left for this one, such as what it has seen."""
    trusted: bool = False
    """Whether the user named the address: then it may speak for any graph but our own."""


class HarvestEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a harvest ended. The reason is for people: how much, how complete, and how that is known."""

    outcome: Outcome
    reason: str
    retry: bool = False
    """Whether trying again later can help; it then goes on after the last step that was kept."""
    retry_after_ms: int | None = None
    bookmark: bytes | None = None
    adds: bool = False
    """Whether it brought only what is new: then what earlier harvests brought counts as well."""
    complete: bool = False
    """Whether all there is was seen: only then can anything be said to have vanished."""


class HarvestStep(msgspec.Struct, frozen=True, kw_only=True):
    """What one page brought, and from where to go on: kept together, or not at all."""

    state: bytes
    findings: Sequence[Finding] = ()
    end: HarvestEnd | None = None
    """With the last step."""
    earned: float = 0.0
    """Visits that it has earned its host, where the harvester says so itself: see `tamias.permit.traps`."""
