"""Licences by their names and addresses: which are known, and which of them are open."""

import re
from typing import Final

_OPEN: Final = (
    r"creativecommons\.org/(licenses/by(-sa)?/|publicdomain/)",
    r"\bcc[ -]?(zero|0|by([ -]?sa)?)\b(?![ -]?(nc|nd))",
    r"opendatacommons\.org/licenses/(pddl|by|odbl)",
    r"\b(pddl|odc[ -](by|pddl|odbl)|odbl)\b",
    r"nationalarchives\.gov\.uk/doc/open-government-licen[cs]e|\b(uk[ -])?ogl\b|open government licen[cs]e",
    r"govdata\.de/dl-de/(by|zero)|\bdl[ -]de[ -/](by|zero)\b",
    r"etalab|licence[ -]ouverte|\blov2\b|\bfr[ -]lo\b",
    r"dati\.gov\.it/iodl|\biodl\b",
    r"data\.norge\.no/nlod|\bnlod\b",
    r"publications\.europa\.eu/resource/authority/licence/(cc0|cc_?by(_?sa)?(_\d|$)|odc|odbl|ogl|pddl|iodl|nlod|dl_de)",
    r"gnu\.org/(copyleft|licenses)/(l?gpl|fdl)|\bgfdl\b",
    r"opensource\.org/licenses/(mit|bsd|apache)",
    r"\bpublic[ -]domain\b|\bcc[ -]?pddc?\b|\bother[ -](open|pd|at)\b",
)
_CLOSED: Final = (
    r"creativecommons\.org/licenses/by-n[cd]",
    r"\bcc[ -]by[ -](nc|nd)",
    r"publications\.europa\.eu/resource/authority/licence/",
    r"govdata\.de/dl-de/|\bother[ -](closed|nc)\b",
)
_AN_OPEN_ONE: Final = re.compile("|".join(_OPEN))
_A_KNOWN_ONE: Final = re.compile("|".join(_OPEN + _CLOSED))


def is_known(licence: str | None) -> bool:
    """Whether the text names a licence of the public lists, by address or usual name.

    >>> is_known("https://creativecommons.org/licenses/by-nc/4.0/"), is_known("see website")
    (True, False)
    """
    return licence is not None and _A_KNOWN_ONE.search(_plain(licence)) is not None


def is_open(licence: str | None) -> bool:
    """Whether it names one that is open by the Open Definition.

    >>> is_open("CC BY-SA 4.0"), is_open("cc-by-nc-4.0")
    (True, False)
    """
    return licence is not None and _AN_OPEN_ONE.search(_plain(licence)) is not None


def _plain(text: str) -> str:
    """In small letters; between words a blank or a hyphen, as the patterns have it."""
    lowered = text.lower()
    return lowered if "://" in lowered else lowered.replace("_", "-")
