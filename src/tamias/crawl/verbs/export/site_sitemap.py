"""A Semantic Sitemap for a site, from what was crawled: what it declares, or else what was found there."""

from typing import Final

from tamias.archive.sources.declared import declared_datasets, site_documents
from tamias.database.connect import Session
from tamias.model.errors import UsageError
from tamias.model.site import Prefix, SemanticDataset
from tamias.model.url import authority, fetch_url, host

MOST_SAMPLES: Final = 3


def site_datasets(session: Session, site: str) -> list[SemanticDataset]:
    """The datasets of a site. Raises `UsageError` where nothing is known of it.

    What the site declares itself stands as it is; documents with statements outside of that are one more.
    """
    place = authority(fetch_url(site))
    declared = [each.dataset for each in declared_datasets(session) if authority(each.sitemap) == place]
    covered = tuple(prefix.iri for dataset in declared for prefix in dataset.prefixes)
    places = {
        location.url
        for dataset in declared
        for location in (*dataset.dumps, *dataset.fragments, *dataset.endpoints)
    }
    documents = [
        each
        for each in site_documents(session, place + "/", most=10_000)
        if not each.url.startswith(covered) and each.url.partition("?")[0] not in places
    ]
    if documents:
        declared.append(
            SemanticDataset(
                label=host(place),
                prefixes=(Prefix(iri=_common([each.url for each in documents], place)),),
                samples=tuple(each.url for each in documents[:MOST_SAMPLES]),
                lastmod_ms=max(each.read_at for each in documents),
            )
        )
    if not declared:
        raise UsageError(f"nothing was crawled of {place}, and it declares no dataset")
    return declared


def _common(urls: list[str], place: str) -> str:
    """The folder that all documents stand in.

    >>> _common(["http://e/a/b.ttl", "http://e/a/c/d"], "http://e")
    'http://e/a/'
    """
    first, last = min(urls), max(urls)
    shared = next((at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), None)
    prefix = first[: shared if shared is not None else min(len(first), len(last))]
    return max(prefix[: prefix.rfind("/") + 1], place + "/", key=len)
