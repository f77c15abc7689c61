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


def parsed(triples: Path) -> list[dict[str, Any]]:
    """The datasets that a harvester of CKAN would make of a file of N-Triples."""
    programs = pip("ckanext-dcat==2.4.4", "ckan[requirements]==2.12.0")
    done = subprocess.run(
        [programs / "python", "-c", _PARSE, triples],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotRun(f"ckanext-dcat does not start: {done.stderr[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])
