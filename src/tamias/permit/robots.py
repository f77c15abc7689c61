"""robots.txt as RFC 9309 has it, with the misspellings that Google tolerates. No input or output.

Where Google's comparison of paths and the RFC's differ, a URL is allowed only if both allow it.
"""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from urllib.parse import quote

import msgspec

from tamias.model.usage import AI_AGENTS, LICENCE

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ASCII = "".join(map(chr, range(128)))
_URI = "%-._~:/?#[]@!$&'()*+,;="

_UPPER_CASE = {f"{octet:02X}": f"%{octet:02X}" for octet in range(256)}
_DECODED = _UPPER_CASE | {f"{ord(character):02X}": character for character in _UNRESERVED}
_DECODED_IN_QUERY = _DECODED | {f"{ord(character):02X}": character for character in ":/?[]@"}


def path_of(url: str) -> str:
    """Path and query of an absolute URL, or of what is already a path.

    >>> path_of("https://example.org?q=1#part"), path_of("/a/b#part")
    ('/?q=1', '/a/b')
    """
    path = url.partition("#")[0]
    if not path.startswith("/"):
        after_scheme = path.partition("://")[2]
        starts = [start for start in (after_scheme.find("/"), after_scheme.find("?")) if start >= 0]
        path = after_scheme[min(starts, default=len(after_scheme)) :]
    return path if path.startswith("/") else "/" + path


def literal_pattern(value: str) -> str:
    """A pattern as Google compares it: octets above ASCII are escaped, escapes are in upper case.

    >>> literal_pattern("/caf\\u00e9/%7ejo")
    '/caf%C3%A9/%7Ejo'
    """
    return _respelt(quote(value.encode("utf-8", "surrogateescape"), safe=_ASCII), _UPPER_CASE)


def canonical_pattern(pattern: str) -> str:
    """A literal pattern as RFC 9309 compares it; `*` and a last `$` keep their meaning.

    >>> canonical_pattern("/%7Ejo/$5 *$")
    '/~jo/%245%20*$'
    """
    end = "$" if pattern.endswith("$") else ""
    return _canonical(pattern.removesuffix("$")).replace("$", "%24") + end


def canonical_path(path: str) -> str:
    """A URL's path as RFC 9309 compares it: here `*` and `$` are only themselves.

    >>> canonical_path("/%7Ejo%2F*?to=https%3A%2F%2Fexample.org")
    '/~jo%2F%2A?to=https://example.org'
    """
    return _canonical(path).replace("*", "%2A").replace("$", "%24")


def matches(path: str, pattern: str) -> bool:
    """Return whether the pattern matches from the path's start. Each octet of the path is passed once.

    >>> matches("/a/b/c.ttl", "/a/*.ttl$"), matches("/a/b/c.ttl.gz", "/a/*.ttl$")
    (True, False)
    """
    if "*" not in pattern:
        return path == pattern[:-1] if pattern.endswith("$") else path.startswith(pattern)
    anchored = pattern.endswith("$")
    head, *middle, tail = pattern.removesuffix("$").split("*")
    if not path.startswith(head):
        return False
    at = len(head)
    for part in middle:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return path.endswith(tail) and len(path) - len(tail) >= at if anchored else path.find(tail, at) >= 0


def _canonical(text: str) -> str:
    path, mark, query = quote(text.encode("utf-8", "replace"), safe=_URI).partition("?")
    # In a query the RFC takes `:` and `%3A` for the same. It encodes both; decoded they are the same too,
    # and patterns whose `*` spans the question mark still match.
    return _respelt(path, _DECODED) + mark + _respelt(query, _DECODED_IN_QUERY)


def _respelt(text: str, spelling: Mapping[str, str]) -> str:
    if "%" not in text:
        return text
    head, *rest = text.split("%")
    return head + "".join([spelling.get(part[:2].upper(), "%" + part[:2]) + part[2:] for part in rest])


