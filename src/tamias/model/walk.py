"""A walk: the many requests that one address takes which is more than a document (an endpoint, a portal)."""

from collections.abc import Sequence

import msgspec

from tamias.model.finding import Finding
from tamias.model.outcome import Outcome


class Walk(msgspec.Struct, frozen=True, kw_only=True):
    """What a door is told: where to go, and how far an earlier attempt came."""

    url: str
    kind: str
    state: bytes | None = None
    """Of the last step that was kept; None begins anew."""
    bookmark: bytes | None = None
    """What the last complete walk left for this one, such as what it has seen."""
    trusted: bool = False
    """Whether the user named the address: then it may speak for any graph but our own."""


class WalkEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a walk ended. The reason is for people: how much, how complete, and how that is known."""

    outcome: Outcome
    reason: str
    retry: bool = False
    """Whether trying again later can help; it then goes on after the last step that was kept."""
    retry_after_ms: int | None = None
    bookmark: bytes | None = None
    adds: bool = False
    """Whether it brought only what is new: then what earlier walks brought counts as well."""
    complete: bool = False
    """Whether all there is was seen: only then can anything be said to have vanished."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What one page brought, and from where to go on: kept together, or not at all."""

    state: bytes
    findings: Sequence[Finding] = ()
    end: WalkEnd | None = None
    """With the last step."""
