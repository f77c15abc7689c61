"""Scraping rules: files in which a user says how the pages of a portal become triples.

`load_rules` reads and checks them, `RuleBook` applies them to pages. docs/scraping-rules.md is the manual.
"""

from tamias.analyse.rules.book import RuleBook, load_rules

__all__ = ["RuleBook", "load_rules"]
