"""Tables that read records: which fields of a portal's record become which fields of a dataset.

A rule is a text of alternatives with blanks between them: the first that has a value counts, in a field of
many values all. An alternative is a path of names with dots between them, which goes through lists, or the
first of several paths (`a|b.c`), and after `>` how the value is read. It may be a template,
`{root}dataset/{id|name}`, which has no value if a part has none, or a constant, `=dct:creator`. A rule may
also be another table, a function of the record, or a tuple of rules.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar, cast, get_origin

import msgspec

from tamias.features.dcat.datasets.mapping import plain
from tamias.features.dcat.datasets.records import (
    NO_FIELDS,
    count,
    decoded,
    one_text,
    properties,
    several,
    tables,
    text,
    texts,
    web,
)
from tamias.model.vocabulary import sound_iri

S = TypeVar("S")
Rule = Any
"""A text, a table, a function of the record and the context, or a tuple of them."""
Context = Mapping[str, str]
Find = Callable[[Any, Context], Any]
Names = tuple[str, ...]

_PART = re.compile(r"\{([^}]*)\}")


def _shape(value: Any) -> str | None:
    return msgspec.json.encode(plain(value)).decode() if value and isinstance(value, dict) else None


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "count": count,
    "iri": lambda value: found if sound_iri(found := text(value)) else None,
    "iris": lambda value: tuple(filter(sound_iri, several(value))),
    "listed": lambda value: texts(decoded(value)),
    "mail": lambda value: (text(value) or "").removeprefix("mailto:") or None,
    "one": one_text,
    "several": several,
    "shape": _shape,
    "text": text,
    "texts": texts,
    "web": web,
}
"""`shape` reads an object as JSON text."""
_USUAL: Final = {"byte_size": "count", "homepage": "web"}


def at(value: Any, path: Names) -> list[Any]:
    """Return what stands at a path; lists, also in JSON text, are gone through on the way.

    >>> at({"a": [{"b": 1}, {"b": [2]}, 3]}, ("a", "b"))
    [1, [2]]
    """
    for step, name in enumerate(path):
        if not isinstance(value, dict):
            value = decoded(value)
            if isinstance(value, list):
                return [found for each in value for found in at(each, path[step:])]
            if not isinstance(value, dict):
                return []
        value = value.get(name)
    return [] if value is None else [value]


class Fields(Generic[S]):
    """A table that makes structs of one kind out of what stands at a path of a record."""

    def __init__(
        self,
        kind: type[S],
        path: str = "",
        /,
        *,
        when: Callable[[Any], bool] | None = None,
        after: int = 0,
        also: Callable[[Any, Context], Mapping[str, Any]] | None = None,
        **rules: Rule,
    ) -> None:
        """Read objects for which `when` is true, all but the first `after`; `also` gives more fields."""
        self._kind, self._path, self._when, self._after, self._also = kind, _names(path), when, after, also
        fields = {each.name: each for each in msgspec.structs.fields(kind)}  # type: ignore[arg-type]
        self._rules = [
            (
                name,
                _all(rule)
                if get_origin(fields[name].type) is tuple
                else _first(rule, _USUAL.get(name, "one")),
            )
            for name, rule in rules.items()
        ]
        self._required = [name for name, each in fields.items() if each.required]

    def all(self, record: Any, context: Context) -> Iterator[S]:
        """Yield a struct for each object at the path that has what it needs."""
        found: Iterable[Any] = (record,)
        if self._path:
            found = [each for value in at(record, self._path) for each in tables(decoded(value))][
                self._after :
            ]
        for each in found:
            if (self._when is None or self._when(each)) and (made := self.read(each, context)) is not None:
                yield made

    def of(self, record: Any, root: str, **context: str) -> S:
        """Return the struct of a whole record. Raise `ValueError` for one without what it needs."""
        made = self.read(record, {"root": root, **context})
        if made is None:
            raise ValueError(f"it has no {' and '.join(self._required)}")
        return made

    def read(self, record: Any, context: Context) -> S | None:
        """Return the struct that a record is read as; None without a value, or without one that it needs."""
        values = {name: found for name, find in self._rules if (found := find(record, context)) is not None}
        for name in self._required:
            if name not in values:
                return None
        if not values:
            return None
        return self._kind(**values, **self._also(record, context)) if self._also else self._kind(**values)


def each_of(path: str, rule: str) -> Find:
    """Return a rule for the first alternative of `rule` in each item of a list."""
    names, find = _names(path), _first(rule, "one")

    def found(record: Any, context: Context) -> list[Any]:
        items = [
            item for value in at(record, names) for item in (value if isinstance(value, list) else [value])
        ]
        return [value for item in items if (value := find(item, context))]

    return found


def terms(texts_of: Mapping[str, str], lists: Mapping[str, str] = NO_FIELDS, path: str = "") -> Find:
    """Return a rule for properties by the names of fields: texts in their languages, and lists of texts."""
    names = _names(path)
    return lambda record, _: [
        one
        for value in at(record, names)
        for each in tables(value)
        for one in properties(each, texts_of, lists)
    ]


def _names(path: str) -> Names:
    return tuple(filter(None, path.split(".")))


def _first(rule: Rule, reader: str) -> Find:
    """Return a function for the first value of a rule; None without one."""
    if isinstance(rule, Fields):
        return lambda record, context: next(rule.all(record, context), None)
    if not isinstance(rule, str | tuple):
        return cast("Find", rule)
    parts = rule.split(" ") if isinstance(rule, str) else rule
    finds = [
        _word(part, reader) if isinstance(part, str) and " " not in part else _first(part, reader)
        for part in parts
    ]
    if len(finds) == 1:
        return finds[0]

    def find_first(record: Any, context: Context) -> Any:
        for find in finds:
            value = find(record, context)
            if value is not None:
                return value
        return None

    return find_first


def _all(rule: Rule) -> Find:
    """Return a function for all values of a rule, as a tuple."""
    if isinstance(rule, Fields):
        return lambda record, context: tuple(rule.all(record, context)) or None
    if not isinstance(rule, str | tuple):
        return lambda record, context: tuple(rule(record, context)) or None
    finds = [*map(_word_of_many, rule.split(" "))] if isinstance(rule, str) else [*map(_all, rule)]
    if len(finds) == 1:
        return finds[0]
    return lambda record, context: (
        tuple(dict.fromkeys(each for find in finds for each in find(record, context) or ())) or None
    )


def _word(word: str, reader: str) -> Find:
    """Return a function for the first value of an alternative."""
    path, _, named = word.partition(">")
    if path.startswith("="):
        return lambda _record, _context: path[1:]
    if "{" in path:
        return _template(path, _READERS.get(named))
    names, read = _names(path), _READERS[named or reader]

    def find(record: Any, _context: Context) -> Any:
        for value in at(record, names):
            if (found := read(value)) is not None:
                return found
        return None

    return find


def _word_of_many(word: str) -> Find:
    """Return a function for all values of an alternative."""
    path, _, named = word.partition(">")
    if "{" in path:
        find = _template(path, _READERS.get(named))
        return lambda record, context: None if (value := find(record, context)) is None else (value,)
    read, paths = _READERS[named or "texts"], [_names(each) for each in path.split("|")]

    def find_all(record: Any, _context: Context) -> Any:
        for names in paths:
            found = [each for value in at(record, names) for each in _listed(read(value))]
            if found:
                return tuple(dict.fromkeys(found))
        return None

    return find_all


def _template(template: str, read: Callable[[Any], Any] | None) -> Find:
    parts = [(part, [_names(path) for path in part.split("|")]) for part in _PART.findall(template)]
    form = _PART.sub("{}", template).format

    def find(record: Any, context: Context) -> Any:
        values = []
        for name, paths in parts:
            value = context.get(name) or next(_texts_at(record, paths), None)
            if value is None:
                return None
            values.append(value)
        made = form(*values)
        return read(made) if read else made

    return find


def _texts_at(record: Any, paths: list[Names]) -> Iterator[str]:
    for path in paths:
        yield from filter(None, map(text, at(record, path)))


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple) else () if value is None else (value,)
