"""Starts a keeper: a process that outlives whoever starts it, and says one line when it is ready."""

import os
import subprocess
import sys
from pathlib import Path

from tamias.database.disk import private

LONGEST_LINE = 64 * 1024


def start_keeper(module: str, *words: str, folder: Path, log: Path) -> tuple[int, bytes]:
    """Runs `python -m MODULE WORDS... DESCRIPTOR` in the folder, until its first process has made another.

    Returns how that first one ended, and the line that was written to the descriptor.
    """
    log.parent.mkdir(mode=0o700, exist_ok=True)
    reading, writing = os.pipe()
    with open(log, "ab", opener=private) as said, os.fdopen(reading, "rb") as answer:
        # A session of its own: a terminal's Ctrl-C must not reach it.
        first = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *words, str(writing)],
            pass_fds=[writing],
            start_new_session=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        os.close(writing)
        try:
            told = answer.readline(LONGEST_LINE)
        except BaseException:  # Ctrl-C: if it has made no other process yet, it is not to do so now
            first.terminate()
            first.wait()
            raise
    return first.wait(), told
