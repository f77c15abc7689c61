"""`benchmarks hostile`: the good sites alone, then among attacks; what was contained and what it cost."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tamias.model.errors import TamiasError
from tests.hostile.web import crowd
from tests.hostile.web.good import PAGES, SITES
from tests.hostile.web.trial import AttackVerdict, Trial, TrialOptions

MOST_MEMORY = 1536 << 20
MOST_RATIO = 1.3
SECONDS = 320.0
DELAY = 0.1
CROWD_DELAY = 0.05
CROWD_SECONDS = 420.0
"""On a busy machine the last bombs take minutes, because sandboxes get what others leave; meanwhile servers
that never answer are tried again, 30 s each."""
MOST_TRAPPED = 400
"""Requests to a trap of the crowd, whose budget is half of it."""
NUMBERS = [f"H{number}" for number in range(1, 30)]
Out = Callable[[str], None]


def run(
    out: Out,
    *,
    sites: int = SITES,
    pages: int = PAGES,
    workers: int = 2,
    delay: float = DELAY,
    alone: bool = True,
    only: Sequence[str] = (),
) -> dict[str, object]:
    """The report. Without `alone` the good sites are not crawled by themselves first: no ratio."""
    with tempfile.TemporaryDirectory(prefix="tamias-hostile-") as place:
        options = TrialOptions(
            folder=place,
            hostile=False,
            sites=sites,
            pages=pages,
            delay=delay,
            workers=workers,
            seconds=SECONDS,
            only=tuple(only),
        )
        control = _tried(options, "alone") if alone else None
        if control is not None:
            out(f"{sites} good sites of {pages} pages alone: {_account(control)}")
        mixed = _tried(msgspec.structs.replace(options, hostile=True), "mixed")
    out(f"among {len(mixed.verdicts)} attacks: {_account(mixed)}")
    for verdict in mixed.verdicts:
        word = "contained" if verdict.contained else "NOT CONTAINED"
        out(f"{word:13} {verdict.number:4}{verdict.name:16}{verdict.what}")
        if verdict.wrong:
            out(f"{'':17} {verdict.wrong}")
    report = {"good_pages": sites * pages, "workers": workers, **reported(control, mixed)}
    out(_summary(report))
    return report


def run_crowd(
    out: Out, *, workers: int = 2, alone: bool = True, endpoints: int = crowd.ENDPOINTS
) -> dict[str, object]:
    """Ten good hosts alone, then in a crowd of bombs and traps: compared quad by quad."""
    with tempfile.TemporaryDirectory(prefix="tamias-crowd-") as place:
        options = TrialOptions(
            folder=place,
            hostile=False,
            sites=crowd.HOSTS,
            pages=crowd.DOCUMENTS,
            delay=CROWD_DELAY,
            workers=workers,
            seconds=CROWD_SECONDS,
            crowd=True,
            endpoints=endpoints,
        )
        control = _tried(options, "alone") if alone else None
        if control is not None:
            out(f"{crowd.HOSTS} good hosts of {crowd.DOCUMENTS} documents alone: {_account(control)}")
        mixed = _tried(msgspec.structs.replace(options, hostile=True), "crowd")
    out(f"in a crowd of {endpoints} hostile endpoints: {_account(mixed)}")
    for name, requests in mixed.trap_requests.items():
        out(f"{'contained' if requests <= MOST_TRAPPED else 'NOT CONTAINED':13} {name}: {requests} requests")
    ratio = mixed.good_seconds / control.good_seconds if control else None
    report: dict[str, object] = {
        "good_documents": crowd.HOSTS * crowd.DOCUMENTS,
        "good_missing": mixed.good_missing[:20],
        "good_complete": not mixed.good_missing,
        "good_seconds_alone": control.good_seconds if control else None,
        "good_seconds": mixed.good_seconds,
        "ratio": ratio,
        "workers": workers,
        "trap_requests": mixed.trap_requests,
        "peak_bytes": mixed.measured.peak_bytes,
        "fault": mixed.fault,
    }
    report["ok"] = (
        not mixed.good_missing
        and not mixed.fault
        and all(requests <= MOST_TRAPPED for requests in mixed.trap_requests.values())
        and (ratio is None or ratio <= MOST_RATIO)
    )
    if ratio is not None:
        out(f"{ratio:.2f} times the time of the good hosts alone")
    return report


def reported(control: Trial | None, mixed: Trial) -> dict[str, object]:
    """All figures, and whether they are what is promised."""
    numbers = [each for each in NUMBERS if any(verdict.number == each for verdict in mixed.verdicts)]
    contained = [number for number in numbers if _is_contained(number, mixed.verdicts)]
    ratio = mixed.good_seconds / control.good_seconds if control else None
    found: dict[str, object] = {
        "contained": len(contained),
        "attacks": len(numbers),
        "not_contained": [number for number in numbers if number not in contained],
        "good_complete": not mixed.good_missing,
        "good_missing": mixed.good_missing[:20],
        "peak_bytes": mixed.measured.peak_bytes,
        "peak_by_name": mixed.measured.peak_by_name,
        "canary_connections": len(mixed.canary),
        "good_seconds_alone": control.good_seconds if control else None,
        "good_seconds": mixed.good_seconds,
        "ratio": ratio,
        "cpu_seconds_alone": control.measured.cpu_seconds if control else None,
        "cpu_seconds": mixed.measured.cpu_seconds,
        "cpu_by_name": mixed.measured.cpu_by_name,
        "wall_seconds": mixed.measured.wall_seconds,
        "requests": mixed.requests,
        "fault": mixed.fault or (control.fault if control else ""),
        "verdicts": mixed.verdicts,
    }
    found["ok"] = (
        len(contained) == len(numbers)
        and not mixed.good_missing
        and not mixed.canary
        and not found["fault"]
        and mixed.measured.peak_bytes <= MOST_MEMORY
        and (ratio is None or ratio <= MOST_RATIO)
    )
    return found


def _is_contained(number: str, verdicts: list[AttackVerdict]) -> bool:
    of_number = [verdict.contained for verdict in verdicts if verdict.number == number]
    return bool(of_number) and all(of_number)


def _tried(options: TrialOptions, name: str) -> Trial:
    folder = Path(options.folder) / name
    folder.mkdir()
    sent = msgspec.json.encode(msgspec.structs.replace(options, folder=str(folder)))
    command = [sys.executable, "-m", "tests.hostile.web.trial"]
    done = subprocess.run(command, check=False, input=sent, capture_output=True, timeout=options.seconds * 3)
    result = folder / "trial.json"
    if not result.exists():
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise TamiasError(f"the hostile web could not be tried: {said[-1] if said else 'it said nothing'}")
    return msgspec.json.decode(result.read_bytes(), type=Trial)


def _account(trial: Trial) -> str:
    measured = trial.measured
    return (
        f"complete after {trial.good_seconds:.1f} s, {len(trial.good_missing)} pages missing,"
        f" {measured.cpu_seconds:.1f} s of processor time, {measured.peak_bytes / (1 << 20):.0f} MiB at most"
        + (f"; {trial.fault}" if trial.fault else "")
    )


def _summary(report: dict[str, object]) -> str:
    ratio = report["ratio"]
    return (
        f"contained {report['contained']}/{report['attacks']}; good sites"
        f" {'complete' if report['good_complete'] else 'NOT complete'};"
        f" {report['canary_connections']} connections to the canaries;"
        + (f" {ratio:.2f} times the time of the good sites alone" if isinstance(ratio, float) else "")
    )
