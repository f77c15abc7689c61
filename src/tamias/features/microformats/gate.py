"""The gate: markup without one of these words or patterns has no microformats."""

import re
from typing import Final

from tamias.analyse.markup.page import MarkupGate

LAYOUT: Final = frozenset(
    f"h-{height}" for height in ("auto", "full", "screen", "px", "fit", "min", "max", "svh", "lvh", "dvh")
)
"""Heights in a widespread style sheet, which look like roots of microformats."""

_HEIGHTS = "|".join(name.removeprefix("h-") for name in sorted(LAYOUT)).encode("ascii")

GATE = MarkupGate(
    reader="tamias.features.microformats.quads",
    attributes=(b"class", b"rel"),
    words=(
        *(b"vcard", b"vevent", b"hentry", b"hreview", b"hproduct", b"hrecipe", b"hresume"),
        *(b'"adr"', b'"geo"'),
        *(b'rel="license', b'rel="tag', b' tag"', b'rel="me'),
    ),
    patterns=(
        re.compile(
            rb"""h-(?<=[\s"'=]h-)(?!(?:%b)[\s"'>])(?:[a-z0-9]{1,40}-)?"""
            rb"""[a-z]{1,40}(?:-[a-z]{1,40}){0,9}[\s"'>]""" % _HEIGHTS
        ),
    ),
)
