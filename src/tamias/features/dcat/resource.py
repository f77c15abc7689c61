"""A resource and its versions as quads: DCAT 3 as DCAT-AP 3.0.1 has it, and the Open Dataset Archive's terms.

The dataset, its versions and their files each have an IRI under the service's address.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final
from urllib.parse import unquote

import msgspec
from pyoxigraph import NamedNode, Quad

from tamias.archive.moments import rfc3339
from tamias.archive.versions.resources import Suspect
from tamias.features.archive.descriptions import SameContent
from tamias.features.dcat.datasets.authority import EU, licence_iri
from tamias.features.dcat.joins import JoinCandidate
from tamias.features.dcat.measures import Measure, describe_measures
from tamias.features.dcat.profiles import describe_joins, describe_profile
from tamias.features.dcat.terms import (
    CatalogueBases,
    GraphBuilder,
    Period,
    address,
    catalogue_graph,
    media_type_iri,
    moment,
    text,
    typed,
)
from tamias.model.profile import Profile
from tamias.model.resource import Resource, Version
from tamias.model.vocabulary import word

_FREQUENCIES: Final = EU + "frequency/"
_YEAR: Final = 365.25

_PER_DAY: Final = {
    "HOURLY": 24.0,
    "BIHOURLY": 12.0,
    "TRIHOURLY": 8.0,
    "DAILY_2": 2.0,
    "DAILY": 1.0,
    "WEEKLY_3": 3 / 7,
    "WEEKLY_2": 2 / 7,
    "WEEKLY": 1 / 7,
    "BIWEEKLY": 1 / 14,
    "MONTHLY": 12 / _YEAR,
    "BIMONTHLY": 6 / _YEAR,
    "QUARTERLY": 4 / _YEAR,
    "ANNUAL_3": 3 / _YEAR,
    "ANNUAL_2": 2 / _YEAR,
    "ANNUAL": 1 / _YEAR,
    "BIENNIAL": 1 / 2 / _YEAR,
    "TRIENNIAL": 1 / 3 / _YEAR,
    "QUADRENNIAL": 1 / 4 / _YEAR,
    "QUINQUENNIAL": 1 / 5 / _YEAR,
    "DECENNIAL": 1 / 10 / _YEAR,
}
_CONTINUOUS: Final = 48.0
_NEVER: Final = 1 / 20 / _YEAR


def frequency(changes_a_day: float | None) -> str | None:
    """The IRI of the nearest frequency, by ratio; None where the rate is not known.

    >>> frequency(1.1), frequency(0.0001)
    ('http://publications.europa.eu/resource/authority/frequency/DAILY', \
'http://publications.europa.eu/resource/authority/frequency/NEVER')
    """
    if changes_a_day is None or not changes_a_day >= 0:
        return None
    if changes_a_day > _CONTINUOUS:
        return _FREQUENCIES + "CONT"
    if changes_a_day < _NEVER:
        return _FREQUENCIES + "NEVER"
    return _FREQUENCIES + min(_PER_DAY, key=lambda name: abs(log(changes_a_day / _PER_DAY[name])))


_LONGEST_TITLE: Final = 1000


class ResourceDetails(msgspec.Struct, frozen=True):
    """Facts about a resource beside its versions."""

    suspects: Sequence[Suspect] = ()
    gone: Sequence[Period] = ()
    """When its server said that it was."""
    measures: Sequence[Measure] = ()
    joins: Sequence[JoinCandidate] = ()


_NO_DETAILS: Final = ResourceDetails()
_NO_PROFILES: Final[Mapping[str, Profile]] = {}
_NOTHING_SAME: Final[Mapping[str, SameContent]] = {}


def resource_quads(
    resource: Resource,
    versions: Sequence[Version],
    *,
    bases: CatalogueBases,
    details: ResourceDetails = _NO_DETAILS,
    profiles: Mapping[str, Profile] = _NO_PROFILES,
    same: Mapping[str, SameContent] = _NOTHING_SAME,
) -> list[Quad]:
    """Return all statements of the catalogue on a resource: its head, and the graphs of its versions.

    Versions are given oldest first, profiles by the SHA-256 of the versions, `same` by their ids.
    """
    quads = head_quads(resource, versions, details, bases)
    for before, version in zip([None, *versions], versions, strict=False):
        number = before.number if before else None
        profile, other = profiles.get(version.sha256), same.get(version.id)
        quads += version_quads(resource, version, number, bases=bases, profile=profile, same=other)
    return quads


def head_quads(
    resource: Resource, versions: Sequence[Version], details: ResourceDetails, bases: CatalogueBases
) -> list[Quad]:
    """Return what changes with every version or visit, in the graph `urn:tamias:catalogue:ID`.

    Of the versions, only the first and the last are looked at.
    """
    builder = GraphBuilder(catalogue_graph(resource.id))
    _describe_dataset(builder, resource, versions, bases)
    _describe_licences(builder, resource, versions, bases)
    describe_joins(builder, details.joins, bases)
    _describe_address(builder, resource)
    _describe_suspects(builder, resource, details.suspects, bases)
    node = bases.dataset(resource.id)
    for start, end in details.gone:
        builder.period(node, "arc:gone", f"{node.value}#gone-{start}", (start, end), {})
    describe_measures(builder, node, details.measures)
    return list(dict.fromkeys(builder.quads))


def version_quads(
    resource: Resource,
    version: Version,
    before: int | None,
    *,
    bases: CatalogueBases,
    profile: Profile | None = None,
    same: SameContent | None = None,
) -> list[Quad]:
    """Return the lasting description of a version, in the graph `urn:tamias:catalogue:ID:NUMBER`.

    `before` is the number of the version before it, `same` the first of another resource with its content.
    """
    builder = GraphBuilder(catalogue_graph(resource.id, str(version.number)))
    _describe_version(builder, resource, version, before, bases)
    if same is not None:
        node = bases.version(resource.id, version.number)
        builder.add(node, "arc:sameContentAs", bases.version(same.id.rpartition("_")[0], same.number))
    _describe_distribution(builder, resource, version, bases)
    if profile is not None:
        describe_profile(builder, bases.file(version), profile)
    _describe_file(builder, resource, version, bases)
    return list(dict.fromkeys(builder.quads))


def _describe_dataset(
    builder: GraphBuilder, resource: Resource, versions: Sequence[Version], bases: CatalogueBases
) -> None:
    node = bases.dataset(resource.id)
    builder.typed(bases.catalogue(), "dcat:dataset", node, "dcat:Dataset")
    builder.each(
        node,
        {
            "dct:title": text(_title(resource)),
            "dct:description": text(f"{resource.url}: every version that was seen of it, kept as it came."),
            "dct:identifier": text(resource.id),
            "arc:state": text(resource.state),
            "dct:issued": moment(versions[0].captured_at) if versions else None,
            "dct:modified": moment(versions[-1].captured_at) if versions else None,
            "dcat:hasCurrentVersion": bases.version(resource.id, versions[-1].number) if versions else None,
        },
    )
    often = frequency(resource.change_rate)
    builder.shared(node, "dct:accrualPeriodicity", NamedNode(often) if often else None, "dct:Frequency")
    _describe_origin(builder, resource, node)


def _describe_origin(builder: GraphBuilder, resource: Resource, node: NamedNode) -> None:
    """Describe where it is on the Web."""
    place, kind = address(resource.url), media_type_iri(resource.media_type)
    if place is None:
        return
    form = NamedNode(node.value + "#distribution")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.each(form, {"dcat:accessURL": place, "dcat:downloadURL": place})
    builder.shared(form, "dcat:mediaType", kind, "dct:MediaType")


def _describe_licences(
    builder: GraphBuilder, resource: Resource, versions: Sequence[Version], bases: CatalogueBases
) -> None:
    """Describe the licences that portals name: of the file on the Web and of the newest version."""
    node = bases.dataset(resource.id)
    forms = [NamedNode(node.value + "#distribution")]
    for version in versions[-1:]:
        number = bases.version(resource.id, version.number)
        forms += [NamedNode(number.value + "#distribution"), bases.file(version)]
    for place, licence in enumerate(resource.licences, 1):
        iri = address(licence_iri(licence) or licence)
        for form in forms:
            builder.typed(
                form, "dct:license", iri or NamedNode(f"{node.value}#licence-{place}"), "dct:LicenseDocument"
            )
        if iri is None:
            builder.add(NamedNode(f"{node.value}#licence-{place}"), "rdfs:label", text(licence))


def _describe_version(
    builder: GraphBuilder, resource: Resource, version: Version, before: int | None, bases: CatalogueBases
) -> None:
    node, whole = bases.version(resource.id, version.number), bases.dataset(resource.id)
    previous = bases.version(resource.id, before) if before is not None else None
    when = rfc3339(version.captured_at)
    builder.typed(whole, "dcat:hasVersion", node, "dcat:Dataset")
    builder.each(
        node,
        {
            "dcat:isVersionOf": whole,
            "dcat:previousVersion": previous,
            "prov:wasRevisionOf": previous,
            "dcat:version": text(str(version.number)),
            "dct:title": text(f"{_title(resource)}, version {version.number}"),
            "dct:description": text(f"Version {version.number} of {resource.url}, captured {when}."),
            "dct:identifier": text(version.id),
            "dct:issued": moment(version.captured_at),
        },
    )
    builder.typed(node, "prov:wasGeneratedBy", bases.activity(version.capture), "prov:Activity")


def _describe_distribution(
    builder: GraphBuilder, resource: Resource, version: Version, bases: CatalogueBases
) -> None:
    node = bases.version(resource.id, version.number)
    form, checksum = NamedNode(node.value + "#distribution"), NamedNode(node.value + "#checksum")
    builder.typed(node, "dcat:distribution", form, "dcat:Distribution")
    builder.each(
        form,
        {
            "dcat:accessURL": address(resource.url) or node,
            "dcat:downloadURL": bases.file(version),
            "dcat:byteSize": typed(version.byte_size, "nonNegativeInteger"),
        },
    )
    builder.shared(form, "dcat:mediaType", media_type_iri(version.media_type), "dct:MediaType")
    builder.typed(form, "spdx:checksum", checksum, "spdx:Checksum")
    builder.shared(
        checksum, "spdx:algorithm", word("spdx:checksumAlgorithm_sha256"), "spdx:ChecksumAlgorithm"
    )
    builder.add(checksum, "spdx:checksumValue", typed(version.sha256, "hexBinary"))


def _describe_address(builder: GraphBuilder, resource: Resource) -> None:
    """Describe the URL itself, with the files as its versions, as the Open Dataset Archive does."""
    place = address(resource.url)
    if place is None:
        return
    builder.each(place, {"dcat:mediaType": text(resource.media_type), "dct:title": text(_title(resource))})
    for source in resource.sources:
        builder.add(place, "arc:hasPortal", address(source.portal))
        if described := address(source.source):
            builder.add(described, "dcat:accessURL", place)


def _describe_file(
    builder: GraphBuilder, resource: Resource, version: Version, bases: CatalogueBases
) -> None:
    """The same of one version."""
    place, file = address(resource.url), bases.file(version)
    if place is None:
        return
    builder.add(place, "dct:hasVersion", file)
    builder.each(
        file,
        {
            "dct:identifier": text(version.sha256),
            "dct:issued": moment(version.captured_at),
            "dcat:byteSize": typed(version.byte_size, "integer"),
        },
    )


def _describe_suspects(
    builder: GraphBuilder, resource: Resource, suspects: Sequence[Suspect], bases: CatalogueBases
) -> None:
    """Bodies that came and were not believed: no versions, but not hidden either."""
    whole = bases.dataset(resource.id)
    for suspect in suspects:
        node = NamedNode(f"{whole.value}#suspect-{suspect.seen_at}")
        builder.typed(whole, "arc:hasSuspect", node, "arc:Suspect")
        builder.each(
            node,
            {
                "arc:reason": text(suspect.reason),
                "dct:created": moment(suspect.seen_at),
                "dct:identifier": text(suspect.sha256),
                "dcat:byteSize": typed(suspect.byte_size, "nonNegativeInteger"),
            },
        )


def _title(resource: Resource) -> str:
    """Return its own title, that of a source, the name of the file, or the URL."""
    titles = [resource.title, *(source.title for source in resource.sources)]
    named = unquote(resource.url.partition("?")[0].rstrip("/").rpartition("/")[2])
    found = next((title for title in titles if title and title.strip()), named or resource.url)
    return found.strip()[:_LONGEST_TITLE] or resource.id
