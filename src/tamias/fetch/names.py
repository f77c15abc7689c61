"""Names and addresses: what it means that a name does not resolve; one address of a host for a while."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from time import monotonic

from tamias.fetch.verdict import Verdict, failed
from tamias.model.capture import Unreached

ADDRESS_SECONDS = 3600.0
"""So long a host keeps its address."""
_LONGEST_SECONDS = 5.0
_THREADS = 4
_NO_SUCH = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
"""The name service says that there is no such name, or that it has no address; trouble is `EAI_AGAIN`."""


class NameService:
    """Asks the name service itself why a name was not resolved."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, "names")

    async def verdict(self, name: str) -> Verdict:
        """Return the verdict on a name that curl could not resolve."""
        asking = asyncio.get_running_loop().run_in_executor(self._threads, _error_of, name)
        try:
            code = await asyncio.wait_for(asking, _LONGEST_SECONDS)
        except TimeoutError:
            code = socket.EAI_AGAIN
        if code in _NO_SUCH:
            return failed(f"name does not resolve: {name}", retry=True, unreached=Unreached.NO_NAME)
        return failed(f"name cannot be resolved now: {name}", retry=True, unreached=Unreached.UNKNOWN)

    def close(self) -> None:
        """Does not wait for what is under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _error_of(name: str) -> int:
    """0 if it resolves."""
    try:
        socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return error.errno or socket.EAI_AGAIN
    except (OSError, UnicodeError):
        return socket.EAI_AGAIN
    return 0


def resolve_name(name: str) -> str:
    """Return an IP address of a host, the same in every process; the name itself where it has none now."""
    return _resolve_name(name, int(monotonic() // ADDRESS_SECONDS))


@lru_cache(maxsize=65536)
def _resolve_name(name: str, _period: int) -> str:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return name
    return min(str(each[4][0]) for each in found)
