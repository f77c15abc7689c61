"""Small portals of every kind: of each a full record, a bare one, and one full of slips."""

import json

from servers import csw_answers

from tamias.features.portals.arcgis import ArcGisHarvester
from tamias.features.portals.ckan import CkanHarvester
from tamias.features.portals.csw import CswHarvester
from tamias.features.portals.data_json import DataJsonHarvester
from tamias.features.portals.dataverse import DataverseHarvester
from tamias.features.portals.dcat import CatalogueHarvester
from tamias.features.portals.dkan import DkanHarvester
from tamias.features.portals.oai import OaiHarvester
from tamias.features.portals.ogc import OgcRecordsHarvester, StacHarvester
from tamias.features.portals.opendatasoft import OpenDataSoftHarvester
from tamias.features.portals.socrata import SocrataHarvester
from tamias.features.portals.udata import UdataHarvester
from tamias.features.portals.zenodo import ZenodoHarvester

_SLIPS = "not a date, nor <an> address"
_SHAPE = {"type": "Polygon", "coordinates": [[[8, 47], [9, 47], [9, 48], [8, 48], [8, 47]]]}


def _ckan(path, query):
    full = {
        "id": "4d2f",
        "name": "trees",
        "title": "Trees of the city",
        "notes": "Every tree.",
        "tags": [{"name": "trees"}, {"name": "green"}],
        "groups": [{"title": "Environment", "name": "env"}],
        "license_url": "https://creativecommons.org/licenses/by/4.0/",
        "organization": {"id": "o1", "name": "parks", "title": "Parks Office"},
        "maintainer": "Tree desk",
        "maintainer_email": "trees@example.org",
        "metadata_created": "2021-01-02T03:04:05.678901",
        "metadata_modified": "2022-01-02T03:04:05.678901",
        "extras": [
            {"key": "frequency", "value": "annually"},
            {"key": "language", "value": '["en", "de"]'},
            {"key": "spatial", "value": json.dumps(_SHAPE)},
            {"key": "temporal_start", "value": "2010-01-01"},
            {"key": "theme", "value": "http://publications.europa.eu/resource/authority/data-theme/ENVI"},
        ],
        "resources": [
            {
                "id": "r1",
                "url": "https://example.org/trees.csv",
                "format": "CSV",
                "size": "12",
                "hash": "a" * 40,
            },
            {"id": "r2", "url": "https://example.org/sparql", "format": "SPARQL", "name": "Query"},
        ],
    }
    bare = {"id": "bare", "name": "bare"}
    messy = {
        "id": "messy",
        "title": _SLIPS,
        "url": _SLIPS,
        "license_url": _SLIPS,
        "author": "A. Nobody",
        "metadata_created": _SLIPS,
        "resources": [
            {"url": "trees of the city.csv", "size": "big", "hash": "zz"},
            {"url": "https://e.org/a b"},
        ],
        "extras": [{"key": "frequency", "value": _SLIPS}, {"key": "spatial", "value": "{"}],
    }
    found = [full, bare, messy]
    if path.endswith("status_show"):
        return {"success": True, "result": {"site_title": "City data"}}
    if path.endswith("package_search"):
        start = int(query["start"])
        ordered = sorted(found, key=lambda each: each["id"])
        rows = ordered[start : start + int(query["rows"])]
        return {"success": True, "result": {"count": 3, "results": rows}}
    return None


