"""One request at a time to a queue, and never before its delay is over, by this machine's own clock."""

import asyncio
import time

from tamias.model.lease import Lease


class Held:
    """A lease in the hands of this worker: paced, and given up in time."""

    def __init__(self, lease: Lease, asked_at: float, seconds: float) -> None:
        """`asked_at`: the monotonic time before the frontier was asked, so the deadline errs safely."""
        self.lease = lease
        self.delay_ms = lease.delay_ms
        self.blocked_until: int | None = None
        self.task: asyncio.Task[None] | None = None
        self._deadline = asked_at + seconds * 0.9
        self._free_at = 0.0

    @property
    def over(self) -> bool:
        """Whether the host may not be touched any more."""
        return time.monotonic() >= self._deadline

    def renewed(self, lease: Lease, asked_at: float, seconds: float) -> None:
        """The lease goes on."""
        self.lease = lease
        self._deadline = asked_at + seconds * 0.9

    async def turn(self) -> None:
        """Waits until the host may be asked again; the delay runs from the end of the last request."""
        wait = self._free_at - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)

    def asked(self) -> None:
        """A request to the host just ended."""
        self._free_at = time.monotonic() + self.delay_ms / 1000
