"""Finds class names that stand for two things: one name, one thing."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "tamias"


def main(sources: Path = SOURCES) -> int:
    """Lists names that exist more than once; fails where there are any."""
    found = repeated(sources)
    sys.stdout.writelines(
        f"class {name} exists {len(files)} times, give one another name: {', '.join(files)}\n"
        for name, files in sorted(found.items())
    )
    return 1 if found else 0


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
