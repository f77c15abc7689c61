"""Usage signals of one capture, from its headers, its page's metas and its host's robots.txt.

Pure. None of them changes what may be fetched; what they change is what is done with it (`model.usage`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from tamias.model.site import Signal
from tamias.model.usage import AI_AGENTS, AI_TXT, TAG_HEADERS, TDM_KEYS
from tamias.permit.robots import TOKEN, Rules
from tamias.permit.tdm import TdmRule, tdm_file_signals, tdm_signals
from tamias.permit.usage import READERS, robots_usage

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
) -> tuple[Signal, ...]:
    """Return the signals for us: `robots_signals` are `Rules.usage`, `tdm` is the host's tdmrep.json.

    `ai` is the host's ai.txt, which has the form of a robots.txt. Rules for other agents are left out; rules
    without effect, such as `noai`, are kept.
    """
    signal_headers = [(key, value) for name, value in headers if (key := name.lower()) in SIGNAL_HEADERS]
    said = [(name.strip().lower(), content) for name, content in metas]
    robots_signals = tuple(robots_signals)
    if not (signal_headers or said or robots_signals or tdm or ai):
        return ()
    found = [
        *(signal for key in TAG_HEADERS for signal in _tag_signals(key, signal_headers, agent_token.lower())),
        *_meta_signals(said, agent_token.lower()),
        *tdm_file_signals(tdm, url),
        *tdm_signals("header", signal_headers),
        *tdm_signals("meta", said),
        *(Signal("robots.txt", key, agents) for key, agents in robots_signals if key == AI_AGENTS),
        *(Signal("robots.txt", key, use) for key, use in robots_usage(robots_signals, url)),
        *_ai_txt_signals(ai, url),
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


def _bounded(values: Iterable[str]) -> Iterator[str]:
    left = MOST_CHARACTERS
    for value in values:
        yield value if len(value) <= left else value[:left].rpartition(",")[0]
        left -= len(value)
        if left <= 0:
            return


def _normalised(rule: str) -> str:
    return " ".join(rule.split()).lower()
