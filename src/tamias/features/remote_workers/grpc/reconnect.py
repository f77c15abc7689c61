"""The line to the service: opened again when it is lost, with longer and longer pauses between the tries."""

import asyncio
import logging
import random
import ssl
from collections.abc import Iterable

import msgspec

from tamias.features.remote_workers.grpc.channel import CallFailed, Channel
from tamias.model.errors import ConfigError, TamiasError

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
CALL_SECONDS = 60.0
CLOSE_SECONDS = 1.0
_UNAUTHENTICATED = 16
_PASSING = frozenset({1, 2, 4, 8, 14})
"""Statuses that may be gone at the next try: cancelled, unknown, too late, no room, unavailable."""
_log = logging.getLogger(__name__)


class ServiceTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The address of the service, and how to connect to it."""

    address: str
    """Host and port."""
    token: str | None = None
    crawl: str | None = None
    """The name of the crawl to work for."""
    tls: bool = False
    authority: str | None = None
    """A file of certificates to trust instead of the system's."""


class NotReached(Exception):
    """The service did not answer; trying again later can help."""


class HungUp(TamiasError):
    """The client has closed the connection."""


class ReconnectingChannel:
    """Calls of one service. One channel for all of them."""

    def __init__(self, target: ServiceTarget) -> None:
        self._target = target
        self._tls = _context(target)
        self._channel: Channel | None = None
        self._opening = asyncio.Lock()
        self._hung_up = False
        self._away = False

    async def try_once(self, path: str, messages: Iterable[bytes], seconds: float) -> list[bytes]:
        """Return all answers. Raises `NotReached`, or `CallFailed` if the service refuses the call."""
        try:
            async with asyncio.timeout(seconds):
                channel = await self._opened()
                answers = await channel.call(path, messages)
        except TimeoutError:
            self._drop()
            raise self._not_reached(path, f"no answer within {seconds:g} seconds") from None
        except OSError as error:
            raise self._not_reached(path, str(error)) from error
        except CallFailed as error:
            if error.code == _UNAUTHENTICATED:
                raise ConfigError(f"{self._target.address} does not know us: {error}") from error
            if error.code in _PASSING:
                raise self._not_reached(path, str(error)) from error
            raise
        if self._away:
            self._away = False
            _log.warning("%s answers again", self._target.address)
        return answers

    def _not_reached(self, path: str, why: str) -> NotReached:
        """Told once, and again only after it was reached meanwhile."""
        if not self._away and not self._hung_up:
            self._away = True
            _log.warning("%s does not answer %s, trying again: %s", self._target.address, path, why)
        return NotReached(why)

    async def call(self, path: str, messages: Iterable[bytes]) -> list[bytes]:
        """The same, tried until it is answered. Raises `HungUp` once this end has closed the line."""
        pause, sent = FIRST_PAUSE, list(messages)
        while True:
            try:
                return await self.try_once(path, sent, CALL_SECONDS)
            except NotReached:
                await self.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    async def wait(self, pause: float) -> None:
        """Wait a random time before another try, so that workers do not retry together."""
        if self._hung_up:
            raise HungUp("the worker is ending")
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        if self._hung_up:
            raise HungUp("the worker is ending")

    def hang_up(self) -> None:
        """Stop trying; a call under way ends at its next failure."""
        self._hung_up = True

    async def close(self) -> None:
        """Closes the line."""
        self._hung_up = True
        if self._channel is not None:
            await self._channel.close_and_wait(CLOSE_SECONDS)

    async def _opened(self) -> Channel:
        async with self._opening:
            if self._channel is None or self._channel.closed:
                target = self._target
                self._channel = await Channel.open(
                    target.address, token=target.token, crawl=target.crawl, tls=self._tls
                )
            return self._channel

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.abort()
            self._channel = None


def _context(target: ServiceTarget) -> ssl.SSLContext | None:
    if not target.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=target.authority)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot use the certificates in {target.authority}: {error}") from error
    context.set_alpn_protocols(["h2"])
    return context
