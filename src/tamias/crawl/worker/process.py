"""The process of a worker: told what to do by one JSON line on stdin, it tells its progress on stdout.

It works until stdin closes: the supervisor does that to end it, and the system when that one is killed.
"""

import asyncio
import ctypes
import errno
import gc
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import NoReturn

import msgspec

from tamias.archive.blobs.packs import StoreUnavailable
from tamias.crawl.store.progress import Progress
from tamias.crawl.worker.fork_server import is_fork
from tamias.crawl.worker.worker import Replaced, Worker
from tamias.database.migrate import migrations
from tamias.model.errors import DatabaseUnavailable, DiskFull, TamiasError
from tamias.model.log_lines import configure_from_environment
from tamias.model.process import end_process
from tamias.model.url import host_key
from tamias.plugins import load_own

_REPLACE_WORKER = 75
"""The exit code that lets a supervisor start another worker."""

_COLLECTED_AFTER = 20_000
"""Objects made and not yet dropped: visits that wait for their commit are many, and never garbage."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""As in `malloc.h`."""
_MOST_FREE_BYTES = 16 << 20
"""At the end of the heap, beyond which they are given back."""
_OWN_MAPPING_BYTES = 4 << 20
"""From this size on a block is mapped by itself."""

Assemble = Callable[[bytes], AbstractAsyncContextManager[Worker]]
"""Makes a worker of what the supervisor says."""


def run_process(assemble: Assemble) -> NoReturn:
    """Serves forks; each runs a worker on the fastest event loop there is, and ends with its exit code."""
    try:
        import uvloop

        run: Callable[..., int] = uvloop.run
    except ImportError:
        run = asyncio.run
    load_ahead()
    if not is_fork():
        sys.exit(0)
    configure_from_environment()
    end_process(run(_main(assemble)))


def load_ahead() -> None:
    """Load what every fork would load, while the database is ready and nothing is fetched yet.

    Done again it takes no time.
    """
    load_own("filters", "fetchers", "taggers", "sinks")
    host_key("http://any.example/")  # reads the public suffixes
    migrations()


async def _main(assemble: Assemble) -> int:
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.buffer.readline)
    if not line:
        return 0
    worker: Worker | None = None
    trouble: TamiasError | None = None
    ours = asyncio.current_task()
    assert ours is not None
    loop.add_reader(sys.stdin.fileno(), _at_end_of_stdin, lambda: worker.stop() if worker else ours.cancel())
    try:
        async with assemble(line) as worker:
            _tell(worker.progress())
            _spare_the_collector()
            _keep_freed_memory()
            await worker.run(_tell)
    except Replaced:
        _tell(worker.progress() if worker else Progress())
        return _REPLACE_WORKER
    except asyncio.CancelledError:
        return 0
    except TamiasError as error:
        trouble = error
    except OSError as error:
        trouble = _refused(error)
    end = worker.progress() if worker else Progress()
    if trouble is not None:
        end.error, end.exit_code = str(trouble), trouble.exit_code
        end.retry_can_help = isinstance(trouble, StoreUnavailable | DatabaseUnavailable)
    _tell(end)
    return end.exit_code


def _spare_the_collector() -> None:
    """Exempt imported and assembled objects from garbage collection; they last as long as the process."""
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)


def _keep_freed_memory() -> None:
    """Keep freed memory in the process: returning it for each page costs a fifth of the analysis."""
    with suppress(AttributeError):  # a C library that is not GNU's
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        allocator.mallopt(_M_TRIM_THRESHOLD, _MOST_FREE_BYTES)


def _at_end_of_stdin(stop: Callable[[], object]) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop()


def _tell(progress: Progress) -> None:
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(progress) + b"\n")


def _refused(error: OSError) -> TamiasError:
    place = error.filename or "the worker's folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no disk space left for {place}; free some space and continue")
    return TamiasError(f"cannot work with {place}: {error.strerror or error}")
