"""A million entries in eleven megabytes: sorted 64-bit hashes, found by upper bits and a short search.

The hashes are the interpreter's own, which nobody outside can foretell; a table lives in one process. Lines
of lists are parsed in any of the common formats.
"""

import re
import warnings
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from enum import Enum
from ipaddress import ip_address
from typing import NamedTuple

import msgspec

from tamias.filters.url_filters import parts_in_order
from tamias.model.errors import UrlError
from tamias.model.url import fetch_url


class BlockedPart(Enum):
    """The part of the Web that an entry refuses."""

    HOST = "host"
    """One host, as in a hosts file."""
    DOMAIN = "domain"
    """A host and all below it."""
    ADDRESS = "address"
    """An address and all below it, whatever its scheme."""
    PATTERN = "pattern"
    """Addresses with these parts, one after another: a text with `*`."""
    EXPRESSION = "expression"
    """Addresses in which a regular expression is found."""


class BlocklistEntry(NamedTuple):
    """An entry in its canonical form."""

    what: BlockedPart
    text: str


_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")
_ADBLOCK = re.compile(r"\|\|([^/^|*$]+)\^?$")
_DNSMASQ = re.compile(r"(?:address|local|server)=/([^/]+)/")
_HEADER = re.compile(r"\[[^:\]]*\]")
_IDLE_NAMES = frozenset({"localhost", "local", "broadcasthost", "localhost.localdomain", "0.0.0.0"})  # noqa: S104
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*|\*)://", re.IGNORECASE)

LONGEST_EXPRESSION = 1000
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})")
_QUANTIFIED_GROUP = re.compile(r"(?<!\\)\)(?:[*+]|\{)")


def entries(line: str) -> list[BlocklistEntry] | None:
    """Return what a line of a list says; nothing where it is a comment, None where it makes no sense.

    >>> entries("0.0.0.0 ads.example.org # banner"), entries("||example.org^"), entries("???")
    ([BlocklistEntry(what=<BlockedPart.HOST: 'host'>, text='ads.example.org')], \
[BlocklistEntry(what=<BlockedPart.DOMAIN: 'domain'>, text='example.org')], None)
    """
    text = line.strip()
    if not text or text[0] in "#!;" or _HEADER.fullmatch(text):
        return []
    if _NAME.fullmatch(text):
        return [BlocklistEntry(BlockedPart.DOMAIN, text)]
    if len(text) > 2 and text[0] == text[-1] == "/":
        return _expression(text[1:-1])
    words = text.partition(" #")[0].partition("\t#")[0].split()
    if len(words) > 1:
        return _hosts(words)
    return _one(words[0])


def expressions(line: str) -> list[BlocklistEntry] | None:
    """Return what a line of an `expressions` file says."""
    text = line.strip()
    return _expression(text) if text and not text.startswith("#") else []


def _hosts(words: list[str]) -> list[BlocklistEntry] | None:
    if not _is_address(words[0]):
        return None
    names = [_host(word) for word in words[1:] if word.lower() not in _IDLE_NAMES and not _is_address(word)]
    return None if None in names else [BlocklistEntry(BlockedPart.HOST, name) for name in names if name]


def _one(text: str) -> list[BlocklistEntry] | None:
    found = _ADBLOCK.fullmatch(text) or _DNSMASQ.match(text)
    if found:
        return _domain(found[1])
    if text.startswith(("*.", ".")) and "/" not in text and "*" not in text[1:]:
        return _domain(text.lstrip("*."))
    scheme = _SCHEME.match(text)
    bare = text[scheme.end() :] if scheme else text
    if "*" in bare:
        return _host_pattern(bare)
    if "/" in bare.rstrip("/") or scheme or "?" in bare:
        return _address(bare)
    return _domain(bare.rstrip("/"))


def _domain(text: str) -> list[BlocklistEntry] | None:
    name = _host(text)
    return None if name is None else [BlocklistEntry(BlockedPart.DOMAIN, name)]


