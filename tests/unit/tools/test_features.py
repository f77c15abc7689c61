"""The check of `make check` that features can be taken away."""

import runpy
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "features.py"))
FEATURE = 'from tamias.plugins import Feature\nFEATURE = Feature(name="{}", module=__name__{})\n'


@pytest.fixture
def package(tmp_path):
    """Three features, of which one has a table and one requires another."""
    for name, more in {
        "birds": ', tables=("nest",)',
        "eggs": ', requires=("birds",)',
        "fish": "",
    }.items():
        folder = tmp_path / "features" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(FEATURE.format(name, more))
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "schema.sql").write_text(
        "CREATE TABLE nest (id int8);\nCREATE TABLE host (id int8);"
    )
    return tmp_path


def crossings(package):
    return list(TOOL["find_crossings"](package))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("crawl.py", '"""As tamias.features.birds does."""\n\nGROUP = "tamias.features"\n'),
        ("core.sql", "-- not nest\nSELECT 'nest' FROM host;"),
        ("features/birds/nests.py", "from tamias.features.birds import FEATURE\nimport tamias.crawl\n"),
        ("features/birds/nests.sql", "SELECT * FROM nest JOIN host USING (id)"),
        ("features/eggs/eggs.sql", "SELECT * FROM nest"),
        ("features/eggs/eggs.py", "from tamias.features.birds import nests\n"),
    ],
)
def test_what_is_declared_may_be_used(package, file, text):
    (package / file).write_text(text)
    assert crossings(package) == []


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("crawl.py", "from tamias.features.birds import nests\n", "core uses tamias.features.birds.nests"),
        ("crawl.py", "from tamias.features import birds\n", "core uses tamias.features.birds"),
        (
            "crawl.py",
            'X = "tamias.features.birds.nests:Nest"\n',
            "core uses tamias.features.birds.nests:Nest",
        ),
        ("core.sql", "SELECT * FROM nest", "core uses the table nest"),
        ("features/fish/fish.sql", "DELETE FROM nest", "fish uses the table nest"),
        ("features/fish/fish.py", "import tamias.features.birds.nests\n", "fish uses tamias.features.birds"),
    ],
)
def test_what_is_not_declared_may_not(package, file, text, said):
    (package / file).write_text(text)
    (crossing,) = crossings(package)
    assert crossing.startswith(f"{file}: {said}")
    assert crossing.endswith("of the feature birds, which it does not require")


def test_a_table_that_nobody_makes_is_a_mistake(package):
    (package / "database" / "schema.sql").write_text("")
    assert crossings(package) == ["birds: there is no table nest"]
