"""A network of one's own: the loopback address of a process and its children, which nobody else can reach.

The SPARQL server listens on a port and asks nobody who he is; on the machine's own loopback every local user
could write to it. In a network namespace there is nobody else, and no way out for a query either.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)


def seclude() -> None:
    """Puts this process, which has one thread only, into a network of its own. Raises `OSError`."""
    owner = os.geteuid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        Path("/proc/self/uid_map").write_text(f"{owner} {owner} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
