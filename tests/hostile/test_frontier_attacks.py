"""A hostile client beside a good one: the good one is answered, and the service's memory is bounded."""

import secrets
import sys
import time
from contextlib import closing
from pathlib import Path

import grpc
import pytest
from frontier_client import Client, Instance

from tamias.features.remote_workers.grpc.connection import message
from tests.hostile.frontier_attacks import ATTACKS, attacked

SECONDS = 2.0
"""How long each attack lasts."""
PATIENCE = 60.0
"""Who is locked out waits for ever. How long calls take is measured by `python -m benchmarks faults F22`."""
MOST_MEMORY = 300 << 20


def memory(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise AssertionError("no memory figure")


def forget_peak(pid):
    """Lets the highest figure begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def check_health(channel):
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        message("grpc.health.v1.HealthCheckRequest").SerializeToString,
        message("grpc.health.v1.HealthCheckResponse").FromString,
    )
    return check(message("grpc.health.v1.HealthCheckRequest")(), timeout=PATIENCE).status


class NewConnection(Client):
    """A client that does not share the connection of another: grpcio would."""

    def __init__(self, address):
        super().__init__(address)
        self.channel.close()
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])


def ask_for_a_while(old, address):
    """Every call of a good client, over a connection it has and over a new one; the longest time of each."""
    longest, end, turn = {}, time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        with closing(NewConnection(address)) as new:
            for who, client in (("old", old), ("new", new)):
                turn += 1
                for what, call in {
                    "health": lambda client=client: check_health(client.channel) == 1,
                    "put": lambda client=client, turn=turn: (
                        [ack.status for ack in client.call("PutURLs", item(turn), timeout=PATIENCE)] == [0]
                    ),
                    "stats": lambda client=client: client.call("GetStats", timeout=PATIENCE).size > 0,
                }.items():
                    begun = time.monotonic()
                    assert call(), (who, what)
                    took = time.monotonic() - begun
                    longest[who, what] = max(longest.get((who, what), 0), took)
        time.sleep(0.05)
    return longest


def item(turn):
    made = message("urlfrontier.URLItem")()
    made.discovered.info.url = f"http://h{turn}.example/{secrets.token_hex(8)}"
    return made


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    instance = Instance(tmp_path_factory.mktemp("frontier"))
    yield instance
    instance.kill()


@pytest.mark.parametrize("name", ATTACKS)
def test_a_good_client_is_answered_while_another_attacks(name, service):
    forget_peak(service.process.pid)
    try:
        with closing(Client(service.address)) as good:
            good.call("GetStats")
            with attacked(name, service.port):
                longest = ask_for_a_while(good, service.address)
    except grpc.RpcError as error:
        pytest.fail(f"{error.code()}: {error.details()}")
    used = memory(service.process.pid)
    sys.stdout.write(f"{name}: slowest call {max(longest.values()) * 1000:.0f} ms, memory {used >> 20} MiB\n")
    assert used < MOST_MEMORY