def _address(bare: str) -> list[BlocklistEntry] | None:
    try:
        name, _, path = fetch_url(f"http://{bare}").removeprefix("http://").partition("/")
    except UrlError:
        return None
    name = name.rpartition("@")[2].removesuffix(".")
    if "." not in name and not name.startswith("["):
        return None
    if not path:
        return [BlocklistEntry(BlockedPart.DOMAIN, name)]
    return [BlocklistEntry(BlockedPart.ADDRESS, f"{name.removeprefix('www.')}/{path.rstrip('/')}")]


def _host_pattern(bare: str) -> list[BlocklistEntry] | None:
    parts = [part for part in bare.split("*") if part]
    # What has less than four characters to go by would keep out half the web.
    return [BlocklistEntry(BlockedPart.PATTERN, bare)] if sum(map(len, parts)) >= 4 else None


def _expression(text: str) -> list[BlocklistEntry] | None:
    """Accept only an expression that is fast on hostile addresses: no repeated group, one open repeat."""
    if len(text) > LONGEST_EXPRESSION or _QUANTIFIED_GROUP.search(text):
        return None
    if len(_UNBOUNDED.findall(text)) > 1:
        return None
    try:
        with warnings.catch_warnings(action="error"):  # what is to mean something else one day, too
            found = re.compile(text)
    except (re.error, OverflowError, RecursionError, Warning):
        return None
    return None if found.search("") else [BlocklistEntry(BlockedPart.EXPRESSION, text)]


def _host(text: str) -> str | None:
    """The host as addresses write it; None for what is none, or a single word."""
    name = text.lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        try:
            name = fetch_url(f"http://{name}/").removeprefix("http://").removesuffix("/")
        except UrlError:
            return None
    whole = name.startswith("[") or "." in name
    return name if whole and "/" not in name and "@" not in name else None


def _is_address(word: str) -> bool:
    try:
        ip_address(word.partition("%")[0])
    except ValueError:
        return False
    return True


MOST_PATTERNS = 1000
"""Patterns and expressions of one list: each is tried on each address."""
MOST_SEGMENTS = 32
"""Of a path, so that an address with a thousand slashes costs no more than others."""
_PATTERN_LENGTH = 2083
_EXPRESSION_LENGTH = 1000
_PER_SLOT = 4


class Pattern(msgspec.Struct, frozen=True):
    """A text with `*`, to be found from the host on."""

    text: str
    parts: tuple[str, ...]
    from_start: bool
    to_end: bool

    def matches(self, bare: str) -> bool:
        """Return whether an address without its scheme has it."""
        return parts_in_order(self.parts, bare, from_start=self.from_start, to_end=self.to_end)


class Match(msgspec.Struct, frozen=True):
    """The list that keeps an address out, and by what."""

    list: int
    by: str


class CollectedEntries:
    """The entries of one list while it is read: hashes only, for there may be many."""

    def __init__(self) -> None:
        self.hashes = array("q")
        self.patterns: list[Pattern] = []
        self.expressions: list[re.Pattern[str]] = []
        self.addresses = 0
        self.wrong = 0
        """Lines that make no sense."""

    def add(self, entry: BlocklistEntry) -> bool:
        """Return whether there was room for it."""
        match entry.what:
            case BlockedPart.PATTERN if len(self.patterns) < MOST_PATTERNS:
                self.patterns.append(_pattern(entry.text))
            case BlockedPart.EXPRESSION if len(self.expressions) < MOST_PATTERNS:
                self.expressions.append(re.compile(entry.text))
            case BlockedPart.PATTERN | BlockedPart.EXPRESSION:
                return False
            case BlockedPart.HOST:
                self.hashes.append(hash("=" + entry.text))
            case BlockedPart.DOMAIN:
                self.hashes.append(hash(entry.text))
            case BlockedPart.ADDRESS:
                self.addresses += 1
                self.hashes.append(hash(entry.text))
        return True

    def __len__(self) -> int:
        return len(self.hashes) + len(self.patterns) + len(self.expressions)


