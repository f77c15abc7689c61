"""Short names of formats, as people and portals write them: `CSV`, `.xlsx`, `GeoJSON`."""

from typing import Final

_NAMES: Final = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "html": "text/html",
    "htm": "text/html",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "geojson": "application/geo+json",
    "jsonld": "application/ld+json",
    "json-ld": "application/ld+json",
    "xml": "application/xml",
    "kml": "application/vnd.google-earth.kml+xml",
    "gml": "application/gml+xml",
    "rdf": "application/rdf+xml",
    "rdf/xml": "application/rdf+xml",
    "rdfxml": "application/rdf+xml",
    "ttl": "text/turtle",
    "turtle": "text/turtle",
    "n3": "text/n3",
    "nt": "application/n-triples",
    "n-triples": "application/n-triples",
    "nq": "application/n-quads",
    "n-quads": "application/n-quads",
    "trig": "application/trig",
    "hdt": "application/vnd.hdt",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "pdf": "application/pdf",
    "zip": "application/zip",
    "gz": "application/gzip",
    "gzip": "application/gzip",
    "parquet": "application/vnd.apache.parquet",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
}


def media_type_of(name: str | None) -> str | None:
    """The media type that a text names, by itself or by a short name; None where it is neither.

    >>> media_type_of("CSV"), media_type_of("text/csv; charset=utf-8"), media_type_of("data")
    ('text/csv', 'text/csv', None)
    """
    if not name:
        return None
    bare = name.partition(";")[0].strip().lower()
    known = _NAMES.get(bare.removeprefix("."))
    if known is not None:
        return known
    return bare if "/" in bare and " " not in bare and len(bare) < 128 else None
