"""The mappings of all portals by name: what reads a record again that was kept, without a request."""

from typing import TYPE_CHECKING, Final

import msgspec
from lxml import etree
from pyoxigraph import Quad

from tamias.harvesters.kit import pod
from tamias.harvesters.kit.from_dcat import datasets_in
from tamias.harvesters.kit.mapping import RecordMapping, map_element, map_record
from tamias.harvesters.portals import (
    arcgis,
    ckan_records,
    csw_records,
    dcat_records,
    dkan,
    opendatasoft,
    socrata,
    udata,
    zenodo,
)
from tamias.harvesters.portals.dataverse import SEARCH_MAPPING, export_mapping
from tamias.harvesters.portals.oai import rdf_in
from tamias.harvesters.portals.oai_records import MAPPING, RDF_MAPPING
from tamias.harvesters.portals.oai_xml import inner
from tamias.harvesters.portals.ogc_records import RECORDS_MAPPING, STAC_MAPPING
from tamias.model.dataset import Dataset
from tamias.model.finding import SourceRecord

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_JSON: Final = {
    mapping.name: mapping
    for mapping in (
        arcgis.MAPPING,
        ckan_records.MAPPING,
        dkan.MAPPING,
        opendatasoft.MAPPING,
        pod.MAPPING,
        socrata.MAPPING,
        udata.MAPPING,
        zenodo.MAPPING,
        RECORDS_MAPPING,
        STAC_MAPPING,
        SEARCH_MAPPING,
    )
}
_XML: Final = {
    mapping.name: mapping
    for mapping in (MAPPING, RDF_MAPPING, csw_records.ISO_MAPPING, csw_records.DUBLIN_CORE_MAPPING)
}


def mapping_of(source: SourceRecord) -> RecordMapping:
    """The mapping that a record is read by. Raises `KeyError` for one that is not known."""
    if source.mapping == dcat_records.MAPPING.name:
        return dcat_records.MAPPING
    if source.mapping == "dataverse":
        return export_mapping(source.record)
    return _JSON[source.mapping] if source.mapping in _JSON else _XML[source.mapping]


def dataset_again(source: SourceRecord) -> Dataset | None:
    """The dataset that a record describes that was kept. May raise what reading it raised."""
    mapping = mapping_of(source)
    if mapping is dcat_records.MAPPING or mapping is RDF_MAPPING:
        return next(iter(datasets_in(map_again(source), source.catalogue)), None)
    if mapping.name not in _XML:
        return mapping.dataset(msgspec.json.decode(source.body), source.catalogue)
    return mapping.dataset(_element(source), source.catalogue)


def map_again(source: SourceRecord) -> list[Quad]:
    """What a record says that was kept, by the mapping as it is now. May raise what reading it raised."""
    mapping = mapping_of(source)
    if mapping is dcat_records.MAPPING:
        return dcat_records.record_quads(source)
    if mapping.name not in _XML:
        return map_record(mapping, source.body, source.catalogue).quads
    element = _element(source)
    if mapping is RDF_MAPPING and (graph := inner(element, "RDF")) is not None:
        return rdf_in(graph, source.catalogue, source.record)
    return map_element(mapping, element, mapping.dataset(element, source.catalogue), source.catalogue).quads


def _element(source: SourceRecord) -> "Element":
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    return etree.fromstring(source.body, parser)
