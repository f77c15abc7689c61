"""The bench of the SPARQL harvester, small."""

from benchmarks.harvesters.sparql import run


def test_the_bench_copies_all_statements_in_both_ways():
    lines = []
    report = run(3_000, lines.append, cap=200)
    assert report["ok"], lines
    assert report["tamias"]["statements"] == report["limit_offset"]["statements"] == 3_000
    assert report["limit_offset"]["requests"] == 16
