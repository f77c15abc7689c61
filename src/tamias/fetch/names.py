"""The addresses of names, for crawls whose queues are addresses (`frontier.queue = "ip"`)."""

import socket
from functools import lru_cache


@lru_cache(maxsize=65536)
def address_of(name: str) -> str:
    """One IP address of a host, the same for the whole run; the name itself where it has none now."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return name
    return str(found[0][4][0])
