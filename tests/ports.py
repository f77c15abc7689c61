"""Ports for servers that tests start: nobody is given them before the server has begun to listen."""

import random
import socket

_FIRST, _LAST = 20_000, 32_767
"""Below those that systems give to whoever asks for any."""


def free_port():
    """A port of the loopback address where nobody listens."""
    while True:
        port = random.SystemRandom().randint(_FIRST, _LAST)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