TOKEN = "tamias"  # noqa: S105 - the product token of RFC 9309
"""The name by which robots.txt addresses us; the User-Agent header must contain it."""

MOST_BYTES = 500 * 1024
"""What is read of a robots.txt; a line cut by this limit is dropped, as half a rule is another rule."""

MOST_LINE_BYTES = 2083 * 8 - 1
"""What is read of one line; Google cuts there, too."""

MOST_SHOWN = 200
"""How many characters of a line are kept, to be shown as the reason."""

AI_CRAWLERS = (
    "ai2bot", "amazonbot", "anthropic-ai", "applebot-extended", "bytespider", "ccbot", "claudebot",
    "cohere-ai", "cohere-training-data-crawler", "diffbot", "facebookbot", "google-cloudvertexbot",
    "google-extended", "gptbot", "imagesiftbot", "img2dataset", "meta-externalagent", "omgili", "pangubot",
    "timpibot", "velenpublicwebcrawler", "webzio-extended",
)  # fmt: skip
"""Crawlers that gather text for the training of models, by the names that robots.txt uses."""
MOST_AI_RULES = 100
"""Of one group of AI crawlers."""

MOST_SITEMAPS = 100
MOST_LICENCES = 10
MOST_SIGNALS = 100
MOST_SIGNAL_CHARACTERS = 1000
"""A longer usage line is dropped: half of it could say the opposite."""

_USER_AGENT = ("user-agent", "useragent", "user agent")
_ALLOW = "allow"
_DISALLOW = ("disallow", "dissallow", "dissalow", "disalow", "diaslow", "diasllow", "disallaw")
_SITEMAP = ("sitemap", "site-map")
_CRAWL_DELAY = ("crawl-delay", "crawldelay", "crawl delay")
_SIGNALS = ("content-signal", "content-usage")
_ABSOLUTE = ("http://", "https://", "ftp://")

_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"  # noqa: S105 - an alphabet
# Google's parser also skips a mark that is cut short.
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef")
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class RobotsVerdict(msgspec.Struct, frozen=True):
    """The permission to fetch a URL, and the line of robots.txt or the reason that decided."""

    allowed: bool
    rule: str


class RobotsRule(msgspec.Struct, frozen=True, array_like=True):
    """An Allow or Disallow line of our group."""

    allow: bool
    pattern: str
    line: int
    text: str

    @property
    def verdict(self) -> RobotsVerdict:
        """Return what the rule says of a path that it matches."""
        return RobotsVerdict(self.allow, f"line {self.line}: {self.text}")


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rules of a robots.txt for us. Made to be cached: msgspec writes and reads them.

    The caches keep this value, not the file: it holds our group only, and needs no parsing.
    """

    literal: tuple[RobotsRule, ...] = ()
    """The strongest first: the longest pattern, and of equals Allow."""
    canonical: tuple[RobotsRule, ...] | None = None
    """The same in the RFC's spelling; None where that makes no difference."""
    crawl_delay: float | None = None
    """Seconds between two requests, the longest that is asked of us."""
    sitemaps: tuple[str, ...] = ()
    """Absolute addresses as written, whichever group they stand in."""
    signals: tuple[tuple[str, str], ...] = ()
    """Content-Signal and Content-Usage lines of our group, License lines of all: the key and its value."""
    ai_groups: tuple[tuple[str, tuple[RobotsRule, ...]], ...] = ()
    """The groups of AI crawlers: their names, and the rules of each, the strongest first."""
    suspect: bool = False
    """It looks like a web page, such as a "not found" with status 200."""
    blanket: RobotsVerdict | None = None
    """One answer for every URL, where there was no robots.txt to parse."""
    leads_to: str | None = None
    """Where the rules are, if robots.txt redirects into another queue; until they are had, all is closed."""

    def verdict(self, url: str) -> RobotsVerdict:
        """Return whether an absolute URL, or a path with its query, may be fetched."""
        if self.blanket is not None and "/robots.txt" not in url:
            return self.blanket
        path = path_of(url)
        if path == "/robots.txt":
            return _ROBOTS_ITSELF
        if self.blanket is not None:
            return self.blanket
        verdict = _strongest(self.literal, path)
        canonical = canonical_path(path)
        if not verdict.allowed or (self.canonical is None and canonical == path):
            return verdict
        second = _strongest(self.literal if self.canonical is None else self.canonical, canonical)
        return verdict if second.allowed else second

    def usage(self, url: str) -> tuple[tuple[str, str], ...]:
        """The lines about uses, and the AI crawlers that may not fetch the URL, as one line more."""
        if not self.ai_groups:
            return self.signals
        path = path_of(url)
        refused = [names for names, rules in self.ai_groups if not _strongest(rules, path).allowed]
        return (*self.signals, (AI_AGENTS, " ".join(refused))) if refused else self.signals


