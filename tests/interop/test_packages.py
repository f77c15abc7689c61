"""The cache of the servers' packages, which processes share."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from servers import packages


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAMIAS_INTEROP_CACHE", str(tmp_path))


def test_a_long_build_keeps_nobody_from_another_package():
    both = Barrier(2)
    with ThreadPoolExecutor() as threads:
        builds = [
            threads.submit(packages.installed, name, lambda _: both.wait(60)) for name in ("long", "short")
        ]
    assert len({build.result() for build in builds}) == 2


def test_a_package_is_built_once_however_many_ask_for_it():
    folders, began, both_asked = [], Event(), Event()

    def build(folder):
        folders.append(folder)
        began.set()
        both_asked.wait(60)

    with ThreadPoolExecutor(2) as threads:
        builds = [threads.submit(packages.installed, "one", build) for _ in range(2)]
        began.wait(60)
        both_asked.set()
    assert folders == [builds[0].result()] == [builds[1].result()]


def test_a_build_that_failed_is_begun_again():
    with pytest.raises(packages.NotRun):
        packages.installed("one", _refuse)
    assert not packages.is_installed("one")
    folder = packages.installed("one", lambda folder: (folder / "program").touch())
    assert [each.name for each in sorted(folder.iterdir())] == ["complete", "program"]


def _refuse(folder):
    (folder / "half").touch()
    raise packages.NotRun("the registry is away")
