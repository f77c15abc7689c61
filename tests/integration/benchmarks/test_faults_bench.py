"""The fault experiments: small runs of three of them, and proof that they would notice what they look for."""

import asyncio
import random
from collections import Counter

import pytest

from benchmarks.faults.evidence import ArchiveEvidence
from benchmarks.faults.experiment import ExperimentSetup, Result
from benchmarks.faults.experiments.network.bad_network import _hasty
from benchmarks.faults.inside import asking_for, begin
from benchmarks.faults.run import EXPERIMENTS, chosen, run
from benchmarks.faults.scorecard import ScorecardRow, page
from benchmarks.faults.soak.gauges import Gauge, Gauges
from benchmarks.faults.soak.invariants import SoakStatus, compared, unseen
from benchmarks.faults.soak.web import Showing
from benchmarks.webs.proxy import ConnectionFault, Proxy, to_port
from benchmarks.webs.sites import ServedRequest, gaps, most_at_once, waits
from tamias.model.errors import UsageError

SMALL = 0.01


@pytest.mark.parametrize("name", ["bad-network", "blob-flipped", "two-supervisors", "sandbox-escape"])
def test_a_small_run_of_an_experiment_comes_to_what_is_promised(name):
    (told,) = run([name], share=SMALL, out=lambda _: None)["experiments"]
    assert told["result"]["ok"], told["result"]["figure"]


def test_an_experiment_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match="there is no experiment 'F99'; there are: F1 worker-killed, F2"):
        chosen(["F99"])


def test_experiments_are_known_by_number_and_by_name():
    assert chosen(["f8"]) == chosen(["frozen"])
    assert len(chosen([])) == len(EXPERIMENTS) == len({each.number for each in EXPERIMENTS})


def evidence(**versions):
    return ArchiveEvidence(
        versions=versions, visited=Counter({url: len(each) for url, each in versions.items()}), damages=[]
    )


def test_evidence_tells_lost_doubled_and_wrong_versions():
    truth = {"a": b"a", "b": b"b"}
    right = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    found = evidence(a=[right, right], c=["other"])
    assert (found.lost(truth), found.doubled(), found.twice(), found.wrong(truth)) == (1, 1, 1, 1)
    sound = evidence(a=[right])
    assert (sound.lost({"a": b"a"}), sound.doubled(), sound.twice(), sound.wrong(truth)) == (0, 0, 0, 0)


def visit(at, ended=None, **more):
    return ServedRequest(host="h", path="/", agent="", at=at, ended=ended or at, **more)


def test_a_server_log_tells_gaps_and_requests_at_once():
    assert gaps([visit(1.0), visit(1.4), visit(3.4)]) == pytest.approx([0.4, 2.0])
    assert waits([visit(1.0, 1.3, sent=1.2), visit(2.2, sent=2.5), visit(2.4)]) == pytest.approx([1.0, -0.1])
    assert most_at_once([visit(1, 3), visit(2, 4), visit(4, 5)]) == 2
    assert most_at_once([visit(1, 2), visit(2, 3)]) == 1


def test_a_request_before_retry_after_is_over_is_noticed():
    assert _hasty([visit(1, retry_after=2), visit(2.5)]) == (1, 1)
    assert _hasty([visit(1, retry_after=2), visit(3.5)]) == (1, 0)


@pytest.mark.parametrize(
    ("trouble", "came"),
    [
        (ConnectionFault(), b"0123456789"),
        (ConnectionFault(cut_after=4), b"0123"),
        (ConnectionFault(bytes_per_second=1000), b"0123456789"),
        (ConnectionFault(reset_after=4), ConnectionResetError),
        (ConnectionFault(silent_after=4), TimeoutError),
    ],
)
def test_a_proxy_breaks_a_connection_as_it_is_told(trouble, came):
    assert asyncio.run(through(trouble)) == came


async def through(trouble):
    """What comes of ten bytes on their way through a proxy."""

    async def give(_, writer):
        writer.write(b"0123456789")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(give, "127.0.0.1", 0)
    proxy = Proxy(["127.0.0.1"], to_port(server.sockets[0].getsockname()[1]), lambda: trouble)
    await proxy.open()
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        return await asyncio.wait_for(reader.read(100) if trouble == ConnectionFault() else whole(reader), 1)
    except (ConnectionResetError, TimeoutError) as error:
        return type(error)
    finally:
        writer.close()
        await proxy.close()
        server.close()


async def whole(reader):
    came = b""
    while piece := await reader.read(100):
        came += piece
    return came


def test_a_process_breaks_nothing_unless_it_is_asked_to(monkeypatch):
    import os
    import time

    before = (os.write, os.fsync, time.time)
    monkeypatch.delenv("TAMIAS_BENCH_INSIDE", raising=False)
    begin()
    assert (os.write, os.fsync, time.time) == before
    assert asking_for("clock", "/offset")["TAMIAS_BENCH_INSIDE"] == "clock\n/offset"


def test_the_soak_notices_versions_lost_doubled_and_invented():
    found = compared({"u": ["a", "a", "x"]}, {Showing("u", "b")}, {"u": {"a", "b"}})
    assert found == {"lost": 1, "doubled": 1, "invented": 1}
    assert SoakStatus(**found, early=2, at_once=2).breaches == [
        "1 versions lost",
        "1 versions doubled",
        "1 versions that nobody served",
        "2 requests before the delay was over",
        "2 requests at once to one host, instead of one",
    ]
    assert SoakStatus(at_once=1).breaches == []


def test_the_soak_knows_which_states_were_sent_and_not_kept():
    assert unseen({"u": ["a"]}, {"u": {"a": 1, "b": 2}}) == [("u", 2)]


def test_memory_that_grows_in_the_last_half_is_told_from_memory_that_varies():
    noise, gauges = random.Random(1), Gauges()
    for second in range(0, 600, 10):
        gauges.looks["leaking"].append(Gauge(second, 100 + second / 10, 20))
        gauges.looks["hoarding"].append(Gauge(second, 100, 20 + second // 20))
        gauges.looks["steady"].append(Gauge(second, 100 + noise.uniform(-8, 8), 20 + noise.randrange(3)))
    assert {name: growth.is_flat for name, growth in gauges.growths(300).items()} == {
        "leaking": False,
        "hoarding": False,
        "steady": True,
    }


def test_the_scorecard_has_a_row_for_every_result_and_says_what_is_not_promised():
    rows = [
        ScorecardRow(
            number="F1",
            name="one",
            fault="a | b",
            promise="none lost",
            result=Result(ok=True, figure="0 lost"),
        ),
        ScorecardRow(number="F2", name="two", fault="c", promise="d", result=Result(figure="takes root")),
    ]
    text = page(rows, 0.3, None)
    assert "| F1 `one` | a / b | none lost | 0 lost | pass |" in text
    assert "| F2 `two` | c | d | takes root | skipped |" in text
    assert "## What Tamias does not promise" in text


def test_sizes_shrink_but_not_below_what_still_means_something(tmp_path):
    assert ExperimentSetup(folder=tmp_path, share=0.1).of(200, 5) == 20
    assert ExperimentSetup(folder=tmp_path, share=0.1).of(20, 5) == 5
