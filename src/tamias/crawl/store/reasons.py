"""Reasons of refusals, failures and skips, put together by what they have in common, and what can be done."""

import re

import msgspec

MOST_KINDS = 100
"""Kinds of reasons that are counted apart; what comes later is counted as others."""
OTHER = "other reasons"


class ReasonCount(msgspec.Struct):
    """URLs whose visits ended for the same kind of reason."""

    outcome: str
    kind: str
    advice: str
    """What to do about it; empty where nothing can be done."""
    count: int
    example: str
    """One of the URLs."""
    reason: str
    """Why that one, in full."""


class ReasonCounts(msgspec.Struct):
    """Counts reasons, in bounded memory."""

    counts: dict[str, ReasonCount] = msgspec.field(default_factory=dict)
    """By outcome and kind."""

    def add(self, outcome: str, reason: str, url: str, count: int = 1) -> None:
        """More URLs with the same reason, one of them by name."""
        kind, advice = kind_of_reason(reason)
        if f"{outcome} {kind}" not in self.counts and len(self.counts) >= MOST_KINDS:
            kind, advice = OTHER, ""
        self._add(ReasonCount(outcome, kind, advice, count, url, reason))

    def merge(self, others: "ReasonCounts") -> None:
        """All that somebody else has counted."""
        for each in others.counts.values():
            self._add(each)

    def top(self, most: int | None = None) -> list[ReasonCount]:
        """The most frequent first."""
        return sorted(self.counts.values(), key=lambda each: (-each.count, each.outcome, each.kind))[:most]

    def _add(self, more: ReasonCount) -> None:
        known = self.counts.get(f"{more.outcome} {more.kind}")
        if known is None:
            self.counts[f"{more.outcome} {more.kind}"] = msgspec.structs.replace(more)
        else:
            known.count += more.count


_ADVICE = (
    (r"(\w[\w' -]*) address [0-9a-f]*[.:][0-9a-f.:]*", r"\1 address", "use --allow-private"),
    (r"\(limit ([a-z_]+\.[a-z_]+)[),]", r"limit \1", r"raise \1 in tamias.toml"),
    (
        r"(?:^|\brefused by )robots\.txt: (?:line|the rule)\b",
        "robots.txt",
        "use --no-robots if the site's owner agrees",
    ),
    (
        r"^wall: (.*) challenge",
        r"wall: \1",
        "ask the site's owner to let your User-Agent pass; nothing was stored as a version",
    ),
    (r"\bforgotten on (\S+?):", r"forgotten on \1", "tamias forget --lift lets a URL be fetched again"),
    (r"\bpattern: exclude '(.*)' matches", r"--exclude '\1'", "run again without that --exclude"),
    (r"\bpattern: no include matches", "no --include matches", "run again with a wider --include"),
    (r"\bscope (\w+):", r"scope \1", "use a wider --scope"),
    (r"\bblock ?list\b", "on a block list", "see filters.blocklists in tamias.toml"),
    (r"\btrap: .* (max_\w+) \d+", r"limit filters.\1", r"raise filters.\1 in tamias.toml"),
    (r"\bno fetcher for (\w+)", r"no fetcher for \1 addresses", ""),
    (r"\bconnection refused by", "connection refused", "check the port, and whether the server runs"),
    (r"\bname does not resolve", "name does not resolve", "check the spelling of the host"),
    (r"\bTLS certificate\b.*? refused", "TLS certificate refused", ""),
    (r"\b(4(?:01|03|07) [A-Z]\w+)", r"\1", "the server wants a login or does not want crawlers"),
    (r"\b(429 [A-Z]\w+(?: \w+)*)", r"\1", "use a longer --delay"),
    (
        r"\b((?:404|410) [A-Z]\w+(?: [A-Z]\w+)*)",
        r"\1",
        "it is not there any more; correct the link or the seed",
    ),
    (
        r"(?<![\w.:/])(5\d\d [A-Z][\w-]+(?: [A-Z][\w-]+)*)",
        r"\1",
        "once the server works again, run tamias crawls reopen --outcome failed",
    ),
    (r"(?<![\w.:/])([1-5]\d\d [A-Z][\w-]+(?: [A-Z][\w-]+)*)", r"\1", ""),
)
_PATTERNS = tuple((re.compile(pattern), kind, advice) for pattern, kind, advice in _ADVICE)
_DETAILS = re.compile(
    r"\b\w+://\S+|'[^']*'|\"[^\"]*\"|\b[\w-]+(?:\.[\w-]+)+(?::\d+)?|\[[0-9a-f:.]+\]|\d[\d.,:]*"
)
_SINCE = re.compile(r"\bunreachable since [\d: -]+ UTC \(\d+ tr(?:y|ies)\): ")
_LONGEST_KIND = 80
_LONGEST_REASON = 1000
"""Characters that are looked at: servers write parts of it, and some patterns go back over what they read."""


def kind_of_reason(reason: str) -> tuple[str, str]:
    """What a reason has in common with others, and what to do about it.

    >>> kind_of_reason("robots.txt: line 2: Disallow: /shut")
    ('robots.txt', "use --no-robots if the site's owner agrees")
    >>> kind_of_reason("robots.txt: loopback address 127.0.0.1")
    ('loopback address', 'use --allow-private')
    >>> kind_of_reason("forgotten on 2026-11-17: the owner asked for it")[0]
    'forgotten on 2026-11-17'
    >>> kind_of_reason("redirects to http://a.test/: not a public address fe00::1")
    ('not a public address', 'use --allow-private')
    >>> kind_of_reason("trap: more than 9 visits to a.test (limit permit.host_visits)")
    ('limit permit.host_visits', 'raise permit.host_visits in tamias.toml')
    >>> kind_of_reason("503 Service Unavailable")[0], kind_of_reason("403 Forbidden")[0]
    ('503 Service Unavailable', '403 Forbidden')
    >>> kind_of_reason("connection to 10.2.3.4:80 failed: curl error 56")[0]
    'connection to … failed: curl error …'
    >>> kind_of_reason("unreachable since 2026-11-16 23:49:30 UTC (4 tries): connection refused by ::1")
    ('connection refused', 'check the port, and whether the server runs')
    """
    reason = _SINCE.sub("", reason[:_LONGEST_REASON])
    for pattern, kind, advice in _PATTERNS:
        if found := pattern.search(reason):
            return found.expand(kind), found.expand(advice)
    common = _DETAILS.sub("…", reason)
    return (common if len(common) <= _LONGEST_KIND else f"{common[: _LONGEST_KIND - 1]}…"), ""
