"""rapper and riot as standing references: real RDF files are read alike, or the difference is explained."""

import os
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "agreement")]

from mutations import MUTATIONS, WRONG_ENDING  # noqa: E402
from readers import LANGUAGES, ours, rapper, riot  # noqa: E402
from servers.packages import NotRun, maven, program  # noqa: E402

NOTES = tomllib.loads((HERE / "agreement" / "explained.toml").read_text())
EXPLAINED = {
    (file, reader) for each in NOTES["explained"] for file in each["files"] for reader in each["readers"]
}
READ_NOTHING = {(each["mutation"], reader) for each in NOTES["damaged"] for reader in each["readers"]}
LARGEST_MUTATED = 100_000


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    """`references(file, name)`: what rapper and riot read, by their names."""
    if not os.environ.get("TAMIAS_INTEROP"):
        pytest.skip("not run: takes minutes, and is a part of `make interop`")
    try:
        program("rapper")
        maven("org.apache.jena:jena-fuseki-server:4.10.0:jar")
    except NotRun as why:
        pytest.skip(f"not run: {why}")
    with riot(tmp_path_factory.mktemp("riot")) as jena:
        yield lambda file, name: {"rapper": rapper(file, name), "riot": jena.read(file, name)}


def files(suites):
    return [file for file in sorted(suites("real-rdf-files").rglob("*")) if file.suffix in LANGUAGES]


def told(table):
    """The table, for people who run `make interop`."""
    for (what, reader, verdict), count in sorted(table.items()):
        sys.stdout.write(f"{what:12} {reader:8} {verdict:12} {count:4}\n")


def test_real_files_are_read_alike_or_the_difference_is_explained(suites, references):
    table, unexplained, differing = Counter(), [], set()
    for file in files(suites):
        mine = ours(file, file.name)
        for reader, result in references(file, file.name).items():
            if result is None:
                continue
            same = result.graph == mine.graph
            is_explained = (file.name, reader) in EXPLAINED
            verdict = "same" if same else "explained" if is_explained else "DIFFERENT"
            table["as it is", reader, verdict] += 1
            if not same:
                differing.add((file.name, reader))
            if verdict == "DIFFERENT":
                unexplained.append((file.name, reader, result.problem, mine.problem))
    told(table)
    assert unexplained == []
    assert {file for file, _ in EXPLAINED} <= {file for file, _ in differing}, "explained, but read alike"


@pytest.mark.parametrize("mutation", [*MUTATIONS, "wrong type"])
def test_of_a_damaged_file_nothing_differs_in_silence(suites, references, tmp_path, mutation):
    """Where ours reads something else than a reader without a complaint, ours has one."""
    table, silent = Counter(), []
    for file in files(suites):
        if file.stat().st_size > LARGEST_MUTATED:
            continue
        name = file.stem + WRONG_ENDING[file.suffix] if mutation == "wrong type" else file.name
        damaged = tmp_path / name
        damage = MUTATIONS.get(mutation, bytes)
        damaged.write_bytes(damage(file.read_bytes()))
        mine = ours(damaged, name)
        for reader, result in references(damaged, name).items():
            if result is None:
                continue
            is_explained = (file.name, reader) in EXPLAINED
            if (mutation, reader) in READ_NOTHING:
                is_explained |= not result.graph
            verdict = verdict_of(result, mine, is_explained=is_explained)
            table[mutation, reader, verdict] += 1
            if verdict == "DIFFERENT":
                silent.append(
                    (file.name, reader, result.problem, sum(result.graph.values()), sum(mine.graph.values()))
                )
    told(table)
    assert silent == []


def verdict_of(result, mine, *, is_explained):
    if result.graph == mine.graph:
        return "same"
    if mine.problem is not None:
        return "ours says so"
    if result.problem is not None and result.graph <= mine.graph:
        return "theirs stops"
    return "explained" if is_explained else "DIFFERENT"