_POD = [
    {
        "@type": "dcat:Dataset",
        "identifier": "https://data.example.org/id/1",
        "title": "Bridges",
        "description": "All bridges.",
        "keyword": ["bridge"],
        "theme": ["Transport"],
        "modified": "2023-05-06",
        "issued": "2020-01-01T00:00:00Z",
        "publisher": {"name": "Department of Roads", "subOrganizationOf": {"name": "State"}},
        "contactPoint": {"fn": "Road desk", "hasEmail": "mailto:roads@example.org"},
        "accessLevel": "public",
        "license": "https://creativecommons.org/publicdomain/zero/1.0/",
        "spatial": "-77.1,38.8,-76.9,39.0",
        "temporal": "2000-01-01/2020-12-31",
        "accrualPeriodicity": "R/P1Y",
        "language": ["en-US"],
        "landingPage": "https://data.example.org/bridges",
        "distribution": [
            {
                "downloadURL": "https://data.example.org/bridges.csv",
                "mediaType": "text/csv",
                "title": "Table",
            },
            {"accessURL": "https://data.example.org/bridges/map", "format": "Web page"},
        ],
    },
    {"identifier": "bare", "title": "Bare"},
    {
        "identifier": "messy one",
        "title": _SLIPS,
        "modified": "R/P1D",
        "issued": _SLIPS,
        "license": _SLIPS,
        "spatial": {"bogus": 1},
        "temporal": _SLIPS,
        "publisher": {"name": " "},
        "contactPoint": {"fn": "x", "hasEmail": "mailto:"},
        "distribution": [{"downloadURL": _SLIPS}, {"title": "nowhere"}],
    },
]


def _data_json(path, query):
    return {"@type": "dcat:Catalog", "dataset": _POD} if path == "/data.json" else None


_CONTACT = {"@type": "Kind", "fn": "Desk", "hasEmail": "mailto:desk@example.org"}
_DCAT_US = {
    "@type": "Catalog",
    "@id": "https://data.example.org/",
    "conformsTo": {"@type": "Standard", "title": "DCAT-US 3.0"},
    "title": "City data",
    "description": "All of the city.",
    "publisher": {"@id": "https://data.example.org/city", "name": "City"},
    "contactPoint": [_CONTACT],
    "dataset": [
        {
            "@id": "https://data.example.org/id/trees",
            "title": "Trees",
            "description": "Every tree.",
            "identifier": {"@type": "Identifier", "notation": "T-1", "schemaAgency": "City"},
            "otherIdentifier": [{"notation": "10.1/trees"}],
            "contactPoint": [_CONTACT, {"fn": "Second desk", "hasEmail": "mailto:second@example.org"}],
            "publisher": {"name": "Parks"},
            "creator": {"name": "Gardeners"},
            "contributor": [{"name": "Neighbours"}],
            "rightsHolder": [{"name": "The city"}],
            "qualifiedAttribution": [
                {"hadRole": "https://example.org/role/steward", "agent": {"name": "Ada"}}
            ],
            "qualifiedRelation": [
                {"hadRole": "https://example.org/role/in", "relation": "https://data.example.org/id/trees"}
            ],
            "theme": [{"@id": "https://example.org/theme/green", "prefLabel": "Green"}, "Health"],
            "status": {"prefLabel": "Published"},
            "rights": ["No warranty."],
            "license": "https://creativecommons.org/publicdomain/zero/1.0/",
            "landingPage": {"title": "Page", "accessURL": "https://data.example.org/trees"},
            "conformsTo": [{"@id": "https://example.org/standard", "title": "Tree standard"}],
            "spatial": [
                {"prefLabel": "Town", "bbox": {"type": "Polygon", "coordinates": _SHAPE["coordinates"]}}
            ],
            "temporal": [{"startDate": "2020-01-01", "endDate": "2020-12-31"}],
            "accrualPeriodicity": "daily",
            "versionNotes": "First.",
            "purpose": "To know them.",
            "distribution": [
                {
                    "title": "Table",
                    "downloadURL": "https://data.example.org/trees.csv",
                    "mediaType": "text/csv",
                    "byteSize": "12",
                    "checksum": {"algorithm": "SHA-256", "checksumValue": "ab" * 32},
                    "accessService": [{"title": "API", "endpointURL": ["https://api.example.org/trees"]}],
                }
            ],
        }
    ],
    "record": [{"modified": "2024-06-15", "primaryTopic": "https://data.example.org/id/trees", "title": "R"}],
    "service": [
        {
            "title": "Query",
            "identifier": "https://data.example.org/service",
            "endpointURL": ["https://data.example.org/sparql"],
            "contactPoint": [_CONTACT],
            "publisher": {"name": "City"},
            "servesDataset": [{"identifier": "served", "title": "Served", "description": "By the service."}],
        }
    ],
    "catalog": [
        {
            "title": "Child",
            "description": "Within.",
            "publisher": {"name": "City"},
            "dataset": [{"identifier": "child", "title": "Of the child", "description": "One deep."}],
            "catalog": [
                {
                    "title": "Grandchild",
                    "description": "Within the child.",
                    "publisher": {"name": "City"},
                    "dataset": [
                        {"identifier": "grandchild", "title": "Of the grandchild", "description": "2"}
                    ],
                }
            ],
            "datasetSeries": [
                {
                    "@id": "https://data.example.org/series",
                    "title": "Reports",
                    "description": "Of each year.",
                    "seriesMember": [{"identifier": "member", "title": "Report", "description": "2024."}],
                    "first": {"identifier": "member", "title": "Report", "description": "2024."},
                }
            ],
        }
    ],
}


