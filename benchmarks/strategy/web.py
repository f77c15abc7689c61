"""A web on which three kinds of pages can be looked for; what stands on a page follows from its number.

Links lie now and then: some to what is looked for do not say so, and some to other pages do.
"""

from collections.abc import Callable
from hashlib import blake2b

import msgspec

SUBJECT, FRENCH, DATA = "keywords", "language", "semantic"
KINDS = (SUBJECT, FRENCH, DATA)
OWN_LINKS, OTHER_LINKS = 3, 7
KIN_LINKS = 4
"""Of the links to other hosts, on a host of some kind: those that lead to its like."""
SEEDS = 10
SILENT, LYING = 20, 4
"""Of a hundred links: to what is looked for without saying so, and to others as if it were."""
_PLAIN: dict[str, tuple[str, ...]] = {
    "anchor": (
        "read more",
        "our partners",
        "the next page",
        "a short history",
        "contact",
        "news of the week",
    ),
    "words": ("Here is something else that visitors liked,", "See also the page named", "More about this in"),
    "after": ("which was last changed in spring.", "and the pages it links to.", "as told by our readers."),
}
_TELLING: dict[str, dict[str, tuple[str, ...]]] = {
    SUBJECT: {
        "anchor": ("river levels", "flood maps", "rainfall by month", "the gauge at the bridge"),
        "words": ("Measured in every catchment:", "How high the river stands is told in", "After the flood,"),
        "after": ("with rainfall since 1950.", "for each gauge.", "and the rivers that feed it."),
    },
    FRENCH: {
        "anchor": ("la page suivante", "les horaires de la mairie", "une histoire et des images"),
        "words": (
            "Pour en savoir plus, voyez dans les pages",
            "Tout est sur la page",
            "Voici une page et",
        ),
        "after": ("pour les habitants.", "et des nouvelles de la ville.", "sur le site de la commune."),
    },
    DATA: {
        "anchor": ("dataset of stations", "download as RDF", "the dataset", "linked data about it"),
        "words": ("Open data:", "For machines there is", "The same as statements:"),
        "after": ("under an open licence.", "in several formats.", "for everybody to use."),
    },
}


class TopicWeb(msgspec.Struct, frozen=True):
    """So many hosts of so many pages each; on some hosts of each kind most pages are what is looked for."""

    hosts: int = 1000
    pages: int = 20
    of_kind: int = 50

    def kind(self, host: int) -> str | None:
        """What is to be found on a host. Those of a kind are spread evenly, and none is a seed."""
        step = self.hosts // (self.of_kind + 1)
        place, turn = divmod(host - SEEDS, step)
        return KINDS[turn] if place in range(self.of_kind) and turn < len(KINDS) else None

    @property
    def is_large_enough(self) -> bool:
        """Whether there is room for the hosts of all kinds."""
        step = self.hosts // (self.of_kind + 1)
        return step >= len(KINDS) and SEEDS + (self.of_kind - 1) * step + len(KINDS) <= self.hosts

    def is_relevant(self, host: int, page: int, kind: str) -> bool:
        """Whether a page is what a crawl of this kind looks for: every fifth of its host is not."""
        return self.kind(host) == kind and page % 5 != 4

    def relevant(self, kind: str) -> int:
        """How many pages of a kind there are."""
        return sum(
            self.is_relevant(host, page, kind) for host in range(self.hosts) for page in range(self.pages)
        )

    def links(self, host: int, page: int) -> list[tuple[int, int]]:
        """A page leads on to three pages of its host, so that all can be reached, and to seven elsewhere."""
        own = [(host, child) for child in range(3 * page + 1, 3 * page + 1 + OWN_LINKS) if child < self.pages]
        kin = self._kin(self.kind(host))
        others = [
            self._elsewhere(kin if kin and turn < KIN_LINKS else None, host, page, turn)
            for turn in range(OTHER_LINKS)
        ]
        return [*own, *others]

    def _elsewhere(self, kin: tuple[int, ...] | None, host: int, page: int, turn: int) -> tuple[int, int]:
        draw = chance(host, page, turn)
        to = kin[draw % len(kin)] if kin else draw % self.hosts
        return to, 0 if draw >> 32 & 1 else (draw >> 40) % self.pages

    def _kin(self, kind: str | None) -> tuple[int, ...]:
        return tuple(host for host in range(self.hosts) if self.kind(host) == kind) if kind else ()

    def claimed_kind(self, host: int, page: int, to: tuple[int, int], turn: int) -> str | None:
        """What the words of a link say of the page it leads to."""
        draw = chance(host, page, 100 + turn)
        kind = next((each for each in KINDS if self.is_relevant(*to, each)), None)
        if kind is not None:
            return None if draw % 100 < SILENT else kind
        return KINDS[draw // 100 % len(KINDS)] if draw % 100 < LYING else None


def html(web: TopicWeb, host: int, page: int, url_of: Callable[[int], str]) -> bytes:
    """The page; `url_of` gives the address of a host, without a slash at the end."""
    kind = self_kind(web, host, page)
    lines = [
        f"<!DOCTYPE html><html lang={'fr' if kind == FRENCH else 'en'}><head><title>{host} {page}</title>"
    ]
    if kind == DATA:
        json_ld = f'{{"@context":{{"@vocab":"http://schema.org/"}},"@type":"Dataset","name":"{host} {page}"}}'
        lines.append(f'<script type="application/ld+json">{json_ld}</script>')
    lines.append("</head><body>")
    for turn, to in enumerate(web.links(host, page)):
        words = _TELLING.get(web.claimed_kind(host, page, to, turn) or "", _PLAIN)
        draw = chance(host, page, 200 + turn)
        before = words["words"][draw % len(words["words"])]
        anchor = words["anchor"][(draw >> 8) % len(words["anchor"])]
        after = words["after"][(draw >> 16) % len(words["after"])]
        url = f"{url_of(to[0])}{path(to[1])}"
        lines.append(f'<p>{before} <a href="{url}">{anchor}</a> {after}</p>')
    return "\n".join(lines).encode()


def self_kind(web: TopicWeb, host: int, page: int) -> str | None:
    """What a page is to those who look for something."""
    return next((kind for kind in KINDS if web.is_relevant(host, page, kind)), None)


def path(page: int) -> str:
    """Addresses say nothing: a focused crawl has to read the words of links."""
    return f"/{page}" if page else "/"


def page_of(asked: str) -> int | None:
    """The number of a page by its path.

    >>> page_of("/"), page_of("/12"), page_of("/robots.txt")
    (0, 12, None)
    """
    word = asked[1:] or "0"
    return int(word) if word.isdigit() else None


def chance(*numbers: int) -> int:
    """A large number that is always the same for the same numbers."""
    return int.from_bytes(blake2b(repr(numbers).encode(), digest_size=8).digest(), "big")
