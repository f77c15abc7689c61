"""Hold the size of the code within `budget.toml`: `python tools/budget.py [--write] [--trace]`.

Print each number as it is now, its budget and its goal. Fail when a number is over its budget, and when one
has fallen so far that its budget or docs/house.md must follow. `--write` lowers budgets to the numbers of
now, adds those of new folders, rewrites the table of docs/house.md, and resolves git's conflicts in both. It
never raises one: that is an edit by hand. `--trace` runs tools/trace_visit.py, which takes half a minute;
without it the numbers of its walks are taken from `budget.toml`.
"""

import ast
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE, PAGE = ROOT / "budget.toml", ROOT / "docs" / "house.md"
MODULES = 15
BANNED = re.compile(r"_(told|kept|had|came|asked|spelt|anew|strangers|homeless|crowded|aside)(?=_)")
# A docstring that begins with one of these begins with neither a verb nor the noun it describes.
FRAGMENT = re.compile(
    r"\W*(what|whether|how|where|which|why|when|who|whom|whose|whoever|whatever|of|for|as|in|from|by|with|without"
    r"|until|after|before|to|at|between|inside|on|into|around|under|while|so|also|if|about|only|not|up|than|since"
    r"|because|through|over|behind|within|beside|against|among|though|it|its|they|them|their|those|these|that"
    r"|this|there|all|none|nothing|no|nobody|others|both|something|somebody|everything|anything|everybody|some"
    r"|every|each|any|many|more|most|several|another|other|one)\b",
    re.IGNORECASE,
)
COMMENTS = {".py": "#", ".sql": "--", ".js": "//", ".css": "/*", ".html": "{#", ".rs": "//", ".proto": "//"}
NOT_OURS = {"__pycache__", "libraries", "target"}
NOT_TEXT = {".binpb", ".pyc"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
BRANCHES = (*LOOPS, ast.If, ast.IfExp, ast.ExceptHandler, ast.match_case, ast.Assert)
NAMED = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg", ast.alias: "asname"}
NAMED |= dict.fromkeys((*FUNCTIONS, ast.ClassDef), "name")
NUMBER = re.compile(r'"?([\w.]+)"? = (\d+)')
CELLS = re.compile(r"\| ([\w.]+) \| ([\d,]+) \|")
GENERATED = re.compile(r"(?<=<!-- tools/budget.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
# The end state: up to 5 % fragments among docstrings, no feature over 8,000 lines. It is not in
# `budget.toml`, so that no change of the budget moves a goal.
GOALS = {
    "architecture.words": 2000,
    "benchmarks.lines": 10_000,
    "core.lines": 42_000,
    "csv.calls": 2500,
    "csv.classes": 35,
    "csv.files": 80,
    "docstrings.fragments": 336,
    "names.banned": 0,
    "names.told": 0,
    "src.code": 78_000,
    "src.lines": 105_000,
    "src.most.complexity": 15,
    "turtle.calls": 600,
    "turtle.calls_of_100": 600,
    "turtle.classes": 12,
    "turtle.files": 60,
    "turtle.longest_file": 500,
}
Numbers = Mapping[str, int]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module


def main(arguments: list[str]) -> int:
    """Print the numbers and what is wrong with them; with `--write`, write both files first."""
    tables = read_tables(FILE.read_text())
    budget = tables["budget"]
    now, docstrings = measure(ROOT)
    walks = filter(is_walk, budget)
    now |= measure_walks() if "--trace" in arguments else {name: budget[name] for name in walks}
    if "--write" in arguments:
        budget = lower(budget, now)
        lines = [f'"{name}" = {number}\n' for name, number in budget.items()]
        FILE.write_text("".join([FILE.read_text().partition("[budget]\n")[0], "[budget]\n", *lines]))
        text = f"\n{render({'now': now, 'goal': GOALS})}\n{docstrings}\n\n"
        PAGE.write_text(GENERATED.sub(text, PAGE.read_text()))
    sys.stdout.write(f"{render({'now': now, 'budget': budget, 'goal': GOALS})}\n{docstrings}\n")
    cells = CELLS.findall("".join(GENERATED.findall(PAGE.read_text())))
    shown = {name: int(number.replace(",", "")) for name, number in cells}
    problems = [*find_problems(now, budget, tables["allowance"]), *find_stale(now, shown, PAGE)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))


def read_tables(text: str) -> dict[str, dict[str, int]]:
    """Read `budget.toml`; where git left both sides of a conflict, the higher number is read."""
    tables: dict[str, dict[str, int]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            table = tables.setdefault(line.strip("[]"), {})
        elif found := NUMBER.match(line):
            table[found[1]] = max(int(found[2]), table.get(found[1], 0))
    return tables


def lower(budget: Numbers, now: Numbers) -> dict[str, int]:
    """Return the budget lowered to the numbers of now; lines may move between parts within the total."""
    within = now["src.lines"] <= budget.get("src.lines", now["src.lines"])
    return {
        name: number
        if within and name.startswith(("folder.", "feature."))
        else min(number, budget.get(name, number))
        for name, number in sorted(now.items())
    }


def is_walk(name: str) -> bool:
    """Return whether a number is measured by a traced crawl."""
    return name.startswith(("csv.", "turtle."))


def render(columns: Mapping[str, Numbers]) -> str:
    """Return a Markdown table of numbers, with a row for each of those in the first column."""
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    for name in sorted(columns["now"]):
        rows += [[name, *(f"{each[name]:,}" if name in each else "" for each in columns.values())]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def find_problems(now: Numbers, budget: Numbers, allowance: Numbers) -> Iterator[str]:
    """Yield a line for each number that is over its budget or its allowance, or far below its budget."""
    for name, number in now.items():
        if number > budget.get(name, number) + noise(name, number):
            way = (
                "run --write if lines moved"
                if name.startswith(("folder.", "feature."))
                else "or raise it by hand"
            )
            yield f"{name} rose from {budget[name]:,} to {number:,}: delete something, {way}"
        feature = name.removeprefix("feature.").removesuffix(".lines")
        if number > allowance.get(feature, number):
            yield f"{name} is {number:,}: its allowance is {allowance[feature]:,}"
    yield from find_stale({name: min(now[name], budget.get(name, now[name])) for name in now}, budget, FILE)


def find_stale(now: Numbers, written: Numbers, file: Path) -> Iterator[str]:
    """Yield a line for each number that a file does not have, or from which the number of now is far."""
    for name in sorted({*now, *written}):
        number, there = now.get(name, 0), written.get(name, 0)
        slack = max(10 if there < 1000 else there // 100, noise(name, there))
        if name not in written or abs(there - number) > slack:
            yield f"{name} is {number:,} and {there:,} in {file.name}: run python tools/budget.py --write"


def noise(name: str, number: int) -> int:
    """Return how much a number differs between runs: timers of a worker fall into a walk or not."""
    return (number * 5 // 100 if ".calls" in name else 1) if is_walk(name) else 0


def measure_walks() -> dict[str, int]:
    """Return the numbers of the traced walks."""
    tool = runpy.run_path(str(ROOT / "tools" / "trace_visit.py"))
    return {
        f"{walk}.{name}": number
        for walk in tool["WALKS"]
        for name, number in tool["trace"](walk)["numbers"].items()
    }


def measure(root: Path) -> tuple[dict[str, int], str]:
    """Return the numbers of a checkout by name, without walks, and a sentence about its docstrings."""
    package, files = root / "src" / "tamias", find_sources(root / "src")
    with ProcessPoolExecutor() as pool:
        measured = dict(zip(files, pool.map(measure_file, files, chunksize=40), strict=True))
    total = sum(measured.values(), Counter[str]())
    numbers = {
        "architecture.words": len((root / "docs" / "architecture.md").read_text().split()),
        "benchmarks.lines": count_lines(root / "benchmarks"),
        "docstrings.fragments": total["fragments"],
        "names.banned": total["banned"],
        "names.told": total["told"],
        "src.code": total["code"],
        "src.files.python": total[".py"],
        "src.files.sql": total[".sql"],
        "src.folders_over_15": count_full_folders(package),
        "src.lines": total["lines"],
        "src.nodes": total["nodes"],
    }
    for most in ("arguments", "complexity", "file"):
        numbers[f"src.most.{most}"] = max(each[f"most.{most}"] for each in measured.values())
    parts = Counter[str]()
    for file, found in measured.items():
        first, *inside = file.relative_to(package).parts
        if first == "features" and len(inside) > 1:
            parts[f"feature.{inside[0]}.lines"] += found["lines"]
        else:
            parts[f"folder.{first if inside else 'top'}.lines"] += found["lines"]
            parts["core.lines"] += found["lines"]
            parts["core.code"] += found["code"]
    numbers |= parts
    if (root / "native").exists():
        numbers["native.lines"] = count_lines(root / "native")
    share = 100 * total["fragments"] / max(1, total["docstrings"])
    return numbers, f"{share:.1f} % of {total['docstrings']:,} docstrings are fragments."


def find_sources(folder: Path) -> list[Path]:
    """Return the files of text below a folder, without what a build makes or a vendor wrote."""
    found = (each for each in folder.rglob("*") if each.suffix not in NOT_TEXT and each.is_file())
    return sorted(each for each in found if NOT_OURS.isdisjoint(each.parts))


def count_lines(folder: Path) -> int:
    """Count the lines of all files of text below a folder."""
    return sum(len(each.read_text().splitlines()) for each in find_sources(folder))


def count_full_folders(package: Path) -> int:
    """Count the folders with more than 15 modules and packages."""
    modules = Counter(each.parent for each in package.rglob("*.py") if each.stem != "__init__")
    packages = Counter(each.parent.parent for each in package.rglob("__init__.py") if each.parent != package)
    return sum(count > MODULES for count in (modules + packages).values())


def measure_file(file: Path) -> Counter[str]:
    """Return the counts of one file; those named `most` do not add up over files."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = Counter({"lines": len(lines), "most.file": len(lines), file.suffix: 1})
    found["code"] = count_code(lines, COMMENTS.get(file.suffix, "\0"))
    if file.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            found["nodes"] += 1
            if (attribute := NAMED.get(type(node))) and (name := getattr(node, attribute)):
                found["told"] += name == "told"
                found["banned"] += is_banned(name)
            if isinstance(node, Definition):
                _measure_definition(node, lines, found)
    return found


def _measure_definition(node: Definition, lines: list[str], found: Counter[str]) -> None:
    if docstring := ast.get_docstring(node, clean=False):
        found["code"] -= count_code(lines[node.body[0].lineno - 1 : node.body[0].end_lineno], "#")
        found["docstrings"] += 1
        found["fragments"] += FRAGMENT.match(docstring) is not None
    if isinstance(node, FUNCTIONS):
        found["most.complexity"] = max(found["most.complexity"], measure_complexity(node))
        if node.name == "__init__":
            arguments = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) - 1
            found["most.arguments"] = max(found["most.arguments"], arguments)


def count_code(lines: list[str], comment: str) -> int:
    """Count the lines that are neither blank nor a comment."""
    return sum(bool(text) and not text.startswith(comment) for text in map(str.strip, lines))


@cache
def is_banned(identifier: str) -> bool:
    """Return whether a word of an identifier, as underscores and capitals divide it, is banned."""
    words = re.sub("[A-Z]+", r"_\g<0>", identifier).lower()
    return BANNED.search(f"_{words}_") is not None


def measure_complexity(function: ast.AST) -> int:
    """Return McCabe's number, with each `and`, `or`, comprehension and `else` of a loop as a branch."""
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1 + (isinstance(node, LOOPS) and bool(node.orelse))
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
