"""Measures of a code base, one row of a Markdown table for each: `python tools/house.py WHEEL_OR_FOLDER...`.

Of a wheel its own package is measured. `docs/house.md` has the rows of Tamias and of four others.
"""

import ast
import statistics
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SIBLINGS = 15
SHORT = 60
COLUMNS = (
    *("", "files", "lines", "median lines of a file", f"files under {SHORT} lines"),
    *("class names that exist twice", f"folders over {SIBLINGS}", "most arguments of a constructor", "wheel"),
)


def main(arguments: list[str]) -> int:
    """Prints the table."""
    sys.stdout.write(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}\n")
    for argument in map(Path, arguments):
        if argument.is_dir():
            sys.stdout.write(row(argument.name, argument))
            continue
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(argument) as wheel:
            wheel.extractall(folder)
            package = max(packages(Path(folder)), key=lambda each: len(sources(each)))
            size = f"{argument.stat().st_size / 1000:,.0f} kB"
            sys.stdout.write(row("-".join(argument.name.split("-")[:2]), package, size))
    return 0


def packages(folder: Path) -> Iterator[Path]:
    """The importable packages right below a folder."""
    return (each.parent for each in folder.glob("*/__init__.py"))


def row(name: str, package: Path, wheel: str = "") -> str:
    """The measures of one package."""
    files = sources(package)
    lengths = [len(each.read_text(encoding="utf-8", errors="replace").splitlines()) for each in files]
    trees = [ast.parse(each.read_text(encoding="utf-8")) for each in files if each.suffix == ".py"]
    classes = Counter(
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )
    most, of = max(((count, name) for tree in trees for name, count in constructors(tree)), default=(0, ""))
    measured = [
        f"{len(files):,}",
        f"{sum(lengths):,}",
        f"{statistics.median(lengths):.0f}",
        f"{sum(length < SHORT for length in lengths):,}",
        f"{sum(count > 1 for count in classes.values())} of {len(classes)}",
        ", ".join(f"{folder} {count}" for folder, count in crowded(package)) or "none",
        f"{most} ({of})",
        wheel,
    ]
    return f"| {name} | {' | '.join(measured)} |\n"


def sources(package: Path) -> list[Path]:
    """Python and SQL, without what a vendor wrote."""
    return sorted(
        each for each in package.rglob("*") if each.suffix in {".py", ".sql"} and "vendor" not in str(each)
    )


def crowded(package: Path) -> list[tuple[str, int]]:
    """Folders with many modules and packages, and how many each has."""
    folders = {each.parent for each in package.rglob("*.py")}
    counts = {
        folder.relative_to(package.parent).as_posix(): sum(
            (each.suffix == ".py" and each.stem != "__init__") or (each / "__init__.py").exists()
            for each in folder.iterdir()
        )
        for folder in folders
    }
    return sorted(
        ((name, count) for name, count in counts.items() if count > SIBLINGS), key=lambda each: -each[1]
    )


def constructors(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Classes with a constructor, and its arguments besides `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    own = method.args
                    yield node.name, len(own.posonlyargs) + len(own.args) + len(own.kwonlyargs) - 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
