"""What is built is documented, and what is documented is built."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import command as all_benchmarks
from tamias.cli.main import cli
from tamias.model import errors
from tamias.plugins import KINDS, verbs
from tamias.settings import all_settings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def commands():
    for verb in verbs():
        command = cli.get_command(None, verb)
        yield from ([(verb, command)] if not hasattr(command, "commands") else
                    [(f"{verb} {name}", each) for name, each in command.commands.items()])  # fmt: skip
    yield from all_benchmarks.commands.items()


def test_the_page_of_settings_is_the_one_that_the_code_would_write():
    written = CliRunner().invoke(cli, ["config", "page"]).output
    assert (DOCS / "settings.md").read_text() == written, "run: tamias config page > docs/settings.md"


@pytest.mark.parametrize("name", ["commands", "benchmarks", "routes"])
def test_the_reference_is_the_one_that_the_code_would_write(name):
    reference = runpy.run_path(str(ROOT / "tools" / "reference.py"))
    page = {"commands": "commands.md", "benchmarks": "benchmarks/commands.md", "routes": "rest.md"}[name]
    assert (DOCS / page).read_text() == reference[name](), "run: python tools/reference.py"


@pytest.mark.parametrize("verb", verbs())
def test_every_verb_is_in_the_readme(verb):
    assert f"tamias {verb}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(("name", "command"), list(commands()), ids=lambda value: str(value)[:20])
def test_the_help_of_every_command_shows_an_example(name, command):
    assert "Example:" in (command.help or ""), name


@pytest.mark.parametrize("kind", KINDS)
def test_every_extension_point_is_explained(kind):
    assert f"| `{kind}` |" in (DOCS / "architecture.md").read_text()


def test_every_dependency_has_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    page = (DOCS / "dependencies.md").read_text()
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = [re.match(r"[a-z0-9-]+", entry)[0] for entry in wanted]
    assert [name for name in names if name not in page] == []


@pytest.mark.parametrize("page", ["architecture.md", "internals.md"])
def test_every_file_that_the_architecture_names_exists(page):
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sql))`", (DOCS / page).read_text())
    assert named
    assert [
        name for name in named if not any((top / name).exists() for top in (ROOT, ROOT / "src" / "tamias"))
    ] == []


def test_every_file_that_the_guide_for_contributors_names_exists():
    named = re.findall(
        r"`((?:src|tests|tools|docs|[a-z_]+)/[a-z_/]*(?:\.[a-z]+)?)`", (ROOT / "CONTRIBUTING.md").read_text()
    )
    assert len(named) > 20
    assert [
        name for name in named if not any((top / name).exists() for top in (ROOT, ROOT / "src" / "tamias"))
    ] == []


def test_every_link_between_pages_leads_somewhere():
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "benchmarks" / "README.md",
        *DOCS.rglob("*.md"),
    ]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_tree_of_errors_in_the_docstring_is_the_real_one():
    drawn = set(re.findall(r"([A-Z]\w+)\s+exit|├── (\w+)|└── (\w+)", errors.__doc__))
    names = {name for match in drawn for name in match if name}
    real = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert names == real


def test_settings_and_flags_use_the_same_words():
    names = {setting.name for setting in all_settings()}
    crawl = cli.get_command(None, "crawl")
    free = {
        "seeds",
        "seed_files",
        "data",
        "db",
        "config",
        "as_json",
        "log",
        "quiet",
        "verbose",
        "dry_run",
        "in_service",
        "name",
        "recrawl",
        "again",
        "strict",
        "no_robots",
        "sinks",
    }
    assert {option.name for option in crawl.params} - free <= names


def test_every_exit_code_is_on_the_page_of_exit_codes():
    page = (DOCS / "exit-codes.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    raised = {each.exit_code for each in vars(errors).values() if isinstance(each, type)}
    by_crawl = {0, 3, 130}
    assert documented == raised | by_crawl


def test_every_variable_that_the_code_reads_is_on_the_page_of_the_environment():
    page = (DOCS / "environment.md").read_text()
    source = "".join(each.read_text() for each in (DOCS.parent / "src").rglob("*.py"))
    read = set(re.findall(r'"((?:TAMIAS|AWS)_[A-Z_]+)"', source)) - {"TAMIAS_"}
    assert {name for name in read if "__" not in name and f"`{name.rstrip('_')}" not in page} == set()


def test_every_metric_is_on_the_page_of_metrics():
    page = (DOCS / "metrics.md").read_text()
    source = (DOCS.parent / "src/tamias/features/service/http/health.py").read_text()
    features = (DOCS.parent / "src/tamias/features").rglob("*.py")
    named = set(re.findall(r'_one\(\s*"([a-z_]+)"', source))
    for each in features:
        named |= set(re.findall(r'\bGauge\(\s*"([a-z_]+)"', each.read_text()))
    assert len(named) > 20
    assert named == set(re.findall(r"^\| `([a-z_]+)` \|", page, re.MULTILINE))
