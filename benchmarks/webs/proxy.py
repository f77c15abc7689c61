"""A way between two programs that can be slow, broken, cut off or silent: network faults of our own."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from benchmarks.webs.server import Listeners
from benchmarks.webs.sites import reset

PIECE = 64 * 1024


class ConnectionFault(msgspec.Struct, frozen=True, kw_only=True):
    """What befalls one connection. Bytes are counted from the server to the client."""

    delay: float = 0.0
    """Seconds before anything passes."""
    reset_after: int | None = None
    cut_after: int | None = None
    """The connection ends properly, but too soon."""
    silent_after: int | None = None
    """Half open: nothing passes any more, and nobody is told."""
    bytes_per_second: float | None = None


NO_TROUBLE = ConnectionFault()
Chance = Callable[[], ConnectionFault]
Open = Callable[[str], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to what stands behind; it is given the address that the client came to."""


def to_port(port: int) -> Open:
    """The same address, at another port."""
    return lambda address: asyncio.open_connection(address, port)


def to_socket(path: str) -> Open:
    """A socket in the file system."""
    return lambda _: asyncio.open_unix_connection(path)


class Proxy(Listeners):
    """Takes connections on some addresses at one port and passes bytes on, as well as it is let."""

    def __init__(self, hosts: Sequence[str], behind: Open, chance: Chance = lambda: NO_TROUBLE) -> None:
        super().__init__()
        self._hosts = hosts
        self._behind = behind
        self._chance = chance
        self._whole = asyncio.Event()
        self._whole.set()

    async def open(self) -> None:
        """Listens."""
        for host in self._hosts:
            await self.accept(host, self.port, self._between)

    async def part(self) -> None:
        """Nothing passes any more, in either direction, and no connection is told of it."""
        self._whole.clear()

    async def heal(self) -> None:
        """All that was held back passes now."""
        self._whole.set()

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        trouble = self._chance()
        await asyncio.sleep(trouble.delay)
        await self._whole.wait()
        answers, asking = await self._behind(writer.get_extra_info("sockname")[0])
        ends = [
            asyncio.ensure_future(self._pass(reader, asking, NO_TROUBLE)),
            asyncio.ensure_future(self._pass(answers, writer, trouble)),
        ]
        try:
            await asyncio.wait(ends, return_when="FIRST_COMPLETED")
        finally:
            asking.close()
            for end in ends:
                end.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, trouble: ConnectionFault
    ) -> None:
        ends = (trouble.reset_after, trouble.cut_after, trouble.silent_after)
        passed, most = 0, min((each for each in ends if each is not None), default=None)
        while piece := await source.read(1 if trouble.bytes_per_second else PIECE):
            await self._whole.wait()
            piece = piece if most is None else piece[: most - passed]
            passed += len(piece)
            if target.is_closing():
                return
            target.write(piece)
            await target.drain()
            if trouble.bytes_per_second:
                await asyncio.sleep(len(piece) / trouble.bytes_per_second)
            if most is not None and passed >= most:
                if trouble.silent_after is not None:
                    await asyncio.sleep(3600)
                if trouble.reset_after is not None:
                    reset(target)
                return
        with suppress(OSError):
            if target.can_write_eof():
                target.write_eof()
