"""The fault experiments: small runs of three of them, and proof that they would notice what they look for."""

import asyncio
from collections import Counter

import pytest

from benchmarks.faults.experiment import ArchiveEvidence, ExperimentSetup, Result
from benchmarks.faults.experiments.by_tests import by_tests
from benchmarks.faults.experiments.network import _hasty
from benchmarks.faults.inside import asking_for, begin
from benchmarks.faults.run import EXPERIMENTS, ScorecardRow, chosen, page, run
from benchmarks.webs.proxy import ConnectionFault, Proxy, to_port
from benchmarks.webs.sites import ServedRequest, gaps, most_at_once, waits
from tamias.model.errors import UsageError

SMALL = 0.01
LONGER = ("bad-network", "blob-flipped")


@pytest.mark.parametrize(
    "name", ["two-supervisors", *(pytest.param(each, marks=pytest.mark.nightly) for each in LONGER)]
)
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


@pytest.mark.parametrize(("body", "ok", "figure"), [("pass", True, "1 tests passed"),
                                                    ("assert 0", False, "1 tests failed")])  # fmt: skip
def test_a_row_that_is_a_test_says_what_the_test_says(body, ok, figure, tmp_path):
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    result = by_tests(str(tmp_path / "test_it.py"))(ExperimentSetup(folder=tmp_path))
    assert (result.ok, result.figure) == (ok, figure)


def test_the_scorecard_has_a_row_for_every_result():
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


def test_sizes_shrink_but_not_below_what_still_means_something(tmp_path):
    assert ExperimentSetup(folder=tmp_path, share=0.1).of(200, 5) == 20
    assert ExperimentSetup(folder=tmp_path, share=0.1).of(20, 5) == 5
