"""Fuzzes one target or all: `python tools/fuzz.py TARGET --seconds 600`; by coverage, where atheris is there.

Inputs that break something are left in build/fuzz/TARGET; `--log` prints a row of docs/benchmarks/fuzzing.md.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "tests" / "fuzz"
sys.path[:0] = [str(FUZZ), str(ROOT / "src")]

LONGEST_INPUT = 4096
SECONDS_FOR_ONE = 25
MOST_MEMORY_MB = 2048
_PULSE = re.compile(r"#(\d+)\s.*?cov: (\d+) ft: (\d+) corp: (\d+)/")
_DONE = re.compile(r"Done (\d+) runs")


def main() -> None:
    """Runs what was asked for; ends with 1 where something broke."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("target", nargs="*", help="all of them where none is named")
    asked.add_argument("--seconds", type=int, default=600, help="for each target")
    asked.add_argument("--log", type=Path, help="append a row for each target to this page")
    asked.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    asked.add_argument(
        "--plain", action="store_true", help="mutate without coverage, though atheris is there"
    )
    told = asked.parse_args()
    if told.inside:
        inside(told.target[0], told.seconds, guided=not told.plain)
    else:
        sys.exit(max(run(name, told) for name in told.target or names()))


def names() -> list[str]:
    """All targets, read without loading them: loading must wait for atheris."""
    text = (FUZZ / "fuzzing" / "__init__.py").read_text()
    return re.findall(r'^    "([a-z-]+)":', text, re.MULTILINE)


def run(name: str, told: argparse.Namespace) -> int:
    """One target in a process of its own, for a fuzzer ends its process; 1 where something broke."""
    plain = told.plain or not has_atheris()
    command = [sys.executable, __file__, name, "--inside", "--seconds", str(told.seconds)]
    started, worked = time.monotonic(), processor_seconds()
    ended = subprocess.run(
        [*command, *(["--plain"] if plain else [])], capture_output=True, text=True, check=False
    )
    seconds, worked = round(time.monotonic() - started), round(processor_seconds() - worked)
    broke = "yes" if ended.returncode else "no"
    row = f"| {name} | {seconds} | {worked} | {figures(ended.stderr + ended.stdout)} | {broke} |"
    print(row, flush=True)  # noqa: T201
    if ended.returncode:
        print((ended.stdout + ended.stderr)[-3000:], flush=True)  # noqa: T201
    if told.log:
        with told.log.open("a") as page:
            page.write(row + "\n")
    return int(ended.returncode != 0)


def processor_seconds() -> float:
    """What all targets so far have used of a processor; on a busy machine less than the clock's seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def has_atheris() -> bool:
    """Whether coverage can guide."""
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def figures(output: str) -> str:
    """Executions, covered edges and inputs kept, as the fuzzer told last."""
    pulses = _PULSE.findall(output)
    runs, edges, _features, kept = pulses[-1] if pulses else ("0", "-", "-", "-")
    done = _DONE.findall(output)
    return f"{done[-1] if done else runs} | {edges} | {kept}"


def inside(name: str, seconds: int, *, guided: bool) -> None:
    """The fuzzing itself."""
    found = ROOT / "build" / "fuzz" / name
    found.mkdir(parents=True, exist_ok=True)
    if guided:
        guided_run(name, seconds, found)
    else:
        plain_run(name, seconds, found)


def guided_run(name: str, seconds: int, found: Path) -> None:
    """By libFuzzer: keeps every input that reaches something new."""
    import atheris

    with atheris.instrument_imports(include=["tamias", "fuzzing"]):
        from fuzzing import TARGETS
    corpus = found / "corpus"
    corpus.mkdir(exist_ok=True)
    options = [f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT}", f"-timeout={SECONDS_FOR_ONE}",
               f"-rss_limit_mb={MOST_MEMORY_MB}", f"-artifact_prefix={found}/"]  # fmt: skip
    seeds = [
        str(folder / name) for folder in (FUZZ / "corpus", FUZZ / "regressions") if (folder / name).is_dir()
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus), *seeds], TARGETS[name])
    atheris.Fuzz()


def plain_run(name: str, seconds: int, found: Path) -> None:
    """Without atheris: random changes of the seeds, for as long as told."""
    from fuzzing import TARGETS
    from fuzzing.mutation import mutation

    seeds = [file.read_bytes() for file in sorted((FUZZ / "corpus" / name).glob("*"))]
    chance, runs, end = Random(0), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data, began = mutation(seeds, chance), time.monotonic()
        try:
            TARGETS[name](data)
        except BaseException:
            (found / f"crash-{runs}").write_bytes(data)
            raise
        if time.monotonic() - began > SECONDS_FOR_ONE:
            (found / f"timeout-{runs}").write_bytes(data)
            sys.exit(f"more than {SECONDS_FOR_ONE} s for one input")
        runs += 1
    print(f"Done {runs} runs")  # noqa: T201


if __name__ == "__main__":
    main()
