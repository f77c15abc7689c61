"""The rules of a user, and the pages they are for.

Every word of a rule file is checked; whatever is wrong is told with file and line.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from tamias.features.markup.statements import resolved
from tamias.features.scraping.apply import apply
from tamias.features.scraping.words import (
    PREFIXES,
    KeyPath,
    PageRule,
    Pagination,
    PortalRules,
    RuleFile,
    Selector,
    SubjectRule,
    Term,
    ValueRule,
)
from tamias.filters.url_filters import parts_in_order
from tamias.model.errors import ConfigError
from tamias.model.finding import Finding, Problem
from tamias.model.url import authority, host

MAX_FILE = 1 << 20
MAX_NESTING = 8

_TOP = ("hosts", "prefixes", "page")
_PAGE = ("match", "except", "follow", "follow_only", "paginate")
_SUBJECT = ("each", "subject", "type")
_VALUE = ("select", "constant", "iri", "prefix", "datatype", "lang", "after", "before", "split",
          "number", "date", "first", "list")  # fmt: skip
_PAGINATE = ("parameter", "last", "start")
_ADDRESSES = frozenset({"href", "src"})
_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)")
_ATTRIBUTE = re.compile(r"(.*)@([A-Za-z_][\w:.-]*)", re.DOTALL)
_HOST = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]")
_COUNTING = re.compile(r":nth-|~(?!=)")


def load_portal(path: Path) -> PortalRules:
    """The portal that a rule file describes. Raises `ConfigError` that names file and line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the rule file {path}: {error.strerror or error}") from None
    if len(data) > MAX_FILE:
        raise ConfigError(f"{path}: a rule file may have {MAX_FILE} bytes, not {len(data)}")
    try:
        text = data.decode("utf-8")
        return _Loader(path, text).portal()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: the file is not in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.search(str(error))
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        raise ConfigError(f"{path}:{line}: {_AT_LINE.sub('', str(error))}") from None


