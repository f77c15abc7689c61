"""rapper and riot as standing references: RDF files are read alike, or the difference is explained.

With every test run: a sample of real files. `make nightly`: all files of the suites, and damaged ones.
"""

import os
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "agreement")]

from explanations import Explanation  # noqa: E402
from mutations import MUTATIONS, WRONG_ENDING  # noqa: E402
from readers import ours, rapper, rdf_files, riot  # noqa: E402
from servers.packages import NotRun, maven, program  # noqa: E402

NOTES = tomllib.loads((HERE / "agreement" / "explained.toml").read_text())
EXPLAINED = msgspec.convert(NOTES["explained"], list[Explanation])
READ_NOTHING = {(each["mutation"], reader) for each in NOTES["damaged"] for reader in each["readers"]}
FULL = bool(os.environ.get("TAMIAS_NIGHTLY"))
LARGEST_MUTATED = 100_000
LARGEST_SAMPLED = 50_000
ONE_OF = 5
"""Of so many real files, one is in the sample."""
REAL = "real-rdf-files"
SUITES = [
    REAL,
    "dcat-ap-3.0.1-shapes",
    "rdfa-test-suite",
    "real-histories",
    "real-portal-records",
    "schemaorg-context",
    "w3c-json-ld-tests",
    "w3c-microdata-rdf-tests",
    "w3c-n3-tests",
    "w3c-rdf-tests",
]
"""All that hold RDF files."""


whole = pytest.mark.skipif(not FULL, reason="takes minutes, and is a part of `make nightly`")


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    """`readings(file, name)`: what is read by us, and what by rapper and riot, by their names."""
    try:
        program("rapper")
        maven("org.apache.jena:jena-fuseki-server:4.10.0:jar")
    except NotRun as why:
        pytest.skip(f"not run: {why}")
    with riot(tmp_path_factory.mktemp("riot")) as jena, ThreadPoolExecutor(2) as others:

        def read(file, name):
            theirs = {reader: others.submit(each, file, name) for reader, each in references.items()}
            mine = ours(file, name)
            results = {reader: each.result() for reader, each in theirs.items()}
            return mine, {reader: result for reader, result in results.items() if result is not None}

        references = {"rapper": rapper, "riot": jena.read}
        yield read


def lines_of(table):
    """The table, for people who run `make nightly`."""
    return [
        f"{what:24} {reader:8} {verdict:12} {count:5,}"
        for (what, reader, verdict), count in sorted(table.items())
    ]


def compare(suite, files, readings):
    """The table of verdicts, what no explanation covers, and the explanations that were used."""
    table, unexplained, used = Counter(), [], set()
    for file in files:
        mine, theirs = readings(file.path, file.name)
        for reader, result in theirs.items():
            key = f"{suite}/{file.place}"
            found = {each for each in EXPLAINED if each.covers(key, reader, result.problem, mine.problem)}
            same = result.graph == mine.graph
            verdict = "same" if same else "explained" if found else "DIFFERENT"
            table[suite, reader, verdict] += 1
            if not same:
                used |= {(each.why, reader) for each in found}
            if verdict == "DIFFERENT":
                unexplained.append((key, reader, result.problem, mine.problem))
    return table, unexplained, used


def test_a_sample_of_real_files_is_read_alike_or_the_difference_is_explained(suites, readings):
    files = [each for each in rdf_files(suites(REAL)) if each.path.stat().st_size < LARGEST_SAMPLED]
    table, unexplained, _ = compare(REAL, files[::ONE_OF], readings)
    assert unexplained == []
    read = Counter(reader for _, reader, _ in table.elements())
    assert min(read["rapper"], read["riot"]) >= 30, read


@whole
@pytest.mark.parametrize("suite", SUITES)
def test_files_are_read_alike_or_the_difference_is_explained(suites, readings, agreement, suite):
    table, unexplained, used = compare(suite, rdf_files(suites(suite)), readings)
    agreement += lines_of(table)
    assert unexplained == []
    here = {(each.why, reader) for each in EXPLAINED if each.is_of(suite) for reader in each.readers}
    assert here <= used, "explained, but read alike"


@whole
@pytest.mark.parametrize("mutation", [*MUTATIONS, "wrong type"])
def test_of_a_damaged_file_nothing_differs_in_silence(suites, readings, agreement, tmp_path, mutation):
    """Where ours reads something else than a reader without a complaint, ours has one."""
    table, silent = Counter(), []
    for file in (each.path for each in rdf_files(suites(REAL))):
        if file.stat().st_size > LARGEST_MUTATED:
            continue
        name = file.stem + WRONG_ENDING[file.suffix] if mutation == "wrong type" else file.name
        damaged = tmp_path / name
        damage = MUTATIONS.get(mutation, bytes)
        damaged.write_bytes(damage(file.read_bytes()))
        mine, theirs = readings(damaged, name)
        for reader, result in theirs.items():
            key = f"{REAL}/{file.name}"
            is_explained = any(each.names(key, reader) for each in EXPLAINED)
            if (mutation, reader) in READ_NOTHING:
                is_explained |= not result.graph
            verdict = verdict_of(result, mine, is_explained=is_explained)
            table[mutation, reader, verdict] += 1
            if verdict == "DIFFERENT":
                silent.append(
                    (file.name, reader, result.problem, sum(result.graph.values()), sum(mine.graph.values()))
                )
    agreement += lines_of(table)
    assert silent == []


def verdict_of(result, mine, *, is_explained):
    if result.graph == mine.graph:
        return "same"
    if mine.problem is not None:
        return "ours says so"
    if result.problem is not None and result.graph <= mine.graph:
        return "theirs stops"
    return "explained" if is_explained else "DIFFERENT"
