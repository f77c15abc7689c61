"""Usage signals of one capture, from its headers, its page's metas and files of its host.

The files are robots.txt, ai.txt and tdmrep.json (TDMRep, as of 2024-05-10), and licences of Really Simple
Licensing (RSL 1.0), of which one that asks for a payment, or is for some users or countries only, is one
that we do not have. Content-Usage is a structured field (RFC 9651). In robots.txt a use may begin with a
path: of the lines that match, the longest paths count.

Pure. None of them changes what may be fetched; what they change is what is done with it (`model.usage`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tamias.model.site import Signal
from tamias.model.usage import (
    AI_AGENTS,
    AI_TXT,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    LICENCE,
    TAG_HEADERS,
    TDM_KEYS,
)
from tamias.model.usage import TDM_KEYS as KEYS
from tamias.permit.robots import (
    TOKEN,
    Rules,
    canonical_path,
    canonical_pattern,
    literal_pattern,
    matches,
    path_of,
)

if TYPE_CHECKING:
    from lxml import etree

MOST_CONTENTS = 10_000
USES = ("search", "ai-train", "ai-input")
"""The uses that an archive withholds content from."""
_SPACE = "{https://rslstandard.org/rsl}"
_FREE = frozenset({"free", "attribution"})
_ALL = frozenset({"all", "ai-all"})


class LicensedContent(msgspec.Struct, frozen=True):
    """Content of a host, by the pattern of its path, and the uses that are not free."""

    pattern: str
    refused: tuple[str, ...]


def licensed_content(body: bytes, origin: str) -> tuple[LicensedContent, ...]:
    """Return what a licence file says of the content of a host; what makes no sense is passed over.

    >>> licence = b'<license><prohibits type="usage">ai-train</prohibits></license>'
    >>> rsl = b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/a/">%s</content></rsl>' % licence
    >>> licensed_content(rsl, "https://example.org")
    (LicensedContent(pattern='/a/', refused=('ai-train',)),)
    """
    from lxml import etree  # most hosts have no licence

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    try:
        root = etree.fromstring(body, parser) if len(body) <= MOST_BYTES else None
    except (etree.XMLSyntaxError, ValueError):
        root = None
    if root is None or root.tag != f"{_SPACE}rsl":
        return ()
    return tuple(_contents(root.findall(f"{_SPACE}content")[:MOST_CONTENTS], origin))


def is_licence(body: bytes) -> bool:
    """Return whether a file may be a licence, by its namespace."""
    return _SPACE[1:-1].encode() in body[:MOST_BYTES]


def refused_uses(contents: Sequence[LicensedContent], url: str) -> tuple[str, ...]:
    """Return the uses of a URL that are refused; of the patterns that match, the longest decide."""
    path = canonical_path(path_of(url))
    found = [each for each in contents if matches(path, each.pattern)]
    longest = max((len(each.pattern) for each in found), default=0)
    refused = {use for each in found if len(each.pattern) == longest for use in each.refused}
    return tuple(use for use in USES if use in refused)


def _contents(elements: Sequence["etree._Element"], origin: str) -> Iterator[LicensedContent]:
    for element in elements:
        path = (element.get("url") or "").strip()
        path = (path.removeprefix(origin) or "/") if path.startswith(origin) else path
        licences = element.findall(f"{_SPACE}license")
        if path.startswith("/") and licences:
            refused = tuple(use for use in USES if not any(_allows(each, use) for each in licences))
            yield LicensedContent(canonical_pattern(literal_pattern(path)), refused)


def _allows(licence: "etree._Element", use: str) -> bool:
    """Return whether a licence allows a use to anybody, anywhere and for nothing."""
    words = {use, "all"} if use == "search" else {use, *_ALL}
    payments = [
        each.get("type", "use" if len(each) else "free") for each in licence.findall(f"{_SPACE}payment")
    ]
    permits = _words(licence, "permits", "usage")
    return (
        all(each in _FREE for each in payments)
        and not any(_words(licence, "permits", kind) for kind in ("user", "geo"))
        and (not permits or not words.isdisjoint(permits))
        and words.isdisjoint(_words(licence, "prohibits", "usage"))
    )


def _words(licence: "etree._Element", name: str, kind: str) -> set[str]:
    found = [each for each in licence.findall(f"{_SPACE}{name}") if each.get("type", "usage") == kind]
    return {word for each in found for word in (each.text or "").lower().replace(",", " ").split()}


_BARE = r'"(?:[ !#-\[\]-~]|\\["\\])*"|\?[01]|-?[0-9]{1,15}(?:\.[0-9]{1,3})?|[A-Za-z*][\w!#$%&\'*+.^`|~:/-]*'
_KEY = r"[a-z*][a-z0-9_.*-]*"
_MEMBER = re.compile(rf"({_KEY})(?:=({_BARE}))?((?:; *{_KEY}(?:=(?:{_BARE}))?)*)", re.ASCII)
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_PAIR = re.compile(r"([a-z0-9_-]+)\s*=\s*([a-z0-9_-]+)")


def content_usage(value: str) -> list[str]:
    """The preferences in a dictionary, `key=value` each; none if any of it is malformed, as RFC 9651 has it.

    >>> content_usage("train-ai=n, search=y;x=1"), content_usage("train-ai = n")
    (['train-ai=n', 'search=y'], [])
    """
    found: dict[str, str] = {}
    text, at = value.strip(" "), 0
    while at < len(text):
        member = _MEMBER.match(text, at)
        comma = _COMMA.match(text, member.end()) if member else None
        if member is None or (comma is None and member.end() < len(text)):
            return []
        found[member[1]] = member[2] or "?1"
        at = comma.end() if comma else member.end()
        if comma and at == len(text):
            return []
    return [f"{key}={preference}" for key, preference in found.items()]


def content_signal(value: str) -> list[str]:
    """The signals in a line, `key=value` each; what is none is passed over.

    >>> content_signal("search=yes, AI-Train = no, ???")
    ['search=yes', 'ai-train=no']
    """
    pairs = (_PAIR.fullmatch(part.strip()) for part in value.lower().split(","))
    return list(dict.fromkeys(f"{pair[1]}={pair[2]}" for pair in pairs if pair))


READERS = {CONTENT_USAGE: content_usage, CONTENT_SIGNAL: content_signal}


def robots_usage(lines: Iterable[tuple[str, str]], url: str) -> Iterator[tuple[str, str]]:
    """The uses that lines of robots.txt (their key, and what is behind the colon) grant or refuse for a URL.

    Two lines with the same path both count: whoever refuses wins.
    """
    path = canonical_path(path_of(url))
    by_key: dict[str, list[tuple[str, str]]] = {}
    for key, value in lines:
        pattern, uses = _path_and_uses(value)
        if key in READERS and (not pattern or matches(path, pattern)):
            by_key.setdefault(key, []).append((pattern, uses))
    for key, found in by_key.items():
        longest = max(len(pattern) for pattern, _uses in found)
        for pattern, uses in found:
            if len(pattern) == longest:
                yield from ((key, use) for use in READERS[key](uses))


def _path_and_uses(value: str) -> tuple[str, str]:
    if not value.startswith("/"):
        return "", value
    path, *rest = value.split(maxsplit=1)
    return canonical_pattern(literal_pattern(path)), "".join(rest)


PLACE = "/.well-known/tdmrep.json"
RESERVATION, POLICY = KEYS

MOST_BYTES = 1 << 20
MOST_RULES = 10_000
_LONGEST_POLICY = 2048


class TdmRule(msgspec.Struct, frozen=True, array_like=True):
    """The rule of the file for the paths that a pattern matches. Made to be cached."""

    pattern: str
    reservation: str | None = None
    policy: str | None = None


def tdm_rules(body: bytes) -> tuple[TdmRule, ...]:
    """The rules of a tdmrep.json, in order. What makes no sense is passed over; never raises."""
    try:
        rules = msgspec.json.decode(body[: MOST_BYTES + 1])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return tuple(_rules(rules[:MOST_RULES])) if isinstance(rules, list) else ()


def tdm_file_signals(rules: Sequence[TdmRule], url: str) -> tuple[Signal, ...]:
    """Return what the first rule that matches says of a URL."""
    path = canonical_path(path_of(url))
    rule = next((rule for rule in rules if matches(path, rule.pattern)), None)
    if rule is None:
        return ()
    fields = ((RESERVATION, rule.reservation), (POLICY, rule.policy))
    return tuple(Signal("tdmrep.json", key, value) for key, value in fields if value is not None)


def tdm_signals(source: str, pairs: Iterable[tuple[str, str]]) -> Iterator[Signal]:
    """Yield what headers or metas say: names in any case, and their values."""
    for name, value in pairs:
        key = name.strip().lower()
        if key in KEYS and (valid := _valid(key, value)) is not None:
            yield Signal(source, key, valid)


def _rules(entries: list[Any]) -> Iterator[TdmRule]:
    for entry in entries:
        location = entry.get("location") if isinstance(entry, dict) else None
        if isinstance(location, str) and location.startswith(("/", "*")):
            yield TdmRule(
                canonical_pattern(literal_pattern(location)),
                _valid(RESERVATION, entry.get(RESERVATION)),
                _valid(POLICY, entry.get(POLICY)),
            )


def _valid(key: str, value: object) -> str | None:
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if key == RESERVATION:
        return text if text in ("0", "1") else None
    return text if text and len(text) <= _LONGEST_POLICY else None


MOST_CHARACTERS = 32 * 1024
"""What is read of all headers of one name, or of one meta; a rule cut by this limit is dropped."""
MOST_SIGNALS = 200

SIGNAL_HEADERS = frozenset({*TAG_HEADERS, *TDM_KEYS, *READERS})
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_GROUP = re.compile(r"\s*(\*|[A-Za-z_][\w-]*)\s*=(.*)", re.DOTALL)
_NAMED = re.compile(r"\s*(\*|[A-Za-z_][\w-]*)\s*:(.*)", re.DOTALL)
_WEEKDAY = re.compile(r"(unavailable_after\s*:\s*[A-Za-z]+),", re.IGNORECASE)


def signals_of(
    headers: Iterable[tuple[str, str]],
    metas: Iterable[tuple[str, str]],
    robots_signals: Iterable[tuple[str, str]],
    agent_token: str = TOKEN,
    *,
    url: str = "/",
    tdm: Sequence[TdmRule] = (),
    ai: Rules | None = None,
    licensed: Sequence[LicensedContent] = (),
) -> tuple[Signal, ...]:
    """Return the signals for us: `robots_signals` are `Rules.usage`, `tdm` is the host's tdmrep.json.

    `ai` is the host's ai.txt, which has the form of a robots.txt, `licensed` its licences (RSL). Rules for
    other agents are left out; rules without effect, such as `noai`, are kept.
    """
    signal_headers = [(key, value) for name, value in headers if (key := name.lower()) in SIGNAL_HEADERS]
    said = [(name.strip().lower(), content) for name, content in metas]
    robots_signals = tuple(robots_signals)
    if not (signal_headers or said or robots_signals or tdm or ai or licensed):
        return ()
    found = [
        *(signal for key in TAG_HEADERS for signal in _tag_signals(key, signal_headers, agent_token.lower())),
        *_meta_signals(said, agent_token.lower()),
        *tdm_file_signals(tdm, url),
        *tdm_signals("header", signal_headers),
        *tdm_signals("meta", said),
        *(Signal("robots.txt", key, said) for key, said in robots_signals if key in (AI_AGENTS, LICENCE)),
        *(Signal("robots.txt", key, use) for key, use in robots_usage(robots_signals, url)),
        *_ai_txt_signals(ai, url),
        *_licence_signals(licensed, url),
        *_usage_headers(signal_headers),
    ]
    return tuple(dict.fromkeys(found))[:MOST_SIGNALS]


def tag_rules(values: Iterable[str], token: str, *, own_group_only: bool = False) -> list[str]:
    """The rules for us in X-Robots-Tag or Robots-Tag headers, each header one value.

    A group of our own, even an empty one, can stand instead of the group for all (Robots-Tag), or beside it.

    >>> tag_rules(["noindex, otherbot: none, tamias: nofollow", "*=nosnippet; otherbot=all"], "tamias")
    ['noindex', 'nofollow', 'nosnippet']
    """
    tagged = list(_tagged(_bounded(values)))
    named = own_group_only and any(agent == token for agent, _rule in tagged)
    ours = {token} if named else {token, "*"}
    return list(dict.fromkeys(rule for agent, rule in tagged if rule and agent in ours))


def _tag_signals(key: str, headers: Iterable[tuple[str, str]], token: str) -> Iterator[Signal]:
    values = [value for name, value in headers if name == key]
    rules = tag_rules(values, token, own_group_only=key == "robots-tag")
    return (Signal("header", key, rule) for rule in rules)


def _tagged(values: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Agent and rule; a group `agent=` is told by an empty rule as well."""
    for value in values:
        for group in _WEEKDAY.sub(r"\1", value).split(";"):
            agent, rules = "*", group
            if keyed := _GROUP.match(group):
                agent, rules = keyed[1].lower(), keyed[2]
                yield agent, ""
            for part in rules.split(","):
                rule = part
                named = _NAMED.match(part)
                if named and named[1].lower() not in _VALUED:
                    agent, rule = named[1].lower(), named[2]
                yield agent, _normalised(rule)


