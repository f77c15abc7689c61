"""F10: all attacks of the hostile web among good sites."""

from typing import Any

import msgspec

from benchmarks.faults.experiment import ExperimentSetup, Result

SITES, EACH = 40, 50
GIBIBYTE = 1 << 30


def run(setup: ExperimentSetup) -> Result:
    """`python -m benchmarks hostile`, or what it told before."""
    if setup.hostile is not None:
        report = msgspec.json.decode(setup.hostile.read_bytes())
    else:
        from benchmarks.hostile.run import run as run_hostile

        report = run_hostile(lambda _: None, sites=SITES, pages=setup.of(EACH, 10))
    return judged(report)


def judged(report: dict[str, Any]) -> Result:
    """The figures that count."""
    ratio = report["ratio"]
    return Result(
        ok=bool(report["ok"]),
        figure=f"{report['contained']} of {report['attacks']} attacks contained,"
        f" {report['good_pages']:,} good pages {'complete' if report['good_complete'] else 'NOT complete'}"
        f" ({report['workers']} workers),"
        f" {report['peak_bytes'] / GIBIBYTE:.2f} GiB,"
        + (f" {ratio:.2f} times the time without them," if ratio else "")
        + f" {report['canary_connections']} connections to the canaries",
    )
