"""The triple patterns of a SPARQL query, with the graphs that they are about: enough to know what it needs.

This is no parser of SPARQL: what is no query is refused by the store. It reads where patterns stand, and what
it does not understand it says it does not.
"""

import re
from typing import Final

import msgspec

from tamias.crawl.catalogue.query_text import unescaped

_TOKEN: Final = re.compile(
    r"""\s+ | \#[^\n\r]*
    | (?P<iri><[^<>"{}|^`\\\s]*>)
    | (?P<text>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3} | '{3}(?:[^'\\]|\\.|'(?!''))*'{3}
        | "(?:[^"\\\n\r]|\\.)*" | '(?:[^'\\\n\r]|\\.)*')
    | (?P<tag>@[A-Za-z][\w-]*)
    | (?P<variable>[?$]\w+)
    | (?P<blank>_:[\w.-]+)
    | (?P<name>(?:[^\W\d_][\w.-]*)?:(?:[\w:%-]|\\.|\.(?=[\w:%-]))*)
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<word>\w+)
    | (?P<sign>\^\^|&&|\|\||[<>!]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_TERMS: Final = ("iri", "text", "variable", "blank", "number")
_CONSTANT_WORDS: Final = ("TRUE", "FALSE")
_COMPARISONS: Final = ("<", ">", "<=", ">=", "=")


class NotUnderstood(Exception):
    """A query that is written in a way which this module does not follow."""


class TriplePattern(msgspec.Struct, frozen=True):
    """One, as it is written. Variables begin with `?`, IRIs with `<`, literals with `"`."""

    subject: str
    predicates: frozenset[str] | None
    """The IRIs that its path is made of; None when any predicate may fit."""
    is_path: bool
    """Whether the predicate is more than one IRI."""
    object: str
    block: int | None
    """The GRAPH block that it stands in; None: outside of all."""
    is_certain: bool
    """Whether every solution of the block has to fit it."""


class VariableComparison(msgspec.Struct, frozen=True):
    """`FILTER (?variable >= "literal")` of a block, for every solution."""

    variable: str
    operator: str
    literal: str
    block: int | None


class QueryPatterns(msgspec.Struct, frozen=True):
    """What a query matches."""

    graphs: list[str]
    """The name of each GRAPH block, an IRI or a variable."""
    certain: list[bool]
    """Whether every solution of the query has to fit the block."""
    opaque: set[int | None]
    """Blocks with a query of their own inside, whose variables may be others of the same name."""
    patterns: list[TriplePattern]
    comparisons: list[VariableComparison]
    dataset: list[str]
    """What FROM and FROM NAMED name."""


def query_patterns(query: str) -> QueryPatterns:
    """The patterns of a query, prefixes resolved. Raises `NotUnderstood`."""
    try:
        return _Reader(query).read()
    except RecursionError as error:
        raise NotUnderstood("nesting of this depth") from error


def may_choose(query: str, iri: str) -> bool:
    """Whether a query, understood or not, names an IRI otherwise than to leave it out with `!=`.

    >>> may_choose("PREFIX a: <urn:> DESCRIBE a:b", "urn:b")
    True
    >>> may_choose("PREFIX a: <urn:b> ASK { GRAPH ?g {} FILTER(?g != <urn:b>) }", "urn:b")
    False
    """
    prefixes: dict[str, str] = {}
    before = ["", ""]
    for kind, value in _tokens(unescaped(query)):
        if kind == "iri" and before[0].upper() == "PREFIX":
            prefixes[before[1]] = value[1:-1]
        elif before[1] != "!=" and iri == _named_iri(kind, value, prefixes):
            return True
        before = [before[1], value]
    return False


def _named_iri(kind: str, value: str, prefixes: dict[str, str]) -> str | None:
    if kind == "iri":
        return value[1:-1]
    prefix, _, local = value.partition(":")
    return prefixes.get(f"{prefix}:", "") + local if kind == "name" else None


class _Reader:
    def __init__(self, query: str) -> None:
        self._tokens = _tokens(unescaped(query))
        self._at = 0
        self._prefixes: dict[str, str] = {}
        self._fresh = 0
        self._found = QueryPatterns([], [], set(), [], [], [])

    def read(self) -> QueryPatterns:
        self._prologue()
        if self._word() == "CONSTRUCT":
            self._next()
            if self._value() == "{":  # the template
                self._skip("{", "}")
        if self._word() == "DESCRIBE":
            raise NotUnderstood("DESCRIBE")
        while self._at < len(self._tokens):
            if self._value() == "{":
                self._group(None, certain=True)
            elif self._word() == "FROM":
                self._next()
                if self._word() == "NAMED":
                    self._next()
                self._found.dataset.append(self._term())
            elif self._word() == "VALUES":
                self._values()
            elif self._value() == "(":
                self._expression(None, certain=False)
            else:
                self._next()
        return self._found

    def _prologue(self) -> None:
        while self._word() in ("PREFIX", "BASE"):
            if self._next()[1].upper() == "BASE":
                raise NotUnderstood("BASE")
            prefix = self._next()[1]
            self._prefixes[prefix] = self._next()[1][1:-1]

    def _group(self, block: int | None, *, certain: bool) -> None:
        self._expect("{")
        while (value := self._value()) != "}":
            word = self._word()
            if value == "{":
                self._group(block, certain=False)
            elif word in ("OPTIONAL", "MINUS", "UNION"):
                self._next()
                self._group(block, certain=False)
            elif word == "GRAPH":
                self._graph(certain=certain)
            elif word == "FILTER":
                self._next()
                self._filter(block, certain=certain)
            elif word == "BIND":
                self._next()
                self._expression(block, certain=False)
            elif word == "VALUES":
                self._values()
            elif word == "SELECT":
                self._subquery(block)
            elif value == ".":
                self._next()
            else:
                self._triples(block, certain=certain)
        # What stands before UNION is as uncertain as what stands after it: both are groups in a group.
        self._expect("}")

    def _graph(self, *, certain: bool) -> None:
        self._next()
        self._found.graphs.append(self._term())
        self._found.certain.append(certain)
        self._group(len(self._found.graphs) - 1, certain=True)

    def _subquery(self, block: int | None) -> None:
        """Up to the end of the group that it is in."""
        self._found.opaque.add(block)
        while self._value() != "{":
            if self._value() == "(":
                self._expression(block, certain=False)
            else:
                self._next()
        self._group(block, certain=False)
        while self._value() != "}":
            if self._word() == "VALUES":
                self._values()
            elif self._value() == "(":
                self._expression(block, certain=False)
            else:
                self._next()

    def _filter(self, block: int | None, *, certain: bool) -> None:
        while self._value() not in (
            "(",
            "{",
        ):  # NOT EXISTS, or a function, which makes of a value what it likes
            certain = False
            self._next()
        if self._value() == "{":
            self._group(block, certain=False)
        else:
            self._expression(block, certain=certain)

    def _expression(self, block: int | None, *, certain: bool) -> None:
        """In parentheses. Comparisons that are joined by `&&` at its top hold for all solutions."""
        self._expect("(")
        begin, depth, inner = self._at, 1, False
        while depth:
            value = self._value()
            if value == "{":  # EXISTS
                inner = True
                self._group(block, certain=False)
                continue
            depth += {"(": 1, ")": -1}.get(value, 0)
            inner = inner or depth > 1
            self._next()
        if certain and not inner:
            self._compare(self._tokens[begin : self._at - 1], block)

    def _compare(self, tokens: list[tuple[str, str]], block: int | None) -> None:
        if any(value in ("||", "!", "IN", "NOT") for _, value in tokens):
            return
        parts: list[list[tuple[str, str]]] = [[]]
        for token in tokens:
            if token[1] == "&&":
                parts.append([])
            else:
                parts[-1].append(token)
        for part in parts:
            places = [index for index, (_, value) in enumerate(part) if value in _COMPARISONS]
            if len(places) == 1:
                left, operator, right = part[: places[0]], part[places[0]][1], part[places[0] + 1 :]
                self._note(left, operator, right, block)

    def _note(
        self, left: list[tuple[str, str]], operator: str, right: list[tuple[str, str]], block: int | None
    ) -> None:
        if right and right[0][0] == "variable":
            left, right = right, left
            operator = operator.translate(str.maketrans("<>", "><"))
        if len(left) == 1 and left[0][0] == "variable" and right and right[0][0] == "text":
            literal = _Piece(self, right).whole_term()
            if literal is not None:
                self._found.comparisons.append(
                    VariableComparison(_variable(left[0][1]), operator, literal, block)
                )

    def _values(self) -> None:
        self._next()
        if self._value() == "(":
            self._skip("(", ")")
        else:
            self._next()
        self._skip("{", "}")

    def _triples(self, block: int | None, *, certain: bool) -> None:
        subject, has_more = self._node(block, certain=certain)
        if has_more or self._value() not in (".", "}"):
            self._properties(subject, block, certain=certain)

    def _properties(self, subject: str, block: int | None, *, certain: bool) -> None:
        while True:
            predicates, is_path = self._verb()
            while True:
                target, _ = self._node(block, certain=certain)
                pattern = TriplePattern(subject, predicates, is_path, target, block, certain)
                self._found.patterns.append(pattern)
                if self._value() != ",":
                    break
                self._next()
            while self._value() == ";":
                self._next()
                if self._value() in (".", "}", "]"):
                    return
                if self._value() != ";":
                    break
            else:
                return

    def _verb(self) -> tuple[frozenset[str] | None, bool]:
        """The IRIs of a predicate or a path, and whether it is a path."""
        if self._kind() == "variable":
            self._next()
            return None, False
        found: set[str] = set()
        count, negated = self._path(found)
        return (None, True) if negated else (frozenset(found), count > 1)

    def _path(self, found: set[str]) -> tuple[int, bool]:
        """How many parts it has, and whether it stands for what is not named."""
        count, negated = 0, False
        while True:
            while (value := self._value()) in ("^", "!"):
                count, negated = count + 1, negated or value == "!"
                self._next()
            if value == "(":
                self._next()
                inner, inner_negated = self._path(found) if self._value() != ")" else (0, False)
                self._expect(")")
                count, negated = count + inner + 1, negated or inner_negated
            else:
                found.add(_TYPE if value == "a" else self._iri())
                if value == "a":
                    self._next()
                count += 1
            while (value := self._value()) in ("*", "+", "?"):
                # A path of no length leads from everything to itself, whatever is said of it.
                count, negated = count + 1, negated or value != "+"
                self._next()
            if self._value() not in ("/", "|"):
                return count, negated
            self._next()

    def _node(self, block: int | None, *, certain: bool) -> tuple[str, bool]:
        """A term, or what stands in brackets under a name of its own; and whether properties must follow."""
        value = self._value()
        if value == "[":
            self._next()
            name = self._new_name()
            if self._value() != "]":
                self._properties(name, block, certain=certain)
                self._expect("]")
                return name, False
            self._next()
            return name, True
        if value == "(":
            raise NotUnderstood("a collection")
        return self._term(), True

    def _term(self) -> str:
        kind, value = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind == "name":
            return self._iri()
        if kind == "word" and value.upper() in _CONSTANT_WORDS:
            self._next()
            return f'"{value.lower()}"'
        if kind not in _TERMS:
            raise NotUnderstood(value)
        self._next()
        if kind == "text":
            return self._literal(value)
        return _variable(value) if kind == "variable" else f"?{value}" if kind == "blank" else value

    def _literal(self, text: str) -> str:
        quote = 3 if text[:3] in ('"""', "'''") else 1
        if "\\" in text:
            raise NotUnderstood("an escape")
        if self._at < len(self._tokens) and self._value() == "^^":
            self._next()
            return f'"{text[quote:-quote]}"^^{self._iri()}'
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "tag":
            return f'"{text[quote:-quote]}"{self._next()[1]}'
        return f'"{text[quote:-quote]}"'

    def _iri(self) -> str:
        kind, value = self._next()
        if kind == "iri":
            return value
        prefix, _, local = value.partition(":")
        if kind != "name" or "\\" in local or f"{prefix}:" not in self._prefixes:
            raise NotUnderstood(value)
        return f"<{self._prefixes[f'{prefix}:']}{local}>"

    def _new_name(self) -> str:
        self._fresh += 1
        return f"?[{self._fresh}"

    def _skip(self, opening: str, closing: str) -> None:
        """What is in braces or parentheses."""
        self._expect(opening)
        depth = 1
        while depth:
            value = self._next()[1]
            depth += (value == opening) - (value == closing)

    def _value(self) -> str:
        if self._at >= len(self._tokens):
            raise NotUnderstood("the end")
        kind, value = self._tokens[self._at]
        return value if kind in ("sign", "word") else ""

    def _kind(self) -> str:
        self._value()
        return self._tokens[self._at][0]

    def _word(self) -> str:
        if self._at >= len(self._tokens):
            return ""
        kind, value = self._tokens[self._at]
        return value.upper() if kind == "word" else ""

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise NotUnderstood("the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, value: str) -> None:
        if self._next()[1] != value:
            raise NotUnderstood(f"no {value}")


class _Piece(_Reader):
    """A few tokens of another query."""

    def __init__(self, whole: _Reader, tokens: list[tuple[str, str]]) -> None:
        self._tokens, self._at, self._prefixes = tokens, 0, whole._prefixes

    def whole_term(self) -> str | None:
        """The term that they are; None when they are more, such as a sum."""
        term = self._term()
        return term if self._at == len(self._tokens) else None


def _variable(value: str) -> str:
    return f"?{value[1:]}"


def _tokens(query: str) -> list[tuple[str, str]]:
    found = ((match.lastgroup, match[0]) for match in _TOKEN.finditer(query))
    return [(kind, value) for kind, value in found if kind is not None]