def _dcat_us(path, query):
    return _DCAT_US if path == "/data.json" else None


def _dkan(path, query):
    return _POD if path == "/api/1/metastore/schemas/dataset/items" else None


def _arcgis(path, query):
    return {"dataset": _POD} if path == "/api/feed/dcat-us/1.1.json" else None


def _arcgis_search(path, query):
    if path != "/api/search/v1/collections/dataset/items":
        return None
    full = {
        "id": "aa11",
        "geometry": _SHAPE,
        "properties": {
            "title": "Parcels",
            "description": "<b>Parcels</b>",
            "tags": ["land"],
            "categories": ["/Categories/Land"],
            "license": "CC-BY-4.0",
            "access": "public",
            "source": "Land Office",
            "created": 1577836800000,
            "modified": 1609459200000,
            "culture": "en-us",
            "type": "Feature Service",
            "url": "https://services.example.org/rest/services/Parcels/FeatureServer",
        },
    }
    features = [
        full,
        {"id": "bare", "properties": {}},
        {"id": "messy", "properties": {"created": -5, "url": _SLIPS}},
    ]
    start, size = int(query["startindex"]) - 1, int(query["limit"])
    return {"features": features[start : start + size], "numberMatched": 3}


def _socrata(path, query):
    if path != "/api/catalog/v1":
        return None
    full = {
        "resource": {
            "id": "abcd-1234",
            "name": "Permits",
            "description": "Permits given.",
            "attribution": "Building Office",
            "attribution_link": "https://example.org/building",
            "contact_email": "permits@example.org",
            "createdAt": "2019-01-01T00:00:00.000Z",
            "updatedAt": "2024-01-01T00:00:00.000Z",
        },
        "classification": {
            "domain_tags": ["permits"],
            "domain_category": "Housing",
            "domain_metadata": [{"key": "Info_Update-Frequency", "value": "Daily"}],
        },
        "metadata": {"domain": "data.example.org", "license": "Public Domain"},
        "permalink": "https://data.example.org/d/abcd-1234",
        "link": "https://data.example.org/Housing/Permits/abcd-1234",
    }
    messy = {"resource": {"id": "messy", "createdAt": _SLIPS, "attribution": _SLIPS}, "link": _SLIPS}
    found = [full, {"resource": {"id": "bare"}}, messy][int(query.get("offset", 0)) :]
    return {"results": found[: int(query["limit"])], "resultSetSize": 3}


def _opendatasoft(path, query):
    if path != "/api/explore/v2.1/catalog/datasets":
        return None
    full = {
        "dataset_id": "velo",
        "dataset_uid": "da_x1",
        "has_records": True,
        "features": ["geo"],
        "metas": {
            "default": {
                "title": "Vélos",
                "description": "<p>Stations</p>",
                "language": "fr",
                "theme": ["Transport"],
                "keyword": ["vélo"],
                "license": "Licence Ouverte v2.0",
                "license_url": "https://www.etalab.gouv.fr/licence-ouverte-open-licence/",
                "publisher": "Ville",
                "modified": "2023-01-01T10:00:00+00:00",
                "territory": ["France"],
            },
            "dcat": {
                "creator": "Service",
                "contact_name": "Bureau",
                "contact_email": "velo@example.org",
                "accrualperiodicity": "http://publications.europa.eu/resource/authority/frequency/HOURLY",
                "temporal_coverage_start": "2020-01-01",
            },
        },
        "attachments": [
            {"url": "https://data.example.org/a.pdf", "title": "A", "mimetype": "application/pdf"}
        ],
    }
    bare = {"dataset_id": "bare", "metas": {"default": {"modified": "2023-02-01T10:00:00+00:00"}}}
    messy = {
        "dataset_id": "messy one",
        "metas": {"default": {"license_url": _SLIPS}, "dcat": {"issued": _SLIPS}},
    }
    found = [full, bare, messy][int(query["offset"]) :]
    return {"total_count": 3, "results": found[: int(query["limit"])]}


