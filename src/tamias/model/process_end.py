"""How our processes end when their work is done."""

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """Ends this process as `sys.exit` would, but lets the system take back what its modules hold.

    To take them down one by one is a fifth of the processor time of a process that has little else to do.
    """
    with suppress(OSError, ValueError):  # of a stream that is gone: Python's own end says so
        flush_streams()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        flush_streams()
        os._exit(code)
    sys.exit(code)


def flush_streams() -> None:
    """Writes what was said; a process may have been started without streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
