"""Usage signals: what a site says may be done with what it serves, and where it says so."""

import msgspec


class Signal(msgspec.Struct, frozen=True):
    """One rule that was in force for one capture, as it was told."""

    source: str
    """`header`, `meta`, `robots.txt` or `tdmrep.json`."""
    key: str
    """The name under which it stood, in lower case: `x-robots-tag`, `tdm-reservation`, ..."""
    value: str
    """One rule, such as `noindex` or `ai-train=no`."""


class Metas(msgspec.Struct, frozen=True):
    """The metas of a page that speak of its use: name in lower case, and content."""

    pairs: list[tuple[str, str]]
