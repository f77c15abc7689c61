"""Line numbers of the keys of a TOML file, which the standard library's parser does not give."""

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]
"""Keys and indices from the top: ("page", 0, "dct:title")."""

_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''" + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'"
    r"|#[^\n]*|\n|[ \t\r]+|[\[\]{}=,.]|[^\s\[\]{}=,.\"'#]+|.",
    re.DOTALL,
)


class KeyLines:
    """Finds the line of a key in a text that is good TOML."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """Arrays of tables, and the index of their last table."""
        self._within: Path = ()
        for line, statement in _statements(text):
            self._take(line, statement)

    def line(self, path: Path) -> int:
        """The line of the key, or of the nearest table around it."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)

    def _take(self, line: int, statement: list[str]) -> None:
        if statement[0] == "[":
            is_array = statement[1] == "["
            self._within = self._header(_keys(statement), is_array=is_array)
            self._lines.setdefault(self._within, line)
        else:
            keys = _keys(statement[: statement.index("=")])
            self._lines.setdefault((*self._within, *keys), line)

    def _header(self, keys: list[str], *, is_array: bool) -> Path:
        path: Path = ()
        for position, key in enumerate(keys):
            path = (*path, key)
            if is_array and position == len(keys) - 1:
                self._tables[path] = self._tables.get(path, -1) + 1
            if path in self._tables:
                path = (*path, self._tables[path])
        return path


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Headers and assignments, each with its line and its pieces."""
    line = start = 1
    depth = 0
    statement: list[str] = []
    for found in _PIECE.finditer(text + "\n"):
        piece = found[0]
        if piece == "\n" and statement and depth == 0:
            yield start, statement
            statement = []
        elif not piece.isspace() and not piece.startswith("#"):
            start = start if statement else line
            statement.append(piece)
            depth += (piece in "[{") - (piece in "]}")
        line += piece.count("\n")


def _keys(statement: list[str]) -> list[str]:
    return [_unquoted(piece) for piece in statement if piece not in "[]."]


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    return piece[1:-1].replace('\\"', '"').replace("\\\\", "\\") if piece[0] == '"' else piece
