"""What has been seen so far of a capture in the making."""

import asyncio
from collections.abc import Awaitable

import msgspec

from tamias.fetch.verdict import Verdict
from tamias.model.capture import Body, Capture, Hop, Request


class Attempt(msgspec.Struct, kw_only=True):
    """One attempt on one address."""

    request: Request
    started_at: int
    seconds_left: float
    hops: list[Hop] = msgspec.field(default_factory=list)
    wire_bytes: int = 0

    async def timed(self, asking: Awaitable[tuple[int, str]]) -> tuple[int, str]:
        """The code and message that it ends with; its time is taken from what is left."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        ending = await asking
        self.seconds_left -= loop.time() - begun
        return ending

    def leads_to(self, target: str) -> None:
        """Notes where the last answer sends us."""
        self.hops[-1] = msgspec.structs.replace(self.hops[-1], location=target)

    def captured(
        self, verdict: Verdict, body: Body | None, ended_at: int, *, url: str, pause: int | None = None
    ) -> Capture:
        """The capture; `pause` is how long the server asked us to stay away, in milliseconds."""
        return Capture(
            url=url,
            started_at=self.started_at,
            ended_at=ended_at,
            outcome=verdict.outcome,
            reason=verdict.reason,
            hops=tuple(self.hops),
            body=body,
            retry=verdict.retry,
            retry_after_ms=pause,
            wire_bytes=self.wire_bytes,
            cut=verdict.cut,
            unreached=None if self.hops else verdict.unreached,
        )
