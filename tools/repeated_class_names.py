"""Finds class names that stand for two things: one name, one thing.

`ALLOWED` holds those that are left, with how often each exists. It only shrinks.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "tamias"

ALLOWED: dict[str, int] = {
    "Change": 2,
    "Ended": 2,
    "Fault": 2,
    "Following": 2,
    "Listing": 2,
    "News": 2,
    "Place": 3,
    "Policy": 2,
    "Running": 2,
    "ServiceClient": 2,
    "Snapshot": 2,
    "Source": 2,
    "Table": 2,
    "Target": 2,
    "Text": 2,
    "Told": 2,
    "Version": 2,
}


def main(sources: Path = SOURCES, allowed: dict[str, int] = ALLOWED) -> int:
    """Lists what is new, and what can be taken off the list; fails for what is new."""
    found = repeated(sources)
    new = {name: files for name, files in found.items() if len(files) > allowed.get(name, 1)}
    sys.stdout.writelines(
        f"class {name} exists {len(files)} times, give one another name: {', '.join(files)}\n"
        for name, files in sorted(new.items())
    )
    gone = [
        f"{name} ({len(found.get(name, '1'))})" for name in sorted(allowed) if _fewer(name, found, allowed)
    ]
    if gone:
        sys.stdout.write(f"lower ALLOWED in tools/{Path(__file__).name}: {', '.join(gone)}\n")
    return 1 if new else 0


def _fewer(name: str, found: dict[str, list[str]], allowed: dict[str, int]) -> bool:
    return len(found.get(name, "1")) < allowed[name]


def repeated(sources: Path) -> dict[str, list[str]]:
    """The files of each class name that exists more than once, nested and private classes too."""
    places = defaultdict(list)
    for file in sorted(sources.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file.relative_to(sources).as_posix())
    return {name: files for name, files in places.items() if len(files) > 1}


if __name__ == "__main__":
    sys.exit(main())
