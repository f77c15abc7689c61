"""The report of all peers: every peer has a row, whether it ran or not, and ratios of all runs are in it."""

import re
from itertools import count

import pytest

from benchmarks.report import PEERS, ReportOptions, compared, page_lines, repeat, run


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
    options = ReportOptions(runs=1, pages=(), nodes=0, histories=history.parent)
    found = run(options, page, "python -m benchmarks report", out=lambda _: None)
    assert [row["peer"] for row in found["rows"]] == list(PEERS["versions"])
    git = found["rows"][0]
    assert git["ratios"][0] == pytest.approx(1.0, rel=0.9)  # of the same versions
    assert f"| git gc | {git['ratios'][0]:.2f} |" in page.read_text(encoding="utf-8")
