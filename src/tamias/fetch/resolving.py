"""Names and addresses: what it means that a name does not resolve; one address of a host for a whole run."""

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from time import monotonic

from tamias.fetch.verdict import Verdict, failed
from tamias.model.capture import Unreached

TRUSTED_SECONDS = 60.0
"""A name service that resolved another name so lately is believed when it says that one does not exist."""
CACHED_SECONDS = 300.0
"""A name that was resolved so long ago may come from curl's memory, which proves nothing."""
_LONGEST_SECONDS = 5.0
_REMEMBERED = 10_000
_THREADS = 4


class NameService:
    """Remembers when names were resolved, and asks the name service itself why one was not."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "names")
        self._resolved: dict[str, float] = {}
        self._proven_at = float("-inf")

    def resolved(self, name: str) -> None:
        """A connection was opened to an address of the name."""
        if _is_address(name):
            return
        now = monotonic()
        if now - self._resolved.get(name, float("-inf")) > CACHED_SECONDS:
            if len(self._resolved) >= _REMEMBERED:
                self._resolved.clear()
            self._resolved[name] = self._proven_at = now

    async def verdict(self, name: str) -> Verdict:
        """On a name that curl could not resolve."""
        code = await self._ask(name)
        if code != socket.EAI_NONAME:
            return failed(f"name cannot be resolved now: {name}", retry=True, unreached=Unreached.UNKNOWN)
        proven = await self._is_proven()
        return failed(
            f"name does not resolve: {name}",
            retry=True,
            unreached=Unreached.DEFINITE if proven else Unreached.DOUBTFUL,
        )

    def close(self) -> None:
        """Does not wait for what is under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _is_proven(self) -> bool:
        """Whether the name service resolves other names these days; asks for the latest one if need be."""
        if monotonic() - self._proven_at <= TRUSTED_SECONDS:
            return True
        proven = bool(self._resolved) and await self._ask(next(reversed(self._resolved))) == 0
        self._proven_at = monotonic() if proven else self._proven_at
        return proven

    async def _ask(self, name: str) -> int:
        asking = asyncio.get_running_loop().run_in_executor(self._threads, _error_of, name)
        try:
            return await asyncio.wait_for(asking, _LONGEST_SECONDS)
        except TimeoutError:
            return socket.EAI_AGAIN


def _error_of(name: str) -> int:
    """0 if it resolves."""
    try:
        socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        # No address of the kind that was asked for (NODATA) is an answer as clear as no such name.
        return socket.EAI_NONAME if error.errno in _NO_SUCH else error.errno or socket.EAI_AGAIN
    except (OSError, UnicodeError):
        return socket.EAI_AGAIN
    return 0


_NO_SUCH = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@lru_cache(maxsize=65536)
def address_of(name: str) -> str:
    """One IP address of a host, the same for the whole run; the name itself where it has none now."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return name
    return str(found[0][4][0])
