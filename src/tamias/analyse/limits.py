"""Limits of documents that the parsers do not enforce themselves."""

import msgspec

MIB = 1 << 20


class AnalyseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on reading one document. The field names are the setting words of `[analyse]`."""

    max_errors: int = 100
    """Problems told of one document; past them, reading goes on while nine of ten statements are good."""
    xml_depth: int = 1000
    turtle_depth: int = 1000
    json_depth: int = 500
    entity_bytes: int = 64 * 1024
    """All that the entities of an XML document may declare, expanded."""
    jsonld_bytes: int = 16 * MIB
    """Larger JSON-LD is read as streaming JSON-LD, which wants each `@context` before what it is for."""
    html_bytes: int = 16 * MIB
    html_nesting: int = 20_000_000
    """Tags of a page times their depth, which is what the work of an HTML parser grows with."""
    hdt_bytes: int = 256 * MIB
    """Of the file, which is held in memory."""
    hdt_dictionary: int = 512 * MIB
    jelly_frame: int = 8 * MIB
    """Frames are of some ten kilobytes; empty rows take twenty times their bytes while they are decoded."""
    rdfjson_subject: int = 16 * MIB
    """Characters that are said of one subject, which is held in memory."""
    sitemap_urls: int = 50_000
    sitemap_bytes: int = 50 * MIB
    sitemap_loc: int = 2048
    """The longest address that a sitemap may name."""


class RefusedError(Exception):
    """A document is not read on, because it would cost too much; the message names the limit."""