class _Loader(RuleFile):
    """The loader of a rule file."""

    def __init__(self, path: Path, text: str) -> None:
        self._content = tomllib.loads(text)  # first: the lines of what is no TOML cannot be told
        super().__init__(path, text)
        self._counts = False

    def portal(self) -> PortalRules:
        """Return the rules of the file."""
        self.check_keys((), self._content, _TOP, properties=False)
        hosts = self.texts(("hosts",), self._content.get("hosts"), "host names")
        for each in hosts:
            if not _HOST.fullmatch(each):
                self.fail(("hosts",), f"{each!r} is not a host; write data.example.org or *.example.org")
        for prefix, iri in self.table(("prefixes",), self._content.get("prefixes", {})).items():
            self.iri(("prefixes", prefix), iri)
            self.prefixes[prefix] = iri
        pages = self._content.get("page", [])
        if not isinstance(pages, list) or not pages:
            self.fail(("page",), "there is no page; begin one with [[page]]")
        return PortalRules(
            hosts=hosts, pages=tuple(self._page(("page", at), page) for at, page in enumerate(pages))
        )

    def _page(self, path: KeyPath, page: Any) -> PageRule:
        table = self.table(path, page)
        self.check_keys(path, table, _PAGE + _SUBJECT)
        self._counts = False
        match = self.texts((*path, "match"), table.get("match"), "page patterns such as /dataset/*")
        for pattern in match:
            if not pattern.startswith(("/", "*")):
                self.fail((*path, "match"), f"{pattern!r} must begin with / or *, as a path does")
        own = {key: value for key, value in table.items() if key not in _PAGE}
        own.setdefault("subject", "{page}")
        follow = self.texts((*path, "follow"), table.get("follow", []), "selectors")
        return PageRule(
            match=match,
            unless=self.texts((*path, "except"), table.get("except", []), "page patterns"),
            follow=tuple(self._selector((*path, "follow"), each) for each in follow),
            follow_only=self.flag((*path, "follow_only"), table.get("follow_only", False)),
            paginate=self._pagination((*path, "paginate"), table.get("paginate")),
            subject=self._subject(path, own),
            counts=self._counts,
        )

    def _pagination(self, path: KeyPath, value: Any) -> Pagination | None:
        if value is None:
            return None
        table = self.table(path, value)
        self.check_keys(path, table, _PAGINATE, properties=False)
        last, start = table.get("last"), table.get("start", 2)
        if not isinstance(start, int) or isinstance(start, bool) or start < 0:
            self.fail(path, "start must be a number of a page")
        if not isinstance(last, int) or isinstance(last, bool):
            last = self._selector(path, self.text(path, last, "last, a number or a selector,"))
        parameter = self.text(path, table.get("parameter"), "parameter")
        return Pagination(parameter=parameter, last=last, start=start)

    def _subject(self, path: KeyPath, table: dict[str, Any]) -> SubjectRule:
        if len(path) > 2 + MAX_NESTING:
            self.fail(path, f"subjects may be nested {MAX_NESTING} deep")
        each, types = table.get("each"), self.texts((*path, "type"), table.get("type", []), "classes")
        properties = []
        for key, value in table.items():
            if ":" in key:
                predicate = self.named((*path, key), key)
                properties += [(predicate, rule) for rule in self._rules((*path, key), value)]
        return SubjectRule(
            place=self.place(path),
            each=None if each is None else self._css((*path, "each"), each),
            subject=self._naming((*path, "subject"), table.get("subject")),
            types=tuple(self.named((*path, "type"), name) for name in types),
            properties=tuple(properties),
        )

    def _naming(self, path: KeyPath, value: Any) -> str | ValueRule | None:
        if value is None:
            return None
        if isinstance(value, dict):
            rule = self._value(path, {"iri": True, "first": True, **value})
            if rule.selector is None:
                self.fail(path, "a subject is a text with variables, or a table with select")
            return rule
        return self.template(path, value)

    def _rules(self, path: KeyPath, value: Any) -> list[ValueRule | SubjectRule]:
        if isinstance(value, list):
            return [rule for each in value for rule in self._rules(path, each)]
        if isinstance(value, str):
            return [self._value(path, {"select": value})]
        if not isinstance(value, dict):
            return [self._value(path, {"constant": value})]
        if any(key in _SUBJECT or ":" in key for key in value):
            self.check_keys(path, value, _SUBJECT)
            return [self._subject(path, value)]
        return [self._value(path, value)]

    def _value(self, path: KeyPath, table: dict[str, Any]) -> ValueRule:
        self.check_keys(path, table, _VALUE, properties=False)
        if ("select" in table) == ("constant" in table):
            self.fail(path, "a value has either select or constant")
        selector = self._selector((*path, "select"), table["select"]) if "select" in table else None
        is_address = selector is not None and selector.attribute in _ADDRESSES
        is_iri = self.flag((*path, "iri"), table.get("iri", is_address))
        datatype, language = table.get("datatype"), table.get("lang")
        if sum((is_iri, datatype is not None, language is not None)) > 1:
            self.fail(path, "a value has one of iri, datatype and lang")
        kind = None if datatype is None else self.named((*path, "datatype"), datatype)
        language = None if language is None else self.language((*path, "lang"), language)
        said = table.get("constant")
        is_template = isinstance(said, str) and "{" in said
        return ValueRule(
            place=self.place(path),
            selector=selector,
            constant=None if selector or is_template else self._constant(path, said, is_iri, kind, language),
            template=self.template((*path, "constant"), said) if is_template else None,
            is_iri=is_iri,
            datatype=kind,
            language=language,
            prefix=self.template((*path, "prefix"), table.get("prefix", "")),
            number=self._number((*path, "number"), table.get("number", False)),
            first=self.flag((*path, "first"), table.get("first", False)),
            as_list=self.flag((*path, "list"), table.get("list", False)),
            **{
                key: self.text((*path, key), table[key], key)
                for key in ("after", "before", "split", "date")
                if key in table
            },
        )

    def _constant(
        self, path: KeyPath, value: Any, is_iri: bool, datatype: NamedNode | None, language: str | None
    ) -> Term:
        if is_iri:
            return self.named(path, value)
        if isinstance(value, bool | int | float) and datatype is None and language is None:
            return Literal(value)
        if isinstance(value, datetime | date):
            name = "dateTime" if isinstance(value, datetime) else "date"
            return Literal(value.isoformat(), datatype=datatype or NamedNode(PREFIXES["xsd"] + name))
        text = self.text(path, value, "constant")
        return Literal(text, language=language) if language else Literal(text, datatype=datatype)

    def _number(self, path: KeyPath, value: Any) -> Any:
        if value not in (True, False, ".", ","):
            self.fail(path, 'number is true, or the decimal sign: "." or ","')
        return value if isinstance(value, str) else "." if value else ""

    def _selector(self, path: KeyPath, value: Any) -> Selector:
        text = self.text(path, value, "the selector").strip()
        found = _ATTRIBUTE.fullmatch(text)
        css, attribute = (found[1].strip(), found[2].lower()) if found else (text, None)
        if css in {"", "."}:
            return Selector("", attribute)
        return Selector(self._css(path, css), attribute)

    def _css(self, path: KeyPath, value: Any) -> str:
        css = self.text(path, value, "the selector")
        try:
            LexborHTMLParser("").css(css)
        except SelectolaxError:
            self.fail(path, f"{css!r} is not a valid CSS selector")
        self._counts = self._counts or _COUNTING.search(css) is not None
        return css


