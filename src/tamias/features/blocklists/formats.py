"""Parsing of single lines of block lists, in any of the common formats. Pure."""

import re
import warnings
from enum import Enum
from ipaddress import ip_address
from typing import NamedTuple

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
        return _pattern(bare)
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


def _pattern(bare: str) -> list[BlocklistEntry] | None:
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