def _udata(path, query):
    if path == "/api/1/site/":
        return {"title": "Portail"}
    if path != "/api/1/datasets/":
        return None
    full = {
        "id": "5f00",
        "title": "Budget",
        "description": "Le budget.",
        "tags": ["budget"],
        "license": "fr-lo",
        "badges": [{"kind": "hvd"}],
        "frequency": "annual",
        "created_at": "2020-01-01T00:00:00+00:00",
        "last_modified": "2021-01-01T00:00:00+00:00",
        "organization": {
            "id": "o9",
            "name": "Trésor",
            "page": "https://data.example.org/organizations/tresor/",
        },
        "contact_points": [{"name": "Budget", "email": "budget@example.org"}],
        "temporal_coverage": {"start": "2020-01-01", "end": "2020-12-31"},
        "spatial": {"geom": None, "zones": ["country:fr"]},
        "resources": [
            {
                "id": "r1",
                "url": "https://data.example.org/b.csv",
                "format": "csv",
                "mime": "text/csv",
                "filesize": 7,
                "checksum": {"type": "sha256", "value": "b" * 64},
                "created_at": "2020-01-01T00:00:00+00:00",
            }
        ],
    }
    messy = {
        "id": "messy",
        "title": _SLIPS,
        "license": _SLIPS,
        "spatial": {"geom": {"x": 1}},
        "resources": [{"url": _SLIPS}],
    }
    size, page = int(query["page_size"]), int(query["page"])
    found = [full, {"id": "bare", "title": "Nu"}, messy]
    return {"data": found[(page - 1) * size : page * size], "total": 3}


def _dataverse(path, query):
    items = [
        {
            "global_id": f"doi:10.1/{name}",
            "url": f"https://doi.org/10.1/{name}",
            "name": name,
            "published_at": "2020-02-03",
        }
        for name in ("full", "bare")
    ]
    items.append(
        {"global_id": "messy one", "name": _SLIPS, "url": _SLIPS, "published_at": _SLIPS, "authors": [7]}
    )
    if path == "/api/search":
        return {"status": "OK", "data": {"total_count": 3, "items": items[int(query["start"]) :]}}
    if path != "/api/datasets/export" or query["persistentId"] != "doi:10.1/full":
        return None
    fields = [
        {"typeName": "title", "value": "Tides"},
        {"typeName": "author", "value": [{"authorName": {"value": "Noether, Emmy"}}]},
        {"typeName": "datasetContact", "value": [{"datasetContactEmail": {"value": "desk@example.org"}}]},
        {"typeName": "dsDescription", "value": [{"dsDescriptionValue": {"value": "Of the sea."}}]},
        {"typeName": "subject", "value": ["Earth Sciences"]},
        {"typeName": "language", "value": ["English"]},
        {"typeName": "timePeriodCovered", "value": [{"timePeriodCoveredStart": {"value": "2001"}}]},
    ]
    box = {"westLongitude": "5", "eastLongitude": "6", "northLatitude": "50", "southLatitude": "49"}
    where = [
        {
            "typeName": "geographicBoundingBox",
            "value": [{name: {"value": side} for name, side in box.items()}],
        }
    ]
    file = {"id": 5, "contentType": "text/csv", "filesize": 9, "checksum": {"type": "MD5", "value": "c" * 32}}
    version = {
        "lastUpdateTime": "2020-03-01T00:00:00Z",
        "license": {"uri": "http://creativecommons.org/publicdomain/zero/1.0"},
        "metadataBlocks": {"citation": {"fields": fields}, "geospatial": {"fields": where}},
        "files": [{"label": "tides.csv", "dataFile": file}, {"restricted": True, "dataFile": {"id": 6}}],
    }
    return {"persistentUrl": "https://doi.org/10.1/full", "publisher": "Harbour", "datasetVersion": version}


