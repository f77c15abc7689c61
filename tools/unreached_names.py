"""Finds public functions, classes and methods that nothing of the product reaches: only tests do, or nobody.

Code that only tests reach is no feature. A name is reached when a module imports it, an attribute of its name
is read, a template has it, its own module uses it outside its definition, a decorator registers it, or an
entry point names it. Names are compared without their classes: one that several share can hide another.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

PRODUCT = Path("src/tamias")
BESIDE = (Path("benchmarks"), Path("tools"))
ALLOWED = Path("tools/unreached_names.toml")
_REGISTERED = frozenset({"property", "staticmethod", "classmethod", "cached_property", "lru_cache", "cache"})
"""Decorators that change how a function is called, but do not call it."""
_ASYNCIO = frozenset(
    {"connection_made", "connection_lost", "data_received", "eof_received", "pause_writing", "resume_writing"}
)
"""Methods that the event loop calls."""
_WORD = re.compile(r"\w+")
_TARGET = re.compile(r"^\w*(?:\.\w+)+:")
"""What stands before the name in `module:name`, as rows of tables have it."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def main() -> int:
    """Lists what is unreached and not allowed, and what is allowed without need; fails where there is any."""
    allowed = tomllib.loads(ALLOWED.read_text())
    found = set(unreached(PRODUCT, Path("pyproject.toml"), BESIDE))
    said = [f"{name}: only tests reach it; use it, or delete it" for name in sorted(found - set(allowed))]
    said += [f"{name}: reached, or gone; take it out of {ALLOWED}" for name in sorted(set(allowed) - found)]
    sys.stdout.writelines(f"{line}\n" for line in said)
    return 1 if said else 0


def unreached(product: Path, project: Path, beside: Sequence[Path] = ()) -> Iterator[str]:
    """The full names of public definitions that nothing in the folder, or in those beside it, reaches."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(product.rglob("*.py"))}
    others = [ast.parse(path.read_text()) for folder in beside for path in folder.rglob("*.py")]
    uses = Counter[str](_entry_points(project))
    for tree in (*trees.values(), *others):
        uses.update(_uses(tree))
    for template in product.rglob("*.html"):
        uses.update(_WORD.findall(template.read_text()))
    for path, tree in trees.items():
        module = ".".join(path.relative_to(product.parent).with_suffix("").parts)
        for owner, node in _definitions(tree):
            if uses[node.name] <= Counter(_uses(node, inside=True))[node.name] and not _is_registered(node):
                yield f"{module}.{owner}{node.name}"


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Public ones at the top of a module, and public methods of classes that no library calls."""
    for node in tree.body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield "", node
        if isinstance(node, ast.ClassDef) and not _has_strange_base(node):
            for each in node.body:
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and _is_ours(each.name):
                    yield f"{node.name}.", each


def _is_ours(method: str) -> bool:
    return not method.startswith("_") and method not in _ASYNCIO


def _has_strange_base(node: ast.ClassDef) -> bool:
    """Whether a library may call its methods."""
    own = {"Struct", "Protocol", "TamiasError", "NamedTuple", "Enum", "IntEnum", "StrEnum"}
    return any(_last_name(base) not in own for base in node.bases)


def _is_registered(node: Definition) -> bool:
    return any(_last_name(each) not in _REGISTERED for each in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _uses(tree: ast.AST, *, inside: bool = False) -> Iterator[str]:
    """Names and attributes that are read, names that are imported, words of annotations in quotes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and not inside:
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = _TARGET.sub("", node.value)
            if name.isidentifier():
                yield name


def _entry_points(project: Path) -> Iterator[str]:
    table = tomllib.loads(project.read_text())["project"]
    groups = [table.get("scripts", {}), *table.get("entry-points", {}).values()]
    for group in groups:
        yield from (target.rpartition(":")[2] for target in group.values())


if __name__ == "__main__":
    sys.exit(main())
