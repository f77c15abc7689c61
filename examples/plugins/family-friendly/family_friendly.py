"""A tagger: `FamilyFriendly`, or `adult` where the publisher or the words of a page say so."""

import html
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from tamias.model.document import Page
from tamias.plugins import Feature

FEATURES = [
    Feature(
        name="family-friendly",
        about="tags pages FamilyFriendly or adult",
        module=__name__,
        taggers={"family-friendly": "family_friendly:FamilyFriendlyTagger"},
    )
]

FRIENDLY, ADULT = "FamilyFriendly", "adult"
SHARE = 0.02
"""Of all words of a page, when they are on the list, from which on it is not for families."""
FEWEST = 20
"""With fewer words nothing is said of a page by its words."""
MOST = 200_000
"""Bytes of a page that are looked at."""

_PAGES = frozenset({"text/html", "application/xhtml+xml", "text/plain"})
_LABEL = re.compile(
    rb"""<meta\b(?=[^>]{0,300}\bname\s*=\s*["']?rating\b)[^>]{0,300}\bcontent\s*=\s*["']?
         (?:adult|mature|restricted|RTA-5042-1996-1400-1577-RTA)
       | isFamilyFriendly["']?[^>,}]{0,40}?(?:false|["'/]False) """,
    re.IGNORECASE | re.VERBOSE,
)
_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


class FamilyFriendlyTagger:
    """Carries out `tamias.protocols.Tagger`."""

    def tags(self, page: Page) -> Iterable[str]:
        """At most one."""
        if page.media_type not in _PAGES or not page.body:
            return []
        body = page.body[:MOST]
        if _LABEL.search(body) or "RTA-5042" in (page.header("rating") or ""):
            return [ADULT]
        words = words_of(body.decode("utf-8", "replace"))
        if len(words) < FEWEST:
            return []
        return [ADULT if share(words) >= SHARE else FRIENDLY]


def words_of(text: str) -> list[str]:
    """The words of a page, in lower case."""
    return [found[0].lower() for found in _WORD.finditer(html.unescape(_UNSEEN.sub(" ", text)))]


def share(words: list[str]) -> float:
    """How many of the words are on the list."""
    listed = word_list()
    return sum(word in listed for word in words) / max(1, len(words))


@cache
def word_list() -> frozenset[str]:
    """Single words of the list that comes with better-profanity (MIT)."""
    text = files("better_profanity").joinpath("profanity_wordlist.txt").read_text(encoding="utf-8")
    return frozenset(line.strip().lower() for line in text.splitlines() if line.strip().isalpha())
