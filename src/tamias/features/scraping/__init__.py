"""Scraping rules: files in which a user says how the pages of a portal become triples.

`load_rules` reads and checks them, `RuleBook` applies them to pages. docs/scraping-rules.md is the manual.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="scraping",
    about="reads pages by rules that users write (analyse.rules)",
    module=__name__,
    requires=("markup",),
    page_rules={"scraping": "tamias.features.scraping.book:load_rules"},
)
