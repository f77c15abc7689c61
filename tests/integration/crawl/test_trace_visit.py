"""What a visit costs in objects: the tool that follows one document from its lease to its commit."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

TOOL = Path(__file__).parents[3] / "tools" / "trace_visit.py"
ONCE = ("Task", "Lease", "HeldLease", "Request", "Visit", "Reference", "Done", "CaptureRecord", "Return")
FILES = (
    "crawl/worker/worker.py",
    "crawl/visit/visitor.py",
    "crawl/visit/runner.py",
    "crawl/request/gate.py",
    "fetch/http.py",
    "crawl/visit/reader.py",
    "crawl/analysing/extractor.py",
    "crawl/commit/settling.py",
    "crawl/commit/committer.py",
    "crawl/commit/link_put.py",
    "frontier/put.py",
)


def test_a_document_takes_one_object_of_each_kind_from_its_lease_to_its_commit():
    told = subprocess.run([sys.executable, TOOL], capture_output=True, text=True, check=True).stdout
    files, _, classes = told.partition(" classes, ")
    entered = [line.strip() for line in files.splitlines() if line.startswith("  ")]
    made = Counter()
    for line in classes.splitlines()[1:]:
        name, count, _ = line.split()
        made[name] += int(count)
    assert {name: made[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert set(FILES) <= set(entered)
