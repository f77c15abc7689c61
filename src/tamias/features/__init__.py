"""Features: each folder here is one, with all that belongs to it. Take a folder away, and the rest works.

The core never imports a feature. A feature imports the core, and the features that it names as `requires`.
"""

from importlib import import_module
from pkgutil import iter_modules

from tamias.core import CORE

FEATURES = (CORE, *(import_module(f"{__name__}.{each.name}").FEATURE for each in iter_modules(__path__)))
