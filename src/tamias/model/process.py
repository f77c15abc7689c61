"""The start and end of our processes, and the secrets in their environment."""

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

CREDENTIAL_PREFIX = "TAMIAS_CREDENTIAL_"
"""Variables that the credentials for sources name."""
_SECRET = ("TAMIAS_SECRET", "TAMIAS_TOKEN", "TAMIAS_SMTP_PASSWORD", CREDENTIAL_PREFIX)


def environment_without_secrets() -> dict[str, str]:
    """Return the environment for a child process that neither crawls nor serves."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SECRET)}


def run_within(
    seconds: float, module: str, *words: str, content: bytes = b"", **variables: str
) -> bytes | None:
    """Run a module as a program without our secrets; return what it writes, None if it fails or is late."""
    import subprocess

    environment = environment_without_secrets() | variables
    command = [sys.executable, "-P", "-m", module, *words]
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=seconds, check=False, env=environment
        )
        return done.stdout if done.returncode == 0 else None
    return None


def open_missing_streams() -> None:
    """Open streams that lead nowhere where the process was started without, as by `>&-`.

    Else the next files that it opens would have their numbers, and be taken for streams by its own processes.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, closefd=False, encoding="utf-8"))  # noqa: SIM115


def end_process(code: int) -> NoReturn:
    """End this process as `sys.exit` would, but let the system take back what its modules hold.

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
    """Write what was said; a process may have been started without streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
