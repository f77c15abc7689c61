"""schema.org `Dataset` descriptions, as pages carry them in JSON-LD, Microdata or RDFa, into values.

Pure functions over quads. Both spellings of the vocabulary's address count, and Croissant's files too.
"""

import re
from collections.abc import Iterable, Iterator

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.features.dcat.datasets.descriptions import Descriptions, Node, Term, is_web
from tamias.features.dcat.datasets.from_dcat import agent_in, words_in
from tamias.features.dcat.datasets.location import box_polygon, is_number
from tamias.features.dcat.datasets.terms import below
from tamias.model.dataset import Agent, Dataset, Distribution, Period
from tamias.model.vocabulary import sound_iri

_SPACES = ("http://schema.org/", "https://schema.org/")
_UNITS = {"b": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
_SIZE = re.compile(r"\s*([0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]*)\s*")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def _terms(*names: str) -> tuple[str, ...]:
    return tuple(space + name for name in names for space in _SPACES)


def datasets_in(quads: Iterable[Quad], page: str | None = None) -> list[Dataset]:
    """The datasets that the quads of a page describe.

    Its name is the node's own, or its `url`, or an identifier that is an IRI; else one within `page`, where
    that is given. What has no title, or none of these, is left out: a mere mention is no description.
    """
    said = Descriptions(quads)
    found = (_dataset(said, node, page) for node in said.of_type(*_terms("Dataset")))
    return list({dataset.iri: dataset for dataset in found if dataset is not None}.values())


def _dataset(said: Descriptions, node: Node, page: str | None) -> Dataset | None:
    title = said.literal(node, *_terms("name", "headline", "alternateName"))
    identifiers = tuple(_identifiers(said, node))
    iri = _name(said, node, identifiers, title, page)
    if title is None or iri is None:
        return None
    return Dataset(
        iri=iri,
        record=identifiers[0] if identifiers and isinstance(node, BlankNode) else iri,
        title=title.value.strip(),
        title_language=title.language,
        description=said.text(node, *_terms("description", "abstract")),
        identifiers=identifiers,
        keywords=tuple(_keywords(said, node)),
        landing_page=next(filter(is_web, said.words(node, *_terms("url", "mainEntityOfPage"))), page),
        licence=_word(said, node, "license"),
        rights=_word(said, node, "usageInfo", "copyrightNotice"),
        access_rights=_word(said, node, "conditionsOfAccess"),
        publisher=_agent(said, node, "publisher", "provider", "sourceOrganization"),
        creator=_agent(said, node, "creator", "author"),
        contact=_contact(said, node),
        issued=said.text(node, *_terms("datePublished", "dateCreated")),
        modified=said.text(node, *_terms("dateModified")),
        language=_words(said, node, "inLanguage"),
        spatial=tuple(_places(said, node)),
        temporal=tuple(_periods(said, node)),
        version=said.text(node, *_terms("version")),
        conforms_to=said.iris(node, "http://purl.org/dc/terms/conformsTo"),
        distributions=tuple(_distributions(said, node)),
    )


def _name(
    said: Descriptions, node: Node, identifiers: tuple[str, ...], title: Literal | None, page: str | None
) -> str | None:
    if isinstance(node, NamedNode):
        return node.value
    own = (*said.words(node, *_terms("url")), *identifiers, *said.words(node, *_terms("sameAs")))
    iri = next(filter(is_web, own), None)
    if iri is None and page is not None and title is not None:
        return below(page, (identifiers or (title.value.strip(),))[0], "dataset").value
    return iri


def _identifiers(said: Descriptions, node: Node) -> Iterator[str]:
    """Identifiers as they stand; of a `PropertyValue` its address, or its value."""
    for value in said.values(node, *_terms("identifier")):
        inner = said.words(value, *_terms("url", "value"))
        if inner:
            yield inner[0]
        elif not isinstance(value, BlankNode) and value.value.strip():
            yield value.value.strip()


def _keywords(said: Descriptions, node: Node) -> Iterator[str]:
    words: dict[str, None] = {}
    for value in said.values(node, *_terms("keywords")):
        text = value.value if isinstance(value, Literal) else said.text(value, *_terms("name"))
        words.update((word.strip(), None) for word in (text or "").split(","))
    yield from filter(None, words)


def _word(said: Descriptions, node: Node, *names: str) -> str | None:
    return next(iter(_words(said, node, *names)), None)


def _words(said: Descriptions, node: Node, *names: str) -> tuple[str, ...]:
    inner = _terms("url", "alternateName", "name", "value")
    return words_in(
        said.values(node, *_terms(*names)), lambda value: next(iter(said.words(value, *inner)), None)
    )


def _agent(said: Descriptions, node: Node, *names: str) -> Agent | None:
    called, pages = _terms("name", "legalName", "familyName"), _terms("url", "sameAs")
    return agent_in(said, said.values(node, *_terms(*names)), called, pages)


def _contact(said: Descriptions, node: Node) -> Agent | None:
    """The contact point, which hangs on the publisher as often as on the dataset."""
    holders = (node, *said.values(node, *_terms("publisher", "provider", "creator")))
    for point in (point for holder in holders for point in said.values(holder, *_terms("contactPoint"))):
        email = said.text(point, *_terms("email"))
        name = said.text(point, *_terms("name", "contactType")) or email
        if name:
            page = next(filter(is_web, said.words(point, *_terms("url"))), None)
            return Agent(name=name, email=email.removeprefix("mailto:") if email else None, homepage=page)
    return None


def _places(said: Descriptions, node: Node) -> Iterator[str]:
    for place in said.values(node, *_terms("spatialCoverage", "spatial")):
        name = said.text(place, *_terms("name"))
        shapes = (shape for geo in said.values(place, *_terms("geo")) for shape in _shape(said, geo))
        found = next(shapes, None) or name or (None if isinstance(place, BlankNode) else place.value.strip())
        if found:
            yield found


def _shape(said: Descriptions, geo: Term) -> Iterator[str]:
    """A box (`south west north east`) or a point as WKT, which has x before y."""
    box = (said.text(geo, *_terms("box")) or "").replace(",", " ").split()
    if found := box_polygon([box[side] for side in (1, 0, 3, 2)] if len(box) == 4 else []):
        yield found
    point = [said.text(geo, *_terms(name)) or "" for name in ("longitude", "latitude")]
    if all(map(is_number, point)):
        yield f"POINT({point[0]} {point[1]})"


def _periods(said: Descriptions, node: Node) -> Iterator[Period]:
    for value in said.values(node, *_terms("temporalCoverage", "temporal")):
        if isinstance(value, Literal):
            start, slash, end = value.value.strip().partition("/")
            yield Period(_date(start), _date(end if slash else start))
        else:
            found = Period(said.text(value, *_terms("startDate")), said.text(value, *_terms("endDate")))
            if found != Period():
                yield found


def _date(text: str) -> str | None:
    """A date; `..` is an open end."""
    return text.strip() if text.strip() not in ("", "..") else None


def _distributions(said: Descriptions, node: Node) -> Iterator[Distribution]:
    for distribution in said.values(node, *_terms("distribution")):
        content = [url for url in said.words(distribution, *_terms("contentUrl")) if is_web(url)]
        pages = [url for url in said.words(distribution, *_terms("url")) if is_web(url)]
        if content or pages:
            yield _distribution(said, distribution, (content or pages)[0], access_only=not content)
        elif not isinstance(distribution, BlankNode) and is_web(distribution.value):
            yield Distribution(url=distribution.value)


def _distribution(said: Descriptions, node: Term, url: str, *, access_only: bool) -> Distribution:
    digest = said.text(node, *_terms("sha256")) or ""
    encoding = said.text(node, *_terms("encodingFormat", "fileFormat"))
    return Distribution(
        url=url,
        iri=node.value
        if isinstance(node, NamedNode) and node.value != url and sound_iri(node.value)
        else None,
        access_only=access_only,
        title=said.text(node, *_terms("name")),
        description=said.text(node, *_terms("description")),
        media_type=encoding if encoding and "/" in encoding and "://" not in encoding else None,
        format=encoding,
        licence=next(iter(said.words(node, *_terms("license"))), None),
        byte_size=_size(next(iter(said.texts(node, *_terms("contentSize"))), None)),
        sha256=digest.lower() if _DIGEST.fullmatch(digest) else None,
        issued=said.text(node, *_terms("datePublished", "uploadDate")),
        modified=said.text(node, *_terms("dateModified")),
    )


def _size(text: str | None) -> int | None:
    """Bytes out of a content size in any unit.

    >>> _size("2048"), _size("1.5 kB"), _size("3 MiB"), _size("large")
    (2048, 1500, 3145728, None)
    """
    found = _SIZE.fullmatch(text or "")
    unit = _UNITS.get((found[2] or "b").lower()) if found else None
    return int(float(found[1].replace(",", ".")) * unit) if found and unit else None