_ROBOTS_ITSELF = RobotsVerdict(True, "robots.txt itself may always be read")
_NO_MATCH = RobotsVerdict(True, "no rule of robots.txt matches")


def parse(body: bytes, token: str = TOKEN) -> Rules:
    """The rules for `token`: of the groups that name it or, if there are none, of those for `*`.

    Never raises: a line that makes no sense is passed over.
    """
    reader = _RobotsReader(_product(token))
    lines = _lines(body)
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    first = next((line for line in map(str.strip, lines) if line), "")
    return reader.rules(suspect=first.startswith("<"))


class _Group:
    """The names that consecutive User-agent lines share, until a line that closes their list."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.closed = False

    def name(self, name: str) -> None:
        if self.closed:
            self.names = set()
            self.closed = False
        self.names.add(name)


class _RobotsReader:
    """Collects, line by line, what is said to us and what is said to everyone."""

    def __init__(self, product: str) -> None:
        self.product = product
        self.named = False
        # Crawl-delay does not close the list of names before rules (RFC 9309, 2.2.4), but whoever writes
        # a delay for each of several crawlers, and no rule, means each delay for the name above it.
        self.rule_group = _Group()
        self.delay_group = _Group()
        self.signal_group = _Group()
        self.found: dict[str, list[RobotsRule]] = {name: [] for name in (*AI_CRAWLERS, product, "*")}
        self.delays: dict[str, list[float]] = {product: [], "*": []}
        self.signals: dict[str, list[tuple[str, str]]] = {product: [], "*": []}
        self.sitemaps: dict[str, None] = {}
        self.licences: dict[str, None] = {}

    def read(self, number: int, line: str) -> None:
        key, value = _key_and_value(line)
        # Google's parser compares the beginning of a key only; what it takes for a rule must be one here.
        if key.startswith(_USER_AGENT):
            self._name(value)
        elif key.startswith(_ALLOW):
            self._rule(True, value, number, line)
        elif key.startswith(_DISALLOW):
            self._rule(False, value, number, line)
        elif key.startswith(_CRAWL_DELAY):
            self._delay(value)
        elif key in _SIGNALS:
            self._signal(key, value)
        elif key == LICENCE:
            self._address(value, self.licences, MOST_LICENCES)
        elif key.startswith(_SITEMAP):
            self._address(value, self.sitemaps, MOST_SITEMAPS)

    def rules(self, suspect: bool) -> Rules:
        who = self.product if self.named else "*"
        found = self.found[who]
        literal = _by_strength(found)
        canonical = _by_strength(
            msgspec.structs.replace(rule, pattern=canonical_pattern(rule.pattern)) for rule in found
        )
        return Rules(
            literal=literal,
            canonical=None if canonical == literal else canonical,
            crawl_delay=max(self.delays[who], default=None),
            sitemaps=tuple(self.sitemaps),
            signals=(*self.signals[who], *((LICENCE, url) for url in self.licences)),
            ai_groups=self._ai_groups(),
            suspect=suspect,
        )

    def _ai_groups(self) -> tuple[tuple[str, tuple[RobotsRule, ...]], ...]:
        """Crawlers with the same rules together. Of too many rules the widest stay: they refuse more."""
        groups: dict[tuple[RobotsRule, ...], list[str]] = {}
        for name in AI_CRAWLERS:
            if not all(map(attrgetter("allow"), self.found[name])):
                groups.setdefault(_by_strength(self.found[name])[-MOST_AI_RULES:], []).append(name)
        return tuple((" ".join(names), rules) for rules, names in groups.items())

    def _name(self, value: str) -> None:
        # As in Google's parser, `*` and a space is for everybody, whatever follows.
        name = "*" if value == "*" or (value[:1] == "*" and value[1].isspace()) else _product(value)
        self.named = self.named or (name == self.product and name != "")
        self.rule_group.name(name)
        whole = value.partition("/")[0].strip().lower()
        if whole in AI_CRAWLERS:  # some have a digit, where a product token ends
            self.rule_group.name(whole)
        self.delay_group.name(name)
        self.signal_group.name(name)

    def _rule(self, allow: bool, value: str, number: int, line: str) -> None:
        self.rule_group.closed = self.delay_group.closed = self.signal_group.closed = True
        pattern = literal_pattern(value)
        if not pattern:
            return
        rule = RobotsRule(allow, pattern, number, _shown(line.strip()[:MOST_SHOWN]))
        for name in self.rule_group.names & self.found.keys():
            self.found[name].append(rule)

    def _delay(self, value: str) -> None:
        self.delay_group.closed = True
        seconds = _seconds(value)
        if seconds is None:
            return
        for name, delays in self.delays.items():
            if name in self.delay_group.names:
                delays.append(seconds)

    @staticmethod
    def _address(value: str, found: dict[str, None], most: int) -> None:
        """Take an absolute address, whichever group it stands in."""
        if value.lower().startswith(_ABSOLUTE) and len(found) < most:
            found[_shown(value)] = None

    def _signal(self, key: str, value: str) -> None:
        self.signal_group.closed = True
        if not value or len(value) > MOST_SIGNAL_CHARACTERS:
            return
        for name, signals in self.signals.items():
            if name in self.signal_group.names and len(signals) < MOST_SIGNALS:
                signals.append((key, _shown(value)))


def _lines(body: bytes) -> list[str]:
    cut = len(body) > MOST_BYTES
    # One byte more, because a line that ends exactly at the limit is whole.
    head = body[: MOST_BYTES + 1]
    if head.startswith(_UTF_16_MARKS):
        head = head.decode("utf-16", "replace").encode("utf-8", "replace")
    mark = next((mark for mark in _BYTE_ORDER_MARKS if head.startswith(mark)), b"")
    lines = head.removeprefix(mark).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if cut:
        lines.pop()
    return [line[:MOST_LINE_BYTES].decode("utf-8", "surrogateescape") for line in lines]


def _key_and_value(line: str) -> tuple[str, str]:
    """The two sides of the colon, the key in lower case; a forgotten colon is forgiven between two words."""
    said = line.partition("#")[0]
    key, colon, value = said.partition(":")
    if colon:
        return key.strip().lower(), value.strip()
    words = said.split()
    return (words[0].lower(), words[1]) if len(words) == 2 else ("", "")


def _product(agent: str) -> str:
    """The name at the start of a user agent, in lower case, such as `tamias` of `Tamias/1.0`."""
    return agent[: len(agent) - len(agent.lstrip(_TOKEN_CHARACTERS))].lower()


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _shown(text: str) -> str:
    """Text that can be stored and printed: octets that are no UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _by_strength(rules: Iterable[RobotsRule]) -> tuple[RobotsRule, ...]:
    return tuple(sorted(rules, key=lambda rule: (-len(rule.pattern), not rule.allow)))


def _strongest(rules: tuple[RobotsRule, ...], path: str) -> RobotsVerdict:
    for rule in rules:
        if matches(path, rule.pattern):
            return rule.verdict
    return _NO_MATCH
