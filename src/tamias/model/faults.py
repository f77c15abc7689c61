"""Places where a test lets a process die as by `kill -9`: `reached("name")` along the path of what must last.

`TAMIAS_FAULT=name:3` kills a process when it gets there for the third time (`name` alone: the first).
"""

import os
import signal
import threading

from tamias.model.errors import ConfigError

VARIABLE = "TAMIAS_FAULT"
_STDERR = 2


def reached(place: str) -> None:
    """End the process here if a test asked for it."""
    if _fault is not None:
        _fault.met(place)


def refuse_faults(what: str) -> None:
    """Raise `ConfigError` when faults are to be injected into something that others rely on."""
    if _fault is not None:
        raise ConfigError(f"{VARIABLE} is set: it is for tests, and kills processes; unset it to {what}")


class Fault:
    """A place, and how often a process gets there before it dies."""

    def __init__(self, text: str) -> None:
        self.place, colon, times = text.partition(":")
        self._left = int(times) if times.isdecimal() else 0 if colon else 1
        if not self.place or self._left < 1:
            raise ConfigError(f"{VARIABLE} is {text!r}; write the name of a place, or NAME:TIMES")
        self._lock = threading.Lock()

    def met(self, place: str) -> None:
        """Dies if it is the place and the time; says so first, for whoever reads what the process said."""
        if place != self.place:
            return
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                os.write(_STDERR, f"{VARIABLE}: killed at {place}\n".encode())
                os.kill(os.getpid(), signal.SIGKILL)


_fault = Fault(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None
