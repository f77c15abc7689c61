"""Finds locals that hide a function, class or import of their own module.

Inside a comprehension such a name is neither the one nor the other: `held = [held(each) for each in leases]`
fails when it runs, and neither mypy nor ruff sees it.
"""

import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("src", "benchmarks")


def main() -> int:
    """Lists them; fails where there are any."""
    found = [
        line
        for folder in SOURCES
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line in shadowed(file)
    ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


def shadowed(file: Path) -> Iterator[str]:
    """A line for each such local of a file."""
    module = symtable.symtable(file.read_text(encoding="utf-8"), str(file), "exec")
    outer = {
        symbol.get_name() for symbol in module.get_symbols() if symbol.is_namespace() or symbol.is_imported()
    }
    for table in _functions(module):
        for symbol in table.get_symbols():
            if symbol.is_local() and symbol.is_assigned() and symbol.get_name() in outer:
                name, line = symbol.get_name(), table.get_lineno()
                yield f"{file}:{line}: {name!r} in {table.get_name()}() hides the module's own {name!r}"


def _functions(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        if child.get_type() == "function":
            yield child
        yield from _functions(child)


if __name__ == "__main__":
    sys.exit(main())
