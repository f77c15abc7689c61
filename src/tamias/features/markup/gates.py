"""The gates: pages without one of these words or patterns have no such data."""

import re

from tamias.analyse.markup.page import MarkupGate

MICRODATA = MarkupGate("tamias.features.markup.microdata", words=(b"itemscope",))
# Links alone count where `rel` is a CURIE or a term that all pages have; in XHTML+RDFa, whatever it is.
RDFA = MarkupGate(
    "tamias.features.markup.rdfa",
    patterns=(
        re.compile(rb"property\s*+="),
        re.compile(rb"typeof\s*+="),
        re.compile(rb"""re[lv]\s*+=\s*+(?:["'][^"'<>]{0,200}?|[^\s"'<>]{0,200}?)(?::|license|describedby)"""),
        re.compile(rb"\A.{0,1000}\+rdfa", re.DOTALL),
    ),
    pages=(False, True),
)
METAS = MarkupGate(
    "tamias.features.markup.metas",
    patterns=(
        re.compile(rb"""name\s*+=\s*+["']?+\s*+(?:dc(?:terms|t)?+[.:]|og:)"""),
        re.compile(rb"""rel\s*+=\s*+["']?+schema\."""),
    ),
)
