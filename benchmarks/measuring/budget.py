"""Where Tamias's processor time goes: what its workers wrote of their steps, and the database beside them."""

from collections import Counter
from pathlib import Path

import msgspec

PROFILE_VARIABLE = "TAMIAS_PROFILE"
PROFILE_LIMIT = 16 << 20
DATABASE = "postgres"


class WorkerProfile(msgspec.Struct, frozen=True):
    """One line of the profile: the processor seconds of one worker by step."""

    steps: dict[str, float]
    pages: int


def read_profiles(file: Path) -> list[WorkerProfile]:
    """All lines of a profile; none where there is no file."""
    if not file.exists():
        return []
    with file.open("rb") as lines:
        return [
            msgspec.json.decode(line, type=WorkerProfile)
            for line in lines.readlines(PROFILE_LIMIT)
            if line.strip()
        ]


def budget(
    profiles: list[WorkerProfile], cpu_seconds: float, cpu_by_name: dict[str, float], pages: int
) -> dict[str, float]:
    """Milliseconds a page by step; `rest` is what no step claims: start, end, and what is not timed."""
    steps: Counter[str] = Counter()
    for profile in profiles:
        steps.update(profile.steps)
    claimed = {**steps, "database": cpu_by_name.get(DATABASE, 0.0)}
    claimed["rest"] = cpu_seconds - sum(claimed.values())
    return {step: 1000 * seconds / max(1, pages) for step, seconds in claimed.items()}
