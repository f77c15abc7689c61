"""ckanext-dcat's own parser, in an environment that has CKAN's code, but no CKAN that runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

from servers.packages import NotRun, pip

_PARSE = """
import json, sys
from ckanext.dcat.processors import RDFParser
parser = RDFParser(profiles=["euro_dcat_ap_3"])
parser.parse(open(sys.argv[1]).read(), _format="nt")
print(json.dumps(list(parser.datasets()), default=str))
"""

_HARVEST = """
import json, sys, urllib.request
from ckanext.dcat.processors import RDFParser
url, found, pages = sys.argv[1], [], 0
while url:
    parser = RDFParser(profiles=["euro_dcat_ap_3"])
    with urllib.request.urlopen(url) as answer:
        parser.parse(answer.read().decode(), _format="turtle")
    found += parser.datasets()
    url, pages = parser.next_page(), pages + 1
print(json.dumps([pages, found], default=str))
"""


def harvested(url: str) -> tuple[int, list[dict[str, Any]]]:
    """How many pages its parser finds from an address on, and the datasets on them."""
    pages, found = _run(_HARVEST, url)
    return pages, found


def parsed(triples: Path) -> list[dict[str, Any]]:
    """The datasets that a harvester of CKAN would make of a file of N-Triples."""
    found: list[dict[str, Any]] = _run(_PARSE, str(triples))
    return found


def _run(program: str, argument: str) -> Any:
    programs = pip("ckanext-dcat==2.4.4", "ckan[requirements]==2.12.0")
    done = subprocess.run(
        [programs / "python", "-c", program, argument],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotRun(f"ckanext-dcat does not start: {done.stderr[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])
