"""The report of all peers: every peer has a row, whether it ran or not, and ratios of all runs are in it."""

import re
from itertools import count

import pytest

from benchmarks.frontier.grpc.experiment import PHASES, Phase, Run, ours
from benchmarks.measuring.targets import shown_command
from benchmarks.report import (
    NO_SYNC,
    PEERS,
    PeerRatios,
    ReportOptions,
    compared,
    frontier_ratios,
    page_lines,
    repeat,
    run,
)


def test_every_peer_has_a_row_with_its_ratios_or_the_reason_why_there_are_none():
    rates, rows = count(10, 5), {}
    skipped = [{"name": "wget2", "reason": "it is not installed"}]

    def part():
        found = {"tamias": float(next(rates)), "scrapy": 5.0, "wget -r": 100.0}
        said = dict.fromkeys(found, ("1.0", "as it comes", "spider --all"))
        return compared("pages", "pages per CPU-second", found, said, skipped)

    repeat(rows, 3, part)
    text = "\n".join(page_lines(list(rows.values()), ReportOptions(), "python -m benchmarks report"))
    assert "| scrapy | 3.00 | 2.00 | 4.00 | | 15 | 5 | 1.0 | as it comes |" in text
    assert "| wget2 | | | | | | | | did not run: it is not installed |" in text
    assert "| heritrix | | | | | | | | did not run: it did not run |" in text
    assert "```sh\nspider --all\n```" in text
    assert re.findall(r"^- \*\*(.+?)\*\*", text, re.MULTILINE) == ["wget -r (pages per CPU-second: 0.15)"]


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
        line = f"| URLFrontier (Java): {phase} | | | | | | | | did not run: no jar was named (--reference) |"
        assert text.splitlines().count(line) == 2  # with and without syncs


def test_the_ratios_of_the_frontier_are_above_1_where_we_are_ahead():
    def phases(speed, cpu):
        return [Phase(name, 10, speed, cpu=cpu) for name in PHASES]

    measured = Run(4000, {"tamias": phases(50.0, 7.2), "reference": phases(100.0, 3.0)},
                   {"tamias": 100 << 20, "reference": 400 << 20}, 200.0, 0.5)  # fmt: skip
    *speeds, memory = frontier_ratios(measured)
    assert [figures for figures, _ in speeds] == [(0.5, 50.0, 100.0)] * len(PHASES)
    assert [terms for _, terms in speeds if "syncs" in terms] == [
        "CPU of a URL 7 and 3 µs; 0.25 of the syncs of the disk"
    ]
    assert memory[0] == (4.0, 100.0, 400.0)


def test_a_target_is_judged_by_the_median():
    row = PeerRatios(part="pages", measure="pages", peer="scrapy", target=2.0)
    for ratio in (1.9, 2.5, 1.8):
        row.add(ratio, ratio * 10, 10)
    assert "| scrapy | 1.90 | 1.80 | 2.50 | 2: missed | 19 | 10 |" in "\n".join(
        page_lines([row], ReportOptions(), "report")
    )


def test_commands_are_shown_without_the_folders_of_the_machine():
    command = [
        "/usr/bin/wget",
        "--directory-prefix=/tmp/x-1/files",
        "http://127.0.0.1:80/a/b",
        "-O",
        "/var/c/d e",
    ]
    assert shown_command(command) == "wget --directory-prefix=files http://127.0.0.1:80/a/b -O 'd e'"


def test_a_part_that_fails_takes_nothing_away_from_the_page(tmp_path, monkeypatch):
    history = tmp_path / "histories" / "prices"
    history.mkdir(parents=True)
    for number in range(1, 3):
        (history / f"{number}.csv").write_bytes(b"day,price\n%d,7\n" % number)

    def fails(*_told):
        raise OSError("no server")

    monkeypatch.setattr("benchmarks.report._frontier", fails)
    page = tmp_path / "report.md"
    with pytest.raises(OSError, match="no server"):
        run(ReportOptions(runs=1, pages=(), nodes=0, histories=history.parent), page, "report")
    assert "| git gc | " in page.read_text(encoding="utf-8")


@pytest.mark.nightly
def test_the_service_takes_the_options_that_it_is_given_for_a_run_without_syncs():
    with ours(*NO_SYNC) as server:
        assert server.address