def _meta_signals(metas: Iterable[tuple[str, str]], token: str) -> Iterator[Signal]:
    for name, content in metas:
        if name in ("robots", token):
            rules = _WEEKDAY.sub(r"\1", "".join(_bounded([content]))).split(",")
            yield from (Signal("meta", name, rule) for rule in map(_normalised, rules) if rule)


def _usage_headers(headers: Sequence[tuple[str, str]]) -> Iterator[Signal]:
    for key, read in READERS.items():
        whole = ", ".join(_bounded(value for name, value in headers if name == key))
        yield from (Signal("header", key, use) for use in read(whole))


def _ai_txt_signals(rules: Rules | None, url: str) -> Iterator[Signal]:
    said = rules.verdict(url) if rules is not None else None
    if said is not None and not said.allowed:
        yield Signal(AI_TXT, "disallow", said.rule)


def _licence_signals(licensed: Sequence[LicensedContent], url: str) -> Iterator[Signal]:
    return (Signal("rsl", LICENCE, f"{use}=no") for use in refused_uses(licensed, url))


def _bounded(values: Iterable[str]) -> Iterator[str]:
    left = MOST_CHARACTERS
    for value in values:
        yield value if len(value) <= left else value[:left].rpartition(",")[0]
        left -= len(value)
        if left <= 0:
            return


def _normalised(rule: str) -> str:
    return " ".join(rule.split()).lower()
