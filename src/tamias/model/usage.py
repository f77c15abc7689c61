"""The verdict on usage signals, its reasons, and the uses from which it withholds content.

Pure. What may be fetched is decided by robots.txt alone; this decides what is done with what came.
"""

from collections.abc import Iterable, Iterator

import msgspec

from tamias.model.site import Signal

TAG_HEADERS = ("x-robots-tag", "robots-tag")
RESERVATION = "tdm-reservation"
TDM_KEYS = (RESERVATION, "tdm-policy")
CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENCE = "license"
"""The key of a licence (RSL) that robots.txt names, and of the uses that it does not allow."""
USE_KEYS = (CONTENT_USAGE, CONTENT_SIGNAL, LICENCE)
AI_AGENTS = "user-agent"
"""The key of a signal that names AI crawlers which robots.txt keeps out, though it lets us in."""
AI_TXT = "ai.txt"

_TRAINING = frozenset({"ai-train", "train-ai", "train-genai", "ai"})
_INPUT = frozenset({"ai-input", "ai"})
_LEVELS = {
    "use=reference": frozenset({"ai-train", "ai-input"}),
    "use=immediate": frozenset({"ai-train", "ai-input", "mining", "showing"}),
}
"""The uses that a level of Content-Signal refuses: it allows references only, or use at the moment only."""


class UsageVerdict(msgspec.Struct, frozen=True):
    """The uses of a capture that are forbidden."""

    nofollow: bool = False
    """Its links are not followed."""
    noindex: bool = False
    """It is kept out of public search and pages."""
    noarchive: bool = False
    """Its body is not shown in public; its digest and what is known of it are."""
    tdm_reserved: bool = False
    """It is left out of bulk exports."""
    no_training: bool = False
    """Exports for the training of models leave it out."""
    no_ai_input: bool = False
    """It is not given to models as input."""


_NOTHING_FORBIDDEN = UsageVerdict()

SHOWING = ("noarchive",)
"""Which words of a verdict withhold content from the public."""
BULK = ("tdm_reserved",)
"""From bulk exports."""
TRAINING = ("tdm_reserved", "no_training")
"""From exports for the training of models."""
MODELS = ("tdm_reserved", "no_training", "no_ai_input")
"""From models that read it."""

_SAID = {
    "noarchive": "its server asks that its content is not shown (noarchive)",
    "tdm_reserved": "its server reserves text and data mining (tdm_reserved)",
    "no_training": "its server refuses the training of models (no_training)",
    "no_ai_input": "its server refuses use as input of models (no_ai_input)",
}


def verdict(signals: Iterable[Signal]) -> UsageVerdict:
    """Return what the signals forbid together: whoever refuses wins, wherever it is said."""
    signals = tuple(signals)
    if not signals:
        return _NOTHING_FORBIDDEN
    words = {word for signal in signals if _is_robots_rule(signal) for word in signal.value.split()}
    refused = _refused(signals)
    keeps_ai_out = any(signal.key == AI_AGENTS or signal.source == AI_TXT for signal in signals)
    return UsageVerdict(
        nofollow=not words.isdisjoint(("nofollow", "none")),
        noindex=not words.isdisjoint(("noindex", "none")) or "search" in refused,
        noarchive="showing" in refused or not words.isdisjoint(("noarchive", "nocache")),
        tdm_reserved="mining" in refused or is_reserved(signals),
        no_training=keeps_ai_out or not refused.isdisjoint(_TRAINING),
        no_ai_input=not refused.isdisjoint(_INPUT),
    )


def reasons(signals: Iterable[Signal]) -> Iterator[tuple[str, str]]:
    """Yield each word of the verdict, with the signals that decided it.

    >>> list(reasons([Signal("header", "tdm-reservation", "1"), Signal("meta", "robots", "all")]))
    [('tdm_reserved', 'header tdm-reservation: 1')]
    """
    signals = tuple(signals)
    together = verdict(signals)
    for word in UsageVerdict.__struct_fields__:
        if getattr(together, word):
            because = [each for each in signals if getattr(verdict((each,)), word)]
            yield word, "; ".join(f"{each.source} {each.key}: {each.value}" for each in because)


def refusal(judged: UsageVerdict, words: Iterable[str]) -> str | None:
    """Return why content is withheld from a use: the first of `words` in the verdict, or None.

    >>> refusal(UsageVerdict(no_training=True), BULK) is None
    True
    >>> refusal(UsageVerdict(no_training=True), TRAINING)
    'its server refuses the training of models (no_training)'
    """
    return next((_SAID[word] for word in words if getattr(judged, word)), None)


def is_reserved(signals: Iterable[Signal]) -> bool:
    """Return whether mining is reserved: a header goes before the file, a meta before the header."""
    reservations = [signal for signal in signals if signal.key == RESERVATION]
    for source in ("meta", "header", "tdmrep.json"):
        values = {signal.value for signal in reservations if signal.source == source}
        if values:
            return "1" in values
    return False


def _is_robots_rule(signal: Signal) -> bool:
    return signal.key in TAG_HEADERS or (signal.source == "meta" and signal.key not in TDM_KEYS)


def _refused(signals: Iterable[Signal]) -> set[str]:
    """Return the uses that preferences, levels and licences refuse."""
    refused: set[str] = set()
    for signal in signals:
        if signal.key in USE_KEYS and signal.value.endswith(("=no", "=n")):
            refused.add(signal.value.removesuffix("=no").removesuffix("=n"))
        elif signal.key == CONTENT_SIGNAL:
            refused |= _LEVELS.get(signal.value, frozenset())
    return refused