def speaks_for(hosts: tuple[str, ...], url: str) -> bool:
    """Return whether the page's host is one of these.

    >>> speaks_for(("*.example.org",), "https://data.example.org/a"), speaks_for(("example.org",), "http://a.org/")
    (True, False)
    """
    name = host(url)
    return any(
        name == each or (each.startswith("*.") and (name.endswith(each[1:]) or name == each[2:]))
        for each in hosts
    )


def is_for(rule: PageRule, url: str) -> bool:
    """Return whether the rule is for the page, by its path and query."""
    path = url.partition("#")[0].removeprefix(authority(url)) or "/"
    if not any(matches(pattern, path) for pattern in rule.match):
        return False
    return not any(matches(pattern, path) for pattern in rule.unless)


def matches(pattern: str, text: str) -> bool:
    """Return whether the whole text fits; each `*` stands for any characters. Takes linear time.

    >>> matches("/dataset/*", "/dataset/a?b"), matches("/*/edit", "/dataset/a/edit"), matches("/a", "/ab")
    (True, True, False)
    """
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == text
    return parts_in_order(list(filter(None, parts)), text, from_start=bool(parts[0]), to_end=bool(parts[-1]))


MAX_TAGS_COUNTED = 20_000
"""Tags of a page on which selectors that count siblings (`:nth-child`, `~`) are tried: a second at worst."""


def load_rules(path: Path) -> "RuleBook":
    """The rules of a file, or of all `*.toml` files of a folder. Raises `ConfigError` with file and line."""
    if not path.is_dir():
        return RuleBook([load_portal(path)])
    files = sorted(path.glob("*.toml"))
    if not files:
        raise ConfigError(f"there is no rule file (*.toml) in {path}")
    return RuleBook([load_portal(file) for file in files])


class RuleBook:
    """Rules for any number of portals. A page without a rule costs almost nothing."""

    def __init__(self, portals: Iterable[PortalRules]) -> None:
        self._portals = tuple(portals)

    def applies(self, url: str) -> bool:
        """Return whether there is a rule for the page."""
        return bool(self._rules(url))

    def narrows(self, url: str) -> bool:
        """Return whether only the links that its rules name are followed."""
        return any(rule.follow_only for rule in self._rules(url))

    def extract(self, url: str, data: bytes, *, base: str | None = None) -> Iterator[Finding]:
        """Yield what the rules find on a page in UTF-8 that is safe for the HTML parser.

        Quads in the default graph; links to follow; what could not be made out, as problems. Never raises.
        """
        rules = self._rules(url)
        if not rules:
            return
        tree = LexborHTMLParser(data)
        counted = data.count(b"<") <= MAX_TAGS_COUNTED
        for rule in rules:
            if rule.counts and not counted:
                yield Problem(
                    f"{rule.subject.place}: more than {MAX_TAGS_COUNTED} tags on the page, too many for "
                    "selectors that count siblings"
                )
                continue
            yield from apply(rule, tree, url=url, base=base or _base(tree, url))

    def _rules(self, url: str) -> list[PageRule]:
        return [
            rule
            for portal in self._portals
            if speaks_for(portal.hosts, url)
            for rule in portal.pages
            if is_for(rule, url)
        ]


def _base(tree: LexborHTMLParser, url: str) -> str:
    node = tree.css_first("base[href]")
    return url if node is None else resolved((node.attrs.get("href") or "").strip(), url)
