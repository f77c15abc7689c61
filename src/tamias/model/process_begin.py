"""How our processes begin."""

import os
import sys


def open_missing_streams() -> None:
    """A process may be started without streams, as by `>&-`: they lead nowhere then.

    Else the next files that it opens would have their numbers, and be taken for streams by its own processes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115
