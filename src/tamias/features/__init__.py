"""Features: each folder here is one, with all that belongs to it. Take a folder away, and the rest works.

The core never imports a feature. A feature imports the core, and the features that it names as `requires`.
"""

from importlib import import_module
from pathlib import Path

from tamias.core import CORE

_NAMES = sorted(each.parent.name for each in Path(__file__).parent.glob("*/__init__.py"))
FEATURES = (CORE, *(import_module(f"{__name__}.{name}").FEATURE for name in _NAMES))
