"""What the process that workers are forked from has loaded before the first fork."""

import subprocess
import sys

from tamias import plugins

SHOW = (
    "import sys; from tamias.crawl.worker.process import load_ahead; "
    "from tamias.crawl.worker.wiring import database_worker; load_ahead(); before = set(sys.modules); "
    "from tamias.plugins import load_all; "
    "[load_all(f'tamias.{group}') for group in ('filters', 'fetchers', 'formats', 'taggers')]; "
    "print(sorted(name for name in sys.modules if name.startswith('tamias') and name not in before))"
)


def test_a_fork_has_no_built_in_part_left_to_load():
    said = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == "[]"


def test_parts_of_others_are_not_run_ahead(monkeypatch):
    class Entry:
        def __init__(self, module):
            self.module = module

        def load(self):
            loaded.append(self.module)

    loaded = []
    found = {"tamias.filters": [Entry("tamias.filters.scheme"), Entry("elsewhere.filter")]}
    monkeypatch.setattr(plugins, "_registered", lambda: found)
    plugins.load_own("tamias.filters")
    assert loaded == ["tamias.filters.scheme"]
