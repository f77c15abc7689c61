"""A crawl on a real Citus: what it costs beside one server, and what becomes of it while something breaks.

`trial` has the machines and judges what they did, `table` says what breaks, `costs` compares processor time.
Citus is an installation that `TAMIAS_CITUS` names.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tamias.model.errors import UsageError


def servers(name: str) -> Any:
    """Return a module of `tests/interop/servers`, which starts a server of others."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "interop"))
    return import_module(f"servers.{name}")


def programs_of(citus: Any) -> Path:
    """Return the programs of the Citus that is installed; raise UsageError where none is named."""
    try:
        found: Path = citus.programs()
    except (servers("packages").NotRun, FileNotFoundError) as reason:
        raise UsageError(f"not run: {reason}") from None
    return found
