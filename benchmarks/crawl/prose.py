"""Plausible text in quantity, the same for the same seed: words by rank, sentences, paragraphs."""

import random
from collections.abc import Iterator

COMMON = """
the of and to a in is it that was for on with as at by from this they be are or had not but what all
were when there use each which how their if will up other about out many then them these so some her
would make like into time has look two more write go see number no way could people my than first
water been call who its now find long down day did get come made may part over new sound take only
little work know place year live back give most very after thing our just name good sentence great
"""
ONSETS: tuple[str, ...] = (*"bcdfghjklmnprstvw", "br", "ch", "dr", "fl", "gr", "pl", "qu", "sh", "st", "tr")
VOWELS: tuple[str, ...] = (*"aeiou", "ai", "ea", "ee", "ou")
CODAS: tuple[str, ...] = (*"lmnrstx", "nd", "ng", "nt", "rd", "rk", "ss", "th")
RARE_WORDS = 4_000
PARAGRAPHS = 2_000


def make_paragraphs(seed: int) -> list[str]:
    """A stock of paragraphs of some hundred bytes; a page takes a few dozen of them."""
    rng = random.Random(seed)
    words = [*COMMON.split(), *(rare_word(rng) for _ in range(RARE_WORDS))]
    weights = [1 / rank for rank in range(3, len(words) + 3)]
    drawn = iter(rng.choices(words, weights, k=PARAGRAPHS * 150))
    return [" ".join(sentences(rng, drawn)) for _ in range(PARAGRAPHS)]


def sentences(rng: random.Random, drawn: Iterator[str]) -> list[str]:
    """Some sentences: 75 words on average, so that the drawn words last."""
    lengths = [rng.randint(6, 24) for _ in range(rng.randint(3, 7))]
    return [" ".join(next(drawn) for _ in range(length)).capitalize() + "." for length in lengths]


def rare_word(rng: random.Random) -> str:
    """Two or three syllables that could be English."""
    syllables = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 3))]
    return "".join(syllables) + rng.choice(CODAS)
