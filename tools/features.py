"""Check that features can be taken away: `python tools/features.py`.

The core imports no feature, and has no text that names a module of one. A feature imports the core and the
features in its `requires`. Statements of the core name only tables of the core; those of a feature its own,
the core's, and those of features that it requires. Every `.sql` file is read.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "tamias"
CORE = "core"
_MODULE = re.compile(r"tamias\.features\.(\w+)")
_MADE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)")
_NOT_CODE = re.compile(r"--[^\n]*|'[^']*'")
Owners = Mapping[str, str]
"""The feature that each table belongs to."""


def main() -> int:
    """Print each crossing; fail where there is one."""
    found = [*find_crossings(PACKAGE)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


def find_crossings(package: Path) -> Iterator[str]:
    """Yield a line for each import, text or table by which a part uses a feature that it does not declare."""
    declared = {each.parent.name: read_feature(each) for each in package.glob("features/*/__init__.py")}
    requires = {name: {name, *each["requires"]} for name, each in declared.items()} | {CORE: set[str]()}
    owners = {table: name for name, each in declared.items() for table in each["tables"]}
    made = {table for each in package.rglob("*.sql") for table in _MADE.findall(each.read_text())}
    yield from (f"{owners[table]}: there is no table {table}" for table in sorted(owners.keys() - made))
    for file in sorted([*package.rglob("*.py"), *package.rglob("*.sql")]):
        inside = file.relative_to(package)
        if inside.parts[0] == "database" and file.suffix == ".sql":
            continue  # the schema and the rights of all tables are still in one place
        part = inside.parts[1] if inside.parts[0] == "features" and len(inside.parts) > 2 else CORE
        used = modules_used(file) if file.suffix == ".py" else tables_used(file, owners)
        for name, what in used:
            if name not in requires[part]:
                yield f"{inside}: {part} uses {what} of the feature {name}, which it does not require"


def read_feature(file: Path) -> dict[str, list[str]]:
    """Return what the `Feature` in a file requires and which tables it has, without importing it."""
    calls = [each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.Call)]
    feature = next(each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "Feature")
    given = {each.arg: each.value for each in feature.keywords}
    return {
        name: list(ast.literal_eval(given[name])) if name in given else [] for name in ("requires", "tables")
    }


def modules_used(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the features whose modules a file imports, or names in a text that is no documentation."""
    tree = ast.parse(file.read_text())
    documentation = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        named: list[str] = []
        if isinstance(node, ast.Import):
            named = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            named = [node.value]
        for text in named:
            yield from ((found[1], text) for found in _MODULE.finditer(text))


def tables_used(file: Path, owners: Owners) -> Iterator[tuple[str, str]]:
    """Yield the features whose tables the statements of a file name."""
    words = set(re.findall(r"\w+", _NOT_CODE.sub(" ", file.read_text())))
    yield from ((owners[table], f"the table {table}") for table in sorted(words & owners.keys()))


if __name__ == "__main__":
    sys.exit(main())
