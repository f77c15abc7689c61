"""SQL lives in `.sql` files: one named block for each statement, with a line that says what it is for."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

_HEADING = re.compile(r"^-- name: (\w+)\n((?:-- .*\n)+)", re.MULTILINE)
_PART = re.compile(r"^-- part: (\w+)\n(?:-- .*\n)+((?:.+\n)+)", re.MULTILINE)

_PIECE = re.compile(r"--[^\n]*|'[^']*'|\"[^\"]*\"|(\$\w*\$).*?\1|[^-'\"$;]+|;|.", re.DOTALL)


class SqlStatement(NamedTuple):
    """A named statement; `%(word)b` stands for a parameter."""

    name: str
    purpose: str
    text: bytes


@cache
def statements(package: str, filename: str, **words: str) -> dict[str, SqlStatement]:
    """The named blocks of a `.sql` file inside a package, with what `{word}` stands for written out.

    A block starts with `-- name: words_with_underscores`, then its purpose in comment lines. One that starts
    with `-- part: word` is what that word stands for in several of them.
    """
    source = folder_of(package).joinpath(filename).read_text(encoding="utf-8")
    for word, written in {**dict(_PART.findall(source)), **words}.items():
        source = source.replace(f"{{{word}}}", written.rstrip("\n"))
    source = _PART.sub("", source)
    headings = list(_HEADING.finditer(source))
    ends = [heading.start() for heading in headings[1:]] + [len(source)]
    return {
        heading[1]: SqlStatement(
            heading[1], _purpose(heading[2]), source[heading.end() : end].strip().encode()
        )
        for heading, end in zip(headings, ends, strict=True)
    }


def folder_of(package: str) -> Path:
    """Return where the files of a package are."""
    return Path(import_module(package).__path__[0])


def commands(text: str) -> Iterator[str]:
    """The statements of a text, each by itself, without the comments between them.

    >>> list(commands("CREATE TABLE a (b text DEFAULT ';'); -- one; two\\nDO $$ BEGIN; END $$;"))
    ["CREATE TABLE a (b text DEFAULT ';')", 'DO $$ BEGIN; END $$']
    """
    found = ""
    for piece in (match[0] for match in _PIECE.finditer(text + ";")):
        if piece == ";":
            if found.strip():
                yield found.strip()
            found = ""
        elif not piece.startswith("--"):
            found += piece


def _purpose(comments: str) -> str:
    return " ".join(line.removeprefix("-- ") for line in comments.splitlines())
