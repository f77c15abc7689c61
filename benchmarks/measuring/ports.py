"""Ports for the servers of benchmarks."""

import os
import socket

from tamias.model.errors import TamiasError

PORTS = range(18_080, 19_200)
"""Below those that the system gives to outgoing connections."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody has; processes look in different places first, for they may look at the same time."""
    found: list[int] = []
    first = os.getpid() * 7 % len(PORTS)
    for port in (*PORTS[first:], *PORTS[:first]):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise TamiasError(f"of the ports {PORTS.start} to {PORTS.stop - 1} fewer than {count} are free")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("", port))
        except OSError:
            return False
    return True
