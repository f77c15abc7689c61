"""What the process that workers are forked from has loaded before the first fork."""

import subprocess
import sys

from tamias import plugins

SHOW = (
    "import sys; from tamias.crawl.worker.worker import load_ahead; "
    "from tamias.crawl.worker.worker import database_worker; load_ahead(); before = set(sys.modules); "
    "from tamias.plugins import load_all; "
    "[load_all(kind) for kind in ('filters', 'fetchers', 'taggers')]; "
    "print(sorted(name for name in sys.modules if name.startswith('tamias') and name not in before))"
)


def test_a_fork_has_no_built_in_part_left_to_load():
    said = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == "[]"


def test_parts_of_others_are_not_run_ahead(monkeypatch):
    loaded = []
    found = {"scheme": "tamias.filters.url_filters:SchemeFilter", "other": "elsewhere.filter:Filter"}
    monkeypatch.setattr(plugins, "parts", lambda _: found)
    monkeypatch.setattr(plugins, "load_target", loaded.append)
    plugins.load_own("filters")
    assert loaded == ["tamias.filters.url_filters:SchemeFilter"]
