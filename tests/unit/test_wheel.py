"""What is installed: the product and the demo's web, and no benchmark; what a checkout has beside it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        return files.namelist()


def test_the_wheel_holds_the_product_and_no_benchmark(names):
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"tamias"}
    assert [name for name in names if "bench" in name] == []


def test_the_wheel_holds_all_of_the_web_of_the_demo(names):
    there = {
        f"tamias/features/demo/{path.name}"
        for path in (ROOT / "src" / "tamias" / "features" / "demo").glob("*.py")
    }
    assert there
    assert there <= set(names)


@pytest.mark.skipif(
    not (ROOT / "src/tamias/features/pages/libraries/versions").exists(), reason="npm fetched no libraries"
)
def test_the_wheel_holds_what_the_pages_take_from_npm_and_not_what_only_tests_need(names):
    held = {name.rpartition("/")[2] for name in names if name.startswith("tamias/features/pages/libraries/")}
    assert {"htmx.min.js", "htmx.LICENSE", "yasgui.min.js", "yasgui.min.css", "yasgui.package.json"} <= held
    assert "axe.min.js" not in held


def test_the_benchmarks_of_a_checkout_run_from_any_folder(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (done.returncode, "frontier" in done.stdout) == (0, True), done.stderr


def test_the_product_has_no_verb_for_benchmarks():
    done = subprocess.run(
        [sys.executable, "-m", "tamias", "bench"], check=False, capture_output=True, text=True
    )
    assert (done.returncode, "No such command" in done.stderr) == (2, True), done.stderr


def test_the_package_shows_its_public_names():
    import tamias

    assert set(dir(tamias)) == {*tamias.__all__, "__version__"}
    assert all(getattr(tamias, name) for name in tamias.__all__)
