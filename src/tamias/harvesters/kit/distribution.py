"""A distribution as DCAT, and the data service behind it."""

import re
from typing import Final

from pyoxigraph import NamedNode

from tamias.harvesters.kit import authority
from tamias.harvesters.kit.properties import describe_properties, untranslated
from tamias.harvesters.kit.statements import DcatStatements
from tamias.harvesters.kit.terms import count_literal, hex_literal, sound_iri, word
from tamias.model.dataset import DataService, Dataset, Distribution

_DIGEST_SIZES: Final = {"md5": 32, "sha1": 40, "sha224": 56, "sha256": 64, "sha384": 96, "sha512": 128}
_LARGEST_SIZE = 2**63 - 1


def describe_distribution(
    told: DcatStatements, dataset: Dataset, node: NamedNode, number: int, distribution: Distribution
) -> None:
    """Says it with `dcat:accessURL`, which is mandatory; an address that is none is the landing page's.

    Without either it is left out. `dcat:downloadURL` is said only of what is the data itself.
    """
    address = sound_iri(distribution.url, web=True)
    page = sound_iri(distribution.access_url, web=True)
    access = page or address or sound_iri(distribution.service, web=True)
    access = access or sound_iri(dataset.landing_page, web=True)
    if access is None:
        return
    part = told.part("distribution", str(number))
    it = sound_iri(distribution.iri) or part
    told.typed(node, "dcat:distribution", it, "dcat:Distribution")
    told.add(it, "dcat:accessURL", access)
    if address and not distribution.access_only and not distribution.service:
        told.add(it, "dcat:downloadURL", address)
    _describe_texts(told, it, distribution)
    describe_properties(told, it, distribution.more, "distribution", str(number))
    _describe_form(told, it, part, distribution)
    _describe_checksum(told, it, part, distribution)
    _describe_terms(told, it, number, distribution, dataset.licence)
    if distribution.service:
        _describe_service(told, dataset, node, it, number, distribution)
    for place, service in enumerate(distribution.services, 1):
        _describe_access(told, it, service, f"{number}-{place}")


def _describe_texts(told: DcatStatements, it: NamedNode, distribution: Distribution) -> None:
    told.text(it, "dct:title", untranslated(distribution.title, "dct:title", distribution.more))
    told.text(
        it, "dct:description", untranslated(distribution.description, "dct:description", distribution.more)
    )
    told.date(it, "dct:issued", distribution.issued)
    told.date(it, "dct:modified", distribution.modified)


def _describe_form(told: DcatStatements, it: NamedNode, part: NamedNode, distribution: Distribution) -> None:
    kind = authority.media_type(distribution.media_type) or authority.media_type(distribution.format)
    if kind:
        told.typed(it, "dcat:mediaType", NamedNode(authority.media_type_iri(kind)), "dct:MediaType")
    form = distribution.format or (None if kind else distribution.media_type)
    code = authority.file_type(form) if form else None
    iri = authority.file_type_iri(code) if code else None
    own = NamedNode(part.value + "/format")
    told.named(it, "dct:format", "dct:MediaTypeOrExtent", form, own, iri)
    size = distribution.byte_size
    if size is not None and 0 <= size <= _LARGEST_SIZE:
        told.add(it, "dcat:byteSize", count_literal(size))


def _describe_checksum(
    told: DcatStatements, it: NamedNode, part: NamedNode, distribution: Distribution
) -> None:
    name, value = (
        ("sha256", distribution.sha256) if distribution.sha256 else distribution.checksum or ("", "")
    )
    algorithm = re.sub(r"[^a-z0-9]", "", name.lower())
    digits = value.strip().lower()
    if _DIGEST_SIZES.get(algorithm) != len(digits) or not re.fullmatch(r"[0-9a-f]+", digits):
        return
    checksum = NamedNode(part.value + "/checksum")
    told.typed(it, "spdx:checksum", checksum, "spdx:Checksum")
    told.typed(
        checksum, "spdx:algorithm", word(f"spdx:checksumAlgorithm_{algorithm}"), "spdx:ChecksumAlgorithm"
    )
    told.add(checksum, "spdx:checksumValue", hex_literal(digits))


def _describe_terms(
    told: DcatStatements, it: NamedNode, number: int, distribution: Distribution, licence: str | None
) -> None:
    """Licence, rights, languages, standards; the dataset's licence is that of its distributions."""
    own = ("distribution", str(number))
    part = told.part(*own, "licence") if distribution.licence else told.part("licence")
    licence = distribution.licence or licence
    told.named(it, "dct:license", "dct:LicenseDocument", licence, part, authority.licence_iri(licence))
    rights = untranslated(distribution.rights, "dct:rights", distribution.more)
    told.named(it, "dct:rights", "dct:RightsStatement", rights, told.part(*own, "rights"))
    for place, tag in enumerate(distribution.language, 1):
        language = told.part(*own, "language", str(place))
        told.named(it, "dct:language", "dct:LinguisticSystem", tag, language, authority.language_iri(tag))
    told.standards(it, distribution.conforms_to, *own)


def _describe_service(
    told: DcatStatements,
    dataset: Dataset,
    node: NamedNode,
    it: NamedNode,
    number: int,
    distribution: Distribution,
) -> None:
    endpoint = sound_iri(distribution.service, web=True)
    if endpoint is None:
        return
    service = told.part("service", str(number))
    told.typed(it, "dcat:accessService", service, "dcat:DataService")
    told.add(service, "dcat:endpointURL", endpoint)
    told.text(service, "dct:title", distribution.title or dataset.title)
    told.add(service, "dcat:servesDataset", node)
    if standard := authority.service_type_iri(distribution.service_kind or ""):
        told.typed(service, "dct:conformsTo", NamedNode(standard), "dct:Standard")
    told.add(NamedNode(told.catalogue), "dcat:service", service)


def _describe_access(told: DcatStatements, it: NamedNode, service: DataService, number: str) -> None:
    """A service that the portal describes beside the distribution. DCAT-AP asks it for an endpoint."""
    endpoints = [iri for url in service.endpoints if (iri := sound_iri(url, web=True))]
    if not endpoints:
        return
    node = sound_iri(service.iri) or told.part("service", number)
    told.typed(it, "dcat:accessService", node, "dcat:DataService")
    told.text(node, "dct:title", service.title or endpoints[0].value)
    for endpoint in endpoints:
        told.add(node, "dcat:endpointURL", endpoint)
    for served in service.serves:
        told.add(node, "dcat:servesDataset", sound_iri(served))
    describe_properties(told, node, service.more, "service", number)
    told.add(NamedNode(told.catalogue), "dcat:service", node)
