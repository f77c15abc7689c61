"""A hook of the build: the wheel holds htmx and Yasgui, so that an installed Tamias has all of its pages."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "tamias/features/pages/libraries"
_FOR_TESTS = ("axe.min.js",)


class BrowserLibraries(BuildHookInterface):  # type: ignore[type-arg]
    """Fetches them where they are missing; without npm the wheel goes without them, and says so."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        pages = Path(self.root, "src", PLACE).parent
        if self.target_name != "wheel" or version == "editable" or not pages.exists():
            return
        subprocess.run([sys.executable, Path(self.root, "tools", "browser_libraries.py")], check=True)
        for path in Path(self.root, "src", PLACE).glob("*"):
            if path.name not in _FOR_TESTS:
                build_data["force_include"][str(path)] = f"{PLACE}/{path.name}"
