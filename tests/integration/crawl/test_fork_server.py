"""Workers as forks of one process: how they end is told, whenever that is."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tamias.crawl.worker.fork_server import DATABASE_WORKER, ForkServer
from tests.messages import unsaid


@pytest.fixture
def server():
    made = ForkServer(DATABASE_WORKER)
    yield made
    made.close()


def forks_of(server):
    pid = server._process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_forks(server, count):
    """While nothing else happens in this process."""
    deadline = time.monotonic() + 60
    while len(found := forks_of(server)) != count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def is_alive(pid):
    """Whether it runs: one that nobody has reaped yet has ended."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def end_of(process):
    """Its exit code."""
    code = await process.wait()
    process.close()
    await asyncio.sleep(0)
    return code


def test_a_worker_that_is_told_nothing_ends_in_order(server):
    async def run():
        process = await server.fork()
        process.stdin.close()
        assert await process.stdout.read() == b""
        return await end_of(process)

    assert asyncio.run(run()) == 0


def test_a_worker_that_cannot_work_says_so_and_ends_with_its_exit_code(server, tmp_path):
    async def run():
        process = await server.fork()
        plan = {"data": str(tmp_path), "db": "mysql://nobody@127.0.0.1:1/none", "settings": {}}
        process.stdin.write(json.dumps(plan).encode() + b"\n")
        told = json.loads((await process.stdout.read()).splitlines()[-1])
        return told, await end_of(process)

    told, code = asyncio.run(run())
    assert not unsaid(told["error"], "--db")
    assert code == told["exit_code"] == 1


def test_a_worker_killed_before_anybody_knows_of_it_is_told_as_killed(server):
    async def run():
        forking = [asyncio.create_task(server.fork()) for _ in range(3)]
        await asyncio.sleep(0)
        for pid in wait_for_forks(server, 3):
            os.kill(pid, signal.SIGKILL)
        wait_for_forks(server, 0)  # so that both messages wait to be read
        return [await end_of(await each) for each in forking]

    assert asyncio.run(run()) == [-signal.SIGKILL] * 3


def test_workers_outlive_their_server_and_the_next_one_starts_anew(server):
    async def run():
        first, other = await server.fork(), await server.fork()
        pids = forks_of(server)
        asked = asyncio.create_task(server.fork())
        await asyncio.sleep(0)
        server._process.kill()
        with suppress(ChildProcessError):  # unless it was forked in the moment before
            (await asked).close()
        second = await server.fork()
        assert [pid for pid in pids if is_alive(pid)] == pids
        other.kill()
        assert await end_of(other) == -signal.SIGKILL
        first.stdin.close()
        assert await first.stdout.read() == b""
        assert await end_of(first) == -signal.SIGKILL  # nobody knows better
        second.stdin.close()
        return await end_of(second)

    assert asyncio.run(run()) == 0


FORK = """
import asyncio, sys
from tamias.crawl.worker.fork_server import ForkServer
from tamias.crawl.worker.worker import run_process

async def run(server):
    process = await server.fork()
    process.stdin.write(b"plan")
    process.stdin.close()
    told, code = await process.stdout.read(), await process.wait()
    process.close()
    print(type(server._process).__name__, told, code)

def serve():
    {serve}

sys.stdin.readline()
print("begun")
server = ForkServer("tamias.crawl.worker")
server.start_as_fork(serve)
try:
    asyncio.run(run(server))
finally:
    server.close()
    print("closed")
"""


def run_fork(serve):
    """What a program says whose workers are forks of it; `serve` is the code of the process between."""
    code = FORK.format(serve=serve)
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, input="first\nread ahead\n", capture_output=True, text=True, check=False, timeout=60
    )


def test_a_worker_that_is_a_fork_of_the_program_reads_its_own_plan_and_says_nothing_twice():
    work = "from tamias.crawl.worker.fork_server import is_fork; print(input()) if is_fork() else None"
    done = run_fork(work)
    assert (done.stdout, done.stderr) == ("begun\n_OwnFork b'plan\\n' 1\nclosed\n", "")


def test_a_fork_of_the_program_that_fails_ends_nothing_of_the_program():
    done = run_fork("raise LookupError('no workers today')")
    assert done.stdout == "begun\nclosed\n"
    assert "no workers today" in done.stderr
    assert "ChildProcessError" in done.stderr


def test_a_program_with_threads_is_not_forked(server):
    waiting = threading.Event()
    thread = threading.Thread(target=waiting.wait)
    thread.start()
    try:
        server.start_as_fork(pytest.fail)
        assert isinstance(server._process, subprocess.Popen)
    finally:
        waiting.set()
        thread.join()


def test_it_is_ended_with_its_last_worker_only(server):
    async def run():
        process = await server.fork()
        server.close()
        assert forks_of(server)
        process.kill()
        await end_of(process)

    asyncio.run(run())
    pid = server._process.pid
    server.close()
    assert not Path(f"/proc/{pid}").exists()
