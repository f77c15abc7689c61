"""The report of all peers: every peer has a row, whether it ran or not, and ratios of all runs are in it."""

import re
from itertools import count

import pytest

from benchmarks.frontier.grpc.experiment import PHASES, Run
from benchmarks.frontier.grpc.phases import Phase
from benchmarks.report import PEERS, ReportOptions, compared, frontier_ratios, page_lines, repeat, run


def test_every_peer_has_a_row_with_its_ratios_or_the_reason_why_there_are_none():
    rates, rows = count(10, 5), {}
    skipped = [{"name": "wget2", "reason": "it is not installed"}]

    def part():
        found = {"tamias": float(next(rates)), "scrapy": 5.0, "wget -r": 100.0}
        said = dict.fromkeys(found, ("1.0", "as it comes"))
        return compared("pages", "pages per CPU-second", found, said, skipped)

    repeat(rows, 3, part)
    text = "\n".join(page_lines(list(rows.values()), ReportOptions(), "python -m benchmarks report"))
    assert "| scrapy | 3.00 | 2.00 | 4.00 | 1.0 | as it comes |" in text
    assert "| wget2 | | | | | did not run: it is not installed |" in text
    assert "| heritrix | | | | | did not run: it did not run |" in text
    assert re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE) == ["wget -r"]


def test_stored_versions_are_compared_with_git_in_the_same_run(tmp_path):
    page, history = tmp_path / "report.md", tmp_path / "histories" / "prices"
    history.mkdir(parents=True)
    for number in range(1, 5):
        (history / f"{number}.csv").write_bytes(
            b"day,price\n" + b"".join(b"%d,7\n" % day for day in range(number))
        )
    options = ReportOptions(runs=1, pages=(), nodes=0, urls=0, histories=history.parent)
    found = run(options, page, "python -m benchmarks report", out=lambda _: None)
    assert [row["peer"] for row in found["rows"]] == list(PEERS["versions"])
    git = found["rows"][0]
    assert git["ratios"][0] == pytest.approx(1.0, rel=0.9)  # of the same versions
    assert f"| git gc | {git['ratios'][0]:.2f} |" in page.read_text(encoding="utf-8")


def test_without_the_reference_every_phase_of_the_frontier_has_an_empty_row(tmp_path):
    history = tmp_path / "histories" / "prices"
    history.mkdir(parents=True)
    for number in range(1, 3):
        (history / f"{number}.csv").write_bytes(b"day,price\n%d,7\n" % number)
    options = ReportOptions(runs=3, pages=(), nodes=0, histories=history.parent)
    page = tmp_path / "report.md"
    run(options, page, "python -m benchmarks report", out=lambda _: None)
    text = page.read_text(encoding="utf-8")
    for phase in (*PHASES, "memory"):
        assert (
            text.count(
                f"| URLFrontier (Java): {phase} | | | | | did not run: no jar was named (--reference) |\n"
            )
            == 1
        )


def test_the_ratios_of_the_frontier_are_above_1_where_we_are_ahead():
    def phases(speed, cpu):
        return [Phase(name, 10, speed, cpu=cpu) for name in PHASES]

    measured = Run(4000, {"tamias": phases(50.0, 7.2), "reference": phases(100.0, 3.0)},
                   {"tamias": 100 << 20, "reference": 400 << 20}, 200.0, 0.5)  # fmt: skip
    *speeds, memory = frontier_ratios(measured)
    assert [ratio for ratio, _ in speeds] == [0.5] * len(PHASES)
    assert [terms for _, terms in speeds if "syncs" in terms] == [
        "CPU of a URL 7 and 3 µs; 0.25 of the syncs of the disk"
    ]
    assert memory == (4.0, "100 and 400 MiB")
