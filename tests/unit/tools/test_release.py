"""What goes with a release: notes, a list of all that is installed, and a wheel with every file."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tamias

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_changelog_has_notes_for_this_version(release):
    notes = release.notes_of((ROOT / "CHANGELOG.md").read_text(), tamias.__version__)
    assert len(notes.splitlines()) > 5


def test_the_changelog_says_what_is_experimental(release):
    notes = release.notes_of((ROOT / "CHANGELOG.md").read_text(), tamias.__version__)
    assert "\nExperimental\n" in notes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Without the trial of the wheel, which takes minutes: `make release` does it."""
    out = tmp_path_factory.mktemp("release")
    if not (ROOT / "src/tamias/features/pages/libraries/versions").exists():
        pytest.skip("npm fetched no libraries")
    command = [sys.executable, ROOT / "tools" / "release.py", "--out", out, "--no-trial"]
    subprocess.run(command, check=True, capture_output=True)
    return out


def test_every_file_of_a_release_has_its_sum(made):
    listed = [line.split()[1] for line in (made / "SHA256SUMS").read_text().splitlines()]
    assert sorted(listed) == sorted(path.name for path in made.iterdir() if path.name != "SHA256SUMS")
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], check=True, cwd=made)
    version = tamias.__version__
    wheel = f"tamias-{version}-py3-none-any.whl"
    assert sorted(listed) == sorted([f"CHANGES-{version}.md", f"tamias-{version}.cdx.json", wheel])


def test_the_list_of_materials_names_every_pinned_package_with_its_hashes(made):
    bom = json.loads((made / f"tamias-{tamias.__version__}.cdx.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    pinned = re.findall(
        r"^([\w.-]+)(?:\[[^]]*\])?==", (ROOT / "requirements" / "run.txt").read_text(), re.MULTILINE
    )
    named = {part["name"] for part in bom["components"]}
    assert named == {re.sub(r"[-_.]+", "-", name).lower() for name in pinned}
    assert all(part["externalReferences"][0]["hashes"] for part in bom["components"])
    refs = [part["bom-ref"] for part in bom["components"]]
    assert len(refs) == len(set(refs))
    assert bom["dependencies"][0]["dependsOn"] == refs
