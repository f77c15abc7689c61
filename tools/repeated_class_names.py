"""Finds class names that stand for two things: one name, one thing.

`ALLOWED` holds those that are left, with how often each exists. It only shrinks.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src" / "tamias"

ALLOWED: dict[str, int] = {
    "Account": 2,
    "Answer": 2,
    "Archive": 2,
    "Asked": 3,
    "Change": 3,
    "Channel": 2,
    "Check": 2,
    "Claim": 2,
    "Claimed": 2,
    "Columns": 2,
    "Control": 2,
    "Credentials": 2,
    "Dataset": 2,
    "Desk": 2,
    "Ended": 2,
    "Entry": 4,
    "Extractor": 2,
    "Fault": 2,
    "Following": 2,
    "Form": 2,
    "Frontier": 2,
    "Health": 2,
    "Host": 2,
    "Known": 2,
    "LimitReached": 2,
    "Line": 2,
    "Lines": 2,
    "Listed": 3,
    "Listing": 3,
    "Meaning": 2,
    "Member": 4,
    "News": 2,
    "Page": 4,
    "Place": 7,
    "Plan": 2,
    "Policy": 2,
    "Portal": 2,
    "Problem": 2,
    "Progress": 2,
    "Rates": 2,
    "Reading": 2,
    "Record": 2,
    "Refused": 2,
    "Resource": 2,
    "Running": 2,
    "ServiceClient": 2,
    "Snapshot": 2,
    "Source": 3,
    "Statement": 4,
    "Statements": 4,
    "Stop": 2,
    "Table": 4,
    "Taken": 2,
    "Target": 2,
    "Text": 3,
    "Told": 4,
    "TooMuchError": 2,
    "Traffic": 2,
    "Trouble": 2,
    "Unreadable": 2,
    "Usage": 2,
    "Version": 2,
    "Waiting": 2,
    "Wanted": 3,
    "_Loader": 2,
    "_Page": 2,
    "_QueueGone": 2,
    "_Scan": 2,
    "_Terms": 3,
    "_Walk": 3,
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
