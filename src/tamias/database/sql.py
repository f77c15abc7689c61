"""SQL lives in `.sql` files: one named block for each statement, with a line that says what it is for."""

import re
from functools import cache
from importlib.resources import files

import msgspec

_HEADING = re.compile(r"^-- name: (\w+)\n((?:-- .*\n)+)", re.MULTILINE)


class SqlStatement(msgspec.Struct, frozen=True):
    """One named statement: `%(word)b` stands for a parameter."""

    name: str
    purpose: str
    text: bytes


@cache
def statements(package: str, filename: str) -> dict[str, SqlStatement]:
    """The named blocks of a `.sql` file inside a package.

    A block starts with `-- name: words_with_underscores`, then its purpose in comment lines.
    """
    source = files(package).joinpath(filename).read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(source))
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    return {
        heading[1]: SqlStatement(
            heading[1], _purpose(heading[2]), source[heading.end() : end].strip().encode()
        )
        for heading, end in zip(headings, ends, strict=True)
    }


def _purpose(comments: str) -> str:
    return " ".join(line.removeprefix("-- ") for line in comments.splitlines())