def _zenodo(path, query):
    full = {
        "id": 1,
        "doi": "10.5281/zenodo.1",
        "created": "2020-01-01T00:00:00.000000+00:00",
        "updated": "2020-01-02T00:00:00.000000+00:00",
        "metadata": {
            "title": "Spectra",
            "description": "<p>Light</p>",
            "publication_date": "2020-01-01",
            "creators": [{"name": "Curie, Marie", "orcid": "0000-0001-2345-6789"}],
            "keywords": ["light"],
            "license": {"id": "cc-by-4.0"},
            "language": "eng",
            "access_right": "open",
            "resource_type": {"type": "dataset"},
            "locations": [{"lat": 46.2, "lon": 6.1, "place": "Geneva"}],
            "dates": [{"type": "Collected", "start": "2019-01-01", "end": "2019-02-01"}],
            "version": "1.0",
        },
        "files": [
            {
                "key": "a.csv",
                "size": 3,
                "checksum": "md5:" + "d" * 32,
                "links": {"self": "https://e.org/a.csv"},
            }
        ],
    }
    native = {
        "id": "x7f-q1",
        "created": "2021-01-01T00:00:00+00:00",
        "pids": {"doi": {"identifier": "10.1234/x7f"}},
        "access": {"files": "public"},
        "metadata": {
            "title": "Native",
            "publisher": "Institute",
            "resource_type": {"id": "dataset"},
            "creators": [{"person_or_org": {"name": "Meitner, Lise"}}],
            "rights": [{"id": "cc0-1.0", "title": {"en": "CC0"}}],
            "languages": [{"id": "deu"}],
            "subjects": [{"subject": "physics"}],
        },
        "files": {"entries": {"b c.csv": {"key": "b c.csv", "size": 4, "mimetype": "text/csv"}}},
    }
    messy = {
        "id": "m",
        "created": _SLIPS,
        "metadata": {"title": _SLIPS, "license": _SLIPS, "publication_date": _SLIPS},
    }
    return {"hits": {"hits": [full, native, messy], "total": 3}} if path == "/api/records" else None


_OAI = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
_DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/">'
)
_DUBLIN_CORE = f"""{_DC}<dc:title xml:lang="en">Songs</dc:title><dc:creator>Bird, A.</dc:creator>
<dc:subject>birds</dc:subject><dc:description>Recorded songs.</dc:description>
<dc:publisher>Forest</dc:publisher><dc:date>2019-05-04</dc:date><dc:type>Dataset</dc:type>
<dc:identifier>https://repo.example.org/songs</dc:identifier><dc:language>eng</dc:language>
<dc:identifier>https://repo.example.org/s.csv</dc:identifier><dc:coverage>Black Forest</dc:coverage>
<dc:rights>https://creativecommons.org/licenses/by/4.0/</dc:rights></oai_dc:dc>"""
_DATACITE = """<resource xmlns="http://datacite.org/schema/kernel-4">
<identifier identifierType="DOI">10.5072/x</identifier>
<creators><creator><creatorName>Sea, B.</creatorName></creator></creators>
<titles><title>Waves</title></titles><publisher>Ocean</publisher>
<publicationYear>2018</publicationYear><subjects><subject>waves</subject></subjects>
<dates><date dateType="Issued">2018-01-01</date>
<date dateType="Collected">2017-01-01/2017-12-31</date></dates>
<language>en</language><resourceType resourceTypeGeneral="Dataset">Data</resourceType>
<rightsList><rights rightsURI="https://creativecommons.org/licenses/by/4.0/">CC BY</rights></rightsList>
<descriptions><description descriptionType="Abstract">Measured waves.</description></descriptions>
<geoLocations><geoLocation><geoLocationPlace>North Sea</geoLocationPlace><geoLocationBox>
<westBoundLongitude>1</westBoundLongitude><eastBoundLongitude>2</eastBoundLongitude>
<southBoundLatitude>53</southBoundLatitude><northBoundLatitude>54</northBoundLatitude>
</geoLocationBox></geoLocation></geoLocations></resource>"""
_MESSY = f"""{_DC}<dc:title>Messy</dc:title><dc:date>yesterday</dc:date>
<dc:identifier>no address</dc:identifier></oai_dc:dc>"""


