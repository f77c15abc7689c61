"""`python -m benchmarks cluster`, `finishing` and `growth` in small."""

from benchmarks.frontier.cluster import run
from benchmarks.frontier.growth import run as run_growth
from benchmarks.frontier.shapes import run as run_shapes


def test_costs_are_measured_and_every_way_is_simulated():
    lines = []
    report = run(2000, (1, 2), lines.append, workers_each=2, rounds=3, patience=0.0)
    assert all(report["costs"][name] > 0 for name in ("lease", "finish", "put_call"))
    assert report["bytes_per_url"]["url"] > 100
    assert [row["plan"]["shards"] for row in report["rows"]] == [1, 2] * len(report["bends_at"])
    assert all(row["figures"]["urls"] > 0 for row in report["rows"])


def test_each_shape_of_the_table_of_urls_is_measured():
    lines = []
    report = run_shapes(2000, 200, 20, lines.append)
    hot = {each["name"]: each["hot"] for each in report["figures"]}
    assert hot["one table, fillfactor 90"] == hot["one table, fillfactor 70"] == 0
    assert hot["due times apart, fillfactor 90"] > 0.5
    assert len(lines) == 1 + len(hot)


def test_a_frontier_is_measured_before_and_after_half_of_it_is_finished():
    lines = []
    report = run_growth((2000, 4000), 50, 10_000, lines.append, rounds=5)
    small, large = report["figures"]
    assert (small["urls"], small["finished"], large["finished"]) == (2000, 1000, 2000)
    assert all(each["count"] == 5 for each in (*small["lease"], *large["finish"]))
    assert large["sizes"][0]["url"] > small["sizes"][0]["url"] > 0
    assert small["hot"] == 0
    assert len(lines) == 1 + 2 * 2 + 1
