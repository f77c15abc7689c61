"""The web as a process of its own: prints one JSON line when ready, ends on SIGTERM or when stdin closes."""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tamias.demo.plan import make_plan
from tamias.demo.server import LATENCY, DataWeb


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.webs.smallweb", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same web")
    parser.add_argument("--nodes", type=int, default=12, help="number of hosts")
    parser.add_argument("--resources", type=int, default=20, help="things described on each host")
    parser.add_argument("--links", type=int, default=3, help="links between hosts, for every host")
    parser.add_argument("--port", type=int, default=0, help="0 takes any free one")
    parser.add_argument("--latency", type=float, default=LATENCY, help="seconds before each answer")
    parser.add_argument("--log", type=Path, help="file for one JSON line per request")
    return parser.parse_args()


async def serve(chosen: argparse.Namespace) -> None:
    """Serves until told to end, or until whoever started it is gone."""
    plan = make_plan(chosen.seed, chosen.nodes, chosen.resources, chosen.links)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with DataWeb(plan, chosen.port, latency=chosen.latency, log_file=chosen.log) as web:
        ready = {"port": web.port, "seeds": web.seeds}
        sys.stdout.write(msgspec.json.encode(ready).decode() + "\n")
        sys.stdout.flush()
        threading.Thread(target=watch_stdin, args=(loop, ended.set), daemon=True).start()
        await ended.wait()


def watch_stdin(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """Waits for the end of stdin, which no event loop can do for every sort of file."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):  # the loop is closed already
        loop.call_soon_threadsafe(end)


def main() -> None:
    """Runs on uvloop where it is present."""
    if sys.stdin is None:
        sys.exit("the web ends when its stdin closes, and it was started without one")
    factory = import_module("uvloop").new_event_loop if find_spec("uvloop") else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(options()))


if __name__ == "__main__":
    main()