def _oai(prefix, *metadata):
    def serve(path, query):
        verb = query["verb"]
        if verb == "Identify":
            said = "<repositoryName>Repository</repositoryName><adminEmail>a@example.org</adminEmail>"
        elif verb == "ListMetadataFormats":
            said = f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix></metadataFormat>"
        else:
            said = "".join(
                f"<record><header><identifier>oai:x:{number}</identifier><datestamp>2024-01-01</datestamp></header>"
                f"<metadata>{each}</metadata></record>"
                for number, each in enumerate(metadata)
            )
        body = f"{_OAI}<{verb}>{said}</{verb}></OAI-PMH>".encode()
        return 200, {"Content-Type": "text/xml"}, body

    return serve


_ISO = csw_answers.iso_record("trees", "Trees", "Every tree.", "2024-01-02T03:04:05")


def _csw(schema, *records):
    def serve(path, query):
        if query["request"] == "GetCapabilities":
            return csw_answers.capabilities(schema)
        return csw_answers.page(records, len(records))

    return serve


_CATALOGUE = b"""@prefix dcat: <http://www.w3.org/ns/dcat#> . @prefix dct: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> . @prefix vcard: <http://www.w3.org/2006/vcard/ns#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<https://c.example.org/> a dcat:Catalog ; dct:title "C"@en ; dct:description "C"@en ;
  dct:publisher <https://c.example.org/office> ; dcat:dataset <https://c.example.org/1> .
<https://c.example.org/office> a foaf:Agent ; foaf:name "Office" .
<https://c.example.org/1> a dcat:Dataset, dcat:Resource ; dct:title "One"@en ; dct:description "First."@en ;
  dct:issued "2020-01-01"^^xsd:date ; dcat:keyword "one"@en ; dct:publisher <https://c.example.org/office> ;
  dcat:contactPoint [ a vcard:Kind ; vcard:fn "Desk" ; vcard:hasEmail <mailto:desk@example.org> ] ;
  dct:temporal [ a dct:PeriodOfTime ; dcat:startDate "2019-01-01"^^xsd:date ] ;
  dcat:distribution <https://c.example.org/1#csv> .
<https://c.example.org/1#csv> a dcat:Distribution ; dcat:accessURL <https://c.example.org/1.csv> ;
  dcat:downloadURL <https://c.example.org/1.csv> ; dcat:byteSize "5"^^xsd:nonNegativeInteger .
"""


def _catalogue(path, query):
    return 200, {"Content-Type": "text/turtle"}, _CATALOGUE


