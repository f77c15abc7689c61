"""`python -m benchmarks cluster` in small."""

from benchmarks.frontier.cluster import run


def test_costs_are_measured_and_every_way_is_simulated():
    lines = []
    report = run(2000, (1, 2), lines.append, workers_each=2, rounds=3, patience=0.0)
    assert all(report["costs"][name] > 0 for name in ("lease", "finish", "put_call"))
    assert report["bytes_per_url"]["url"] > 100
    assert [row["plan"]["shards"] for row in report["rows"]] == [1, 2] * len(report["bends_at"])
    assert all(row["figures"]["urls"] > 0 for row in report["rows"])
