"""A machine of its own to be attacked on: a network namespace with public addresses, private ones and names.

In it the crawler needs no permission for loopback addresses: what it may not touch is really forbidden to it.
"""

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

from tamias.features.catalogue.store.keeper import seclude
from tamias.model.errors import TamiasError

WEB = "45.66."
"""The network of all sites, good and hostile: public addresses, though here they lead nowhere."""
INSIDE = "10.66.0.1"
"""A private address that only an attack would lead to."""
CANARIES = (INSIDE, "127.0.0.1", "169.254.169.254", "192.168.66.1", "::1", "fd00:ec2::254")
NAME_SERVER = "127.0.0.53"

_CLONE_NEWNS = 0x00020000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_PRIVATE = 1 << 18
_SIOCSIFADDR = 0x8916
_SIOCSIFNETMASK = 0x891C
_NETWORKS = (("45.66.0.1", 16), (INSIDE, 16), ("169.254.169.254", 16), ("192.168.66.1", 24))
_libc = ctypes.CDLL(None, use_errno=True)


def enter(folder: Path) -> None:
    """Puts this process, which has one thread only, there. Raises `TamiasError` where it may not."""
    try:
        seclude()
        _check(_libc.unshare(_CLONE_NEWNS), "unshare")
        _check(_libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "mount")
        _ask_names_of(NAME_SERVER, folder / "resolv.conf")
        for number, (address, prefix) in enumerate(_NETWORKS, 1):
            _add_network(f"lo:{number}", address, prefix)
        _add_address6("fd00:ec2::254")
    except OSError as error:
        raise TamiasError(
            f"no network of its own for the hostile web: {error}; it takes root, or a system that lets"
            " users make namespaces (sysctl kernel.unprivileged_userns_clone, or AppArmor's restriction)"
        ) from error


def _ask_names_of(server: str, file: Path) -> None:
    file.write_text(f"nameserver {server}\noptions timeout:2 attempts:1\n", encoding="ascii")
    _check(_libc.mount(os.fsencode(file), b"/etc/resolv.conf", None, _MS_BIND, None), "mount resolv.conf")


def _add_network(label: str, address: str, prefix: int) -> None:
    """On the loopback device every address of a network is one's own."""
    mask = socket.inet_ntoa(struct.pack(">I", (0xFFFFFFFF << (32 - prefix)) & 0xFFFFFFFF))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request, value in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, mask)):
            request_data = struct.pack(
                "16sHH4s8x", label.encode(), socket.AF_INET, 0, socket.inet_aton(value)
            )
            fcntl.ioctl(any_socket, request, request_data)


def _add_address6(address: str) -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as any_socket:
        index = socket.if_nametoindex("lo")
        request_data = struct.pack("16sIi", socket.inet_pton(socket.AF_INET6, address), 128, index)
        fcntl.ioctl(any_socket, _SIOCSIFADDR, request_data)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