class BlocklistTable:
    """The table of all lists. It never changes: a changed list makes a new table."""

    def __init__(self, lists: Iterable[CollectedEntries] = ()) -> None:
        collected = list(lists)
        self._patterns = [(each.patterns, each.expressions) for each in collected]
        self._has_patterns = any(patterns or found for patterns, found in self._patterns)
        self._has_addresses = any(each.addresses for each in collected)
        self._hashes, self._lists = _merged(collected)
        self._shift, self._starts = _slots(self._hashes)
        self.entries = sum(map(len, collected))

    @property
    def size(self) -> int:
        """Bytes of the entries."""
        return sum(each.itemsize * len(each) for each in (self._hashes, self._lists, self._starts))

    def find(self, host: str, rest: str) -> Match | None:
        """The list that keeps out the address of a host, `rest` being path and query."""
        if self._hashes:
            found = self._find("=" + host, host) or self._find_domain(host)
            if found is None and self._has_addresses:
                found = self._find_address(host, rest)
            if found is not None:
                return found
        return self._find_pattern(host + rest) if self._has_patterns else None

    def _find(self, key: str, by: str) -> Match | None:
        number = hash(key)
        slot = (number >> self._shift) + (len(self._starts) >> 1)
        end = self._starts[slot + 1]
        place = bisect_left(self._hashes, number, self._starts[slot], end)
        if place < end and self._hashes[place] == number:
            return Match(self._lists[place], by)
        return None

    def _find_domain(self, host: str) -> Match | None:
        is_address = host[-1:] == "]" or host.rpartition(".")[2].isdigit()
        name = host
        while True:
            found = self._find(name, name)
            name = name.partition(".")[2]
            if found is not None or is_address or "." not in name:
                return found

    def _find_address(self, host: str, rest: str) -> Match | None:
        path = rest.partition("?")[0]
        bare = host.removeprefix("www.")
        for end in _ends(path):
            found = self._find(key := bare + path[:end], key)
            if found is not None:
                return found
        return self._find(key := bare + rest, key) if len(path) < len(rest) else None

    def _find_pattern(self, bare: str) -> Match | None:
        for number, (patterns, compiled) in enumerate(self._patterns):
            for pattern in patterns:
                if pattern.matches(bare[:_PATTERN_LENGTH]):
                    return Match(number, pattern.text)
            for expression in compiled:
                if expression.search(bare[:_EXPRESSION_LENGTH]):
                    return Match(number, f"/{expression.pattern}/")
        return None


def _ends(path: str) -> Iterator[int]:
    """Yield where the parts of a path end, the shortest first, and the whole of it."""
    place = path.find("/", 1)
    for _ in range(MOST_SEGMENTS):
        if place < 0:
            break
        yield place
        place = path.find("/", place + 1)
    if len(path) > 1 and not path.endswith("/"):
        yield len(path)


def _pattern(text: str) -> Pattern:
    host, slash, path = text.partition("/")
    parts = tuple(part for part in f"{host.lower()}{slash}{path}".split("*") if part)
    return Pattern(text, parts, from_start=not text.startswith("*"), to_end=not text.endswith("*"))


def _merged(lists: list[CollectedEntries]) -> tuple["array[int]", "array[int]"]:
    """Return all hashes in order, each once, and the first list that has it."""
    if not any(each.hashes for each in lists):
        return array("q"), array("H")
    import numpy as np

    hashes = np.concatenate([np.frombuffer(each.hashes, np.int64) for each in lists if each.hashes])
    numbers = np.repeat(np.arange(len(lists), dtype=np.uint16), [len(each.hashes) for each in lists])
    ordered, first = np.unique(hashes, return_index=True)
    return array("q", ordered.tobytes()), array("H", numbers[first].tobytes())


def _slots(hashes: "array[int]") -> tuple[int, "array[int]"]:
    """Return how far to shift a hash to get its slot, and where each slot begins."""
    if not hashes:
        return 63, array("I", (0, 0, 0))
    import numpy as np

    bits = max(1, (len(hashes) // _PER_SLOT).bit_length())
    edges = np.arange(-(1 << (bits - 1)), 1 << (bits - 1), dtype=np.int64) << np.int64(64 - bits)
    starts = np.searchsorted(np.frombuffer(hashes, np.int64), edges)
    whole = np.append(starts, len(hashes)).astype(np.uint32)
    return 64 - bits, array("I", whole.tobytes())
