"""A dataset as a record of `data.json` (DCAT-US 1.1, Project Open Data): the other way round than `pod`."""

import re
from typing import Any

from tamias.features.dcat.datasets.authority import access_iri, repetition
from tamias.features.dcat.datasets.terms import last_segment
from tamias.model.dataset import Agent, Dataset, Distribution, Period
from tamias.model.vocabulary import sound_iri

_ACCESS = {"RESTRICTED": "restricted public", "NON_PUBLIC": "non-public"}
_TAG = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def pod_record(dataset: Dataset, publisher: str) -> dict[str, Any]:
    """The record. Without a publisher of its own, the dataset has that of the catalogue.

    What the dataset does not say is left out, also where the schema asks for it: nothing is made up.

    >>> pod_record(Dataset(iri="https://x.example/1", record="1", title="Trees"), "Town")["publisher"]
    {'@type': 'org:Organization', 'name': 'Town'}
    """
    said: dict[str, Any] = {
        "@type": "dcat:Dataset",
        "title": dataset.title,
        "description": dataset.description or dataset.title,
        "identifier": dataset.iri,
        "accessLevel": _access(dataset.access_rights),
        "modified": dataset.modified or dataset.record_modified or dataset.issued,
        "issued": dataset.issued,
        "keyword": list(dataset.keywords),
        "theme": [last_segment(theme) or theme for theme in dataset.themes] + list(dataset.groups),
        "publisher": {"@type": "org:Organization", "name": (dataset.publisher or Agent(name=publisher)).name},
        "contactPoint": _contact(dataset.contact),
        "license": dataset.licence if sound_iri(dataset.licence, web=True) else None,
        "rights": dataset.rights,
        "landingPage": dataset.landing_page,
        "accrualPeriodicity": repetition(dataset.frequency),
        "language": [tag for each in dataset.language if _TAG.fullmatch(tag := last_segment(each) or each)],
        "spatial": next(iter(dataset.spatial), None),
        "temporal": next(map(_span, dataset.temporal), None),
        "conformsTo": next(filter(sound_iri, dataset.conforms_to), None),
        "distribution": list(map(_distribution, dataset.distributions)),
    }  # fmt: skip
    return {name: value for name, value in said.items() if value}


def _span(period: Period) -> str | None:
    return f"{period.start}/{period.end}" if period.start and period.end else None


def _access(word: str | None) -> str:
    iri = word if word and "://" in word else access_iri(word or "")
    return _ACCESS.get(last_segment(iri or ""), "public")


def _contact(agent: Agent | None) -> dict[str, str] | None:
    if agent is None or not agent.email:
        return None
    return {"@type": "vcard:Contact", "fn": agent.name, "hasEmail": f"mailto:{agent.email}"}


def _distribution(each: Distribution) -> dict[str, Any]:
    place = {"@type": "dcat:Distribution", "accessURL" if each.access_only else "downloadURL": each.url}
    said = {
        "mediaType": each.media_type,
        "title": each.title,
        "description": each.description,
        "format": each.format,
        "license": each.licence if sound_iri(each.licence, web=True) else None,
        "byteSize": each.byte_size,
        "conformsTo": next(filter(sound_iri, each.conforms_to), None),
    }
    return place | {name: value for name, value in said.items() if value}