_RECORD = {
    "id": "urn:x:trees",
    "type": "Feature",
    "conformsTo": ["http://www.opengis.net/spec/ogcapi-records-1/1.0/req/record-core"],
    "geometry": _SHAPE,
    "time": {"interval": ["2019-01-01", ".."]},
    "properties": {
        "type": "dataset",
        "title": "Trees",
        "description": "Every tree.",
        "keywords": ["tree", "park"],
        "themes": [{"concepts": [{"id": "environment"}], "scheme": "https://example.org/themes"}],
        "language": {"code": "en"},
        "created": "2020-01-01",
        "updated": "2024-01-02T03:04:05Z",
        "license": "CC-BY-4.0",
        "contacts": [
            {"organization": "Parks", "roles": ["publisher"], "emails": [{"value": "parks@example.org"}]},
            {"name": "A. Keeper", "roles": ["pointOfContact"]},
        ],
        "externalIds": [{"scheme": "doi", "value": "10.5/trees"}],
    },
    "links": [
        {"rel": "enclosure", "href": "https://example.org/trees.csv", "type": "text/csv", "title": "Table"},
        {"rel": "about", "href": "https://example.org/trees"},
    ],
}
_ITEM = {
    "type": "Feature",
    "stac_version": "1.0.0",
    "id": "scene-1",
    "collection": "scenes",
    "geometry": _SHAPE,
    "properties": {"datetime": "2020-12-11T22:38:32.125000Z", "platform": "sat-1", "eo:cloud_cover": 0.5},
    "assets": {
        "visual": {
            "href": "https://example.org/1.tif",
            "type": "image/tiff; application=geotiff",
            "title": "Colours",
            "roles": ["visual"],
        }
    },
    "links": [],
}
_COLLECTION = {
    "type": "Collection",
    "stac_version": "1.0.0",
    "id": "scenes",
    "title": "Scenes",
    "description": "Scenes of a satellite.",
    "license": "CC-BY-4.0",
    "keywords": ["satellite"],
    "providers": [{"name": "Agency", "roles": ["producer"], "url": "https://agency.example.org/"}],
    "extent": {
        "spatial": {"bbox": [[8, 47, 9, 48]]},
        "temporal": {"interval": [["2020-01-01T00:00:00Z", None]]},
    },
    "links": [],
}


def _ogc(path, query):
    if path == "/":
        return {"title": "Records"}
    if path == "/collections":
        return {"collections": [{"id": "town", "itemType": "record", "title": "Town"}]}
    first = "offset" not in query
    found = [_RECORD] if first else [{"id": "bare", "type": "Feature", "properties": {}}]
    links = [{"rel": "next", "href": "?f=json&offset=1"}] if first else []
    return {"type": "FeatureCollection", "features": found, "numberMatched": 2, "links": links}


def _stac(path, query):
    if path == "/":
        return {"title": "STAC"}
    if path == "/collections":
        return {"collections": [_COLLECTION], "links": []}
    first = "token" not in query
    links = [{"rel": "next", "href": "/collections/scenes/items?token=next:2"}] if first else []
    item = _ITEM if first else {**_ITEM, "id": "scene-2"}
    return {"type": "FeatureCollection", "features": [item], "links": links}


KINDS = {
    "ogc-records": (OgcRecordsHarvester, "/", _ogc, 2),
    "stac": (StacHarvester, "/", _stac, 3),
    "ckan": (CkanHarvester, "/", _ckan, 3),
    "dkan": (DkanHarvester, "/", _dkan, 3),
    "socrata": (SocrataHarvester, "/", _socrata, 3),
    "opendatasoft": (OpenDataSoftHarvester, "/", _opendatasoft, 3),
    "udata": (UdataHarvester, "/", _udata, 3),
    "arcgis feed": (ArcGisHarvester, "/", _arcgis, 3),
    "arcgis search": (ArcGisHarvester, "/", _arcgis_search, 3),
    "oai-pmh in Dublin Core": (OaiHarvester, "/oai", _oai("oai_dc", _DUBLIN_CORE, _MESSY), 2),
    "oai-pmh in DataCite": (
        OaiHarvester,
        "/oai",
        _oai("oai_datacite", f"<oai_datacite>{_DATACITE}</oai_datacite>"),
        1,
    ),
    "csw in ISO 19139": (CswHarvester, "/csw", _csw(csw_answers.GMD, _ISO, csw_answers.BARE), 2),
    "csw in Dublin Core": (CswHarvester, "/csw", _csw(csw_answers.CSW, csw_answers.RECORD), 1),
    "dataverse": (DataverseHarvester, "/", _dataverse, 3),
    "zenodo": (ZenodoHarvester, "/", _zenodo, 3),
    "dcat": (CatalogueHarvester, "/catalog.ttl", _catalogue, 1),
    "data-json": (DataJsonHarvester, "/data.json", _data_json, 3),
    "DCAT-US 3": (DataJsonHarvester, "/data.json", _dcat_us, 5),
}
"""Of each kind its harvester, the address to begin with, its server, and how many datasets it has."""
