"""A rule file under examination: takes its words for what they must be, or tells file and line."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from pyoxigraph import Literal, NamedNode

from tamias.analyse.rules import lines
from tamias.analyse.rules.names import PREFIXES, check_template, expanded
from tamias.model.errors import ConfigError


class RuleFile:
    """The words of one file. Every method raises `ConfigError` for what does not fit."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = lines.KeyLines(text)
        self.prefixes = dict(PREFIXES)

    def template(self, path: lines.Path, value: Any) -> str:
        """A text whose variables are known."""
        if not isinstance(value, str):
            self.fail(path, f"expected a text, found {value!r}")
        try:
            check_template(value)
        except ValueError as error:
            self.fail(path, str(error))
        return value

    def language(self, path: lines.Path, value: Any) -> str:
        """A language tag."""
        try:
            return Literal("", language=self.text(path, value, "lang")).language or ""
        except ValueError:
            self.fail(path, f"{value!r} is not a language; write en or de-AT")

    def named(self, path: lines.Path, name: Any) -> NamedNode:
        """A prefixed name or a whole IRI, as a node."""
        try:
            return self.iri(path, expanded(self.text(path, name, "a name"), self.prefixes))
        except ValueError as error:
            self.fail(path, str(error))

    def iri(self, path: lines.Path, value: Any) -> NamedNode:
        """A whole IRI, as a node."""
        try:
            return NamedNode(self.text(path, value, "an IRI"))
        except ValueError as error:
            self.fail(path, f"{value!r} is not an IRI: {error}")

    def text(self, path: lines.Path, value: Any, what: str) -> str:
        """A text that is not empty."""
        if not isinstance(value, str) or not value:
            self.fail(path, f"{what} must be a text" if value is not None else f"{what} is missing")
        return value

    def texts(self, path: lines.Path, value: Any, what: str) -> tuple[str, ...]:
        """One text, or a list of them."""
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
            self.fail(path, f"{path[-1]} must be a text or a list of texts: {what}")
        return tuple(values)

    def flag(self, path: lines.Path, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            self.fail(path, f"{path[-1]} is true or false, not {value!r}")
        return value

    def table(self, path: lines.Path, value: Any) -> dict[str, Any]:
        """A table."""
        if not isinstance(value, dict):
            self.fail(path, f"{path[-1]} must be a table")
        return value

    def check_keys(
        self, path: lines.Path, table: Iterable[str], known: tuple[str, ...], *, properties: bool = True
    ) -> None:
        """Only known keys, and properties where they may stand."""
        for key in table:
            if key in known or (properties and ":" in key):
                continue
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            more = ", and properties such as dct:title" if properties and not near else ""
            self.fail((*path, key), f"there is no key {key!r} here; {hint}{more}")

    def place(self, path: lines.Path) -> str:
        """File and line of a key, in short."""
        return f"{self._path.name}:{self._lines.line(path)}"

    def fail(self, path: lines.Path, complaint: str) -> NoReturn:
        """Tells what is wrong, with file and line."""
        raise ConfigError(f"{self._path}:{self._lines.line(path)}: {complaint}")
