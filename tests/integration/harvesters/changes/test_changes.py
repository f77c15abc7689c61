"""A second harvest asks for changes only, and what it leads to is what a harvest of everything brings."""

import gc
import json
import os
from datetime import datetime
from email.utils import format_datetime
from hashlib import sha256
from urllib.parse import urlencode

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse
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
from tamias.features.portals.zenodo import ZenodoHarvester
from tests.messages import unsaid

COUNT = 60
COST = int(os.environ.get("TAMIAS_COST_RECORDS", "0"))


class Records:
    """The records of a portal, each with the time of its last change; `touch` is the next moment."""

    def __init__(self, make, count=COUNT):
        self.make = make
        self.clock = 0
        self.stamps = {}
        self.texts = {}
        self.deleted = []
        for number in range(count):
            self.put(number, "as it was")

    def put(self, number, text):
        self.clock += 1
        hours, minutes = divmod(self.clock * 10, 60)
        self.stamps[number] = f"2024-01-{1 + hours // 24:02d}T{hours % 24:02d}:{minutes:02d}:00.000000"
        self.texts[number] = text

    def delete(self, number):
        del self.stamps[number], self.texts[number]
        self.deleted.append(number)

    def all(self):
        return [self.make(number, self.texts[number], stamp) for number, stamp in sorted(self.stamps.items())]

    def latest_first(self):
        numbers = sorted(self.stamps, key=lambda number: self.stamps[number], reverse=True)
        return [self.make(number, self.texts[number], self.stamps[number]) for number in numbers]


class Ckan:
    harvester = CkanHarvester()
    path = ""
    unchanged = 1

    def __init__(self, count=COUNT):
        self.records = Records(self._record, count)
        self.activities = True

    @staticmethod
    def _record(number, text, stamp):
        resource = {"id": f"r{number}", "url": f"https://files.example.org/{number}.csv", "format": "CSV"}
        return {
            "id": f"{number:08d}", "name": f"trees-{number}", "title": f"Trees {number}", "notes": text,
            "metadata_modified": stamp, "resources": [resource],
        }  # fmt: skip

    def __call__(self, path, query, _headers):
        action = path.removeprefix("/api/3/action/")
        if action == "status_show":
            return reply({"success": True, "result": {"site_title": "Town"}})
        if action == "recently_changed_packages_activity_list" and self.activities:
            told = [{"activity_type": "deleted package", "object_id": f"{number:08d}", "timestamp": ""}
                    for number in self.records.deleted]  # fmt: skip
            return reply({"success": True, "result": told})
        if action != "package_search":
            return 404, {}, b""
        by_date = query["sort"] == "metadata_modified desc"
        found = self.records.latest_first() if by_date else self.records.all()
        start, rows = int(query["start"]), min(25, int(query["rows"]))
        page = found[start : start + rows]
        if query.get("fl") == "id":
            page = [{"id": each["id"]} for each in page]
        return reply({"success": True, "result": {"count": len(found), "results": page}})


class Socrata:
    harvester = SocrataHarvester()
    path = ""
    unchanged = 1

    def __init__(self):
        self.records = Records(self._record)

    @staticmethod
    def _record(number, text, stamp):
        resource = {"id": f"aaaa-{number:04d}", "name": f"Trees {number}", "description": text}
        return {"resource": resource | {"updatedAt": stamp[:-3] + "Z"}, "classification": {}, "metadata": {}}

    def __call__(self, _path, query, _headers):
        by_date = query["order"] == "updatedAt DESC"
        found = self.records.latest_first() if by_date else self.records.all()
        start, limit = int(query["offset"]), int(query["limit"])
        return reply({"results": found[start : start + limit], "resultSetSize": len(found)})


class OpenDataSoft:
    harvester = OpenDataSoftHarvester()
    path = ""
    unchanged = 1

    def __init__(self):
        self.records = Records(self._record)

    @staticmethod
    def _record(number, text, stamp):
        default = {"title": f"Trees {number}", "description": text, "modified": "2020-01-01T00:00:00+00:00"}
        default["metadata_processed"] = stamp + "+00:00"
        return {"dataset_id": f"trees-{number:04d}", "has_records": True, "metas": {"default": default}}

    def __call__(self, _path, query, _headers):
        by_date = query["order_by"] == "metadata_processed desc"
        found = self.records.latest_first() if by_date else self.records.all()
        start, limit = int(query["offset"]), int(query["limit"])
        return reply({"total_count": len(found), "results": found[start : start + limit]})


class OaiPmh:
    """A repository that tells of deletions; each page has 25 records."""

    harvester = OaiHarvester()
    path = "oai"
    unchanged = 1
    rdf = False

    def __init__(self):
        self.records = Records(lambda number, text, stamp: (number, text, stamp[:19] + "Z"))
        self.gone = {}

    def __call__(self, _path, query, _headers):
        if query["verb"] == "Identify":
            said = "<repositoryName>Town</repositoryName><deletedRecord>persistent</deletedRecord>"
            granularity = "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"
            return xml(f"<Identify>{said}{granularity}</Identify>", self.now())
        if query["verb"] == "ListMetadataFormats":
            prefix = "dcat" if self.rdf else "oai_dc"
            listed = f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix></metadataFormat>"
            return xml(f"<ListMetadataFormats>{listed}</ListMetadataFormats>", self.now())
        start, since = 0, query.get("from", "")
        if "resumptionToken" in query:
            start, _, since = query["resumptionToken"].partition("|")
        for number in self.records.deleted:
            self.gone.setdefault(number, self.now())
        listed = [(number, text, stamp) for number, text, stamp in self.records.all() if stamp >= since]
        listed += [(number, None, stamp) for number, stamp in self.gone.items() if stamp >= since]
        if not listed:
            return xml('<error code="noRecordsMatch"/>', self.now())
        start = int(start)
        page = "".join(self._element(*each) for each in listed[start : start + 25])
        token = f"{start + 25}|{since}" if start + 25 < len(listed) else ""
        tail = f"<resumptionToken>{token}</resumptionToken>"
        return xml(f"<ListRecords>{page}{tail}</ListRecords>", self.now())

    def now(self):
        return max([*(stamp for stamp in self.records.stamps.values())])[:19] + "Z"

    def _element(self, number, text, stamp):
        header = f"<identifier>oai:town:{number}</identifier><datestamp>{stamp}</datestamp>"
        if text is None:
            return f'<record><header status="deleted">{header}</header></record>'
        return (
            f"<record><header>{header}</header><metadata>{self._metadata(number, text)}</metadata></record>"
        )

    def _metadata(self, number, text):
        dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
        inner = f"<dc:title>Trees {number}</dc:title><dc:description>{text}</dc:description>"
        link = f"<dc:identifier>https://town.example/{number}</dc:identifier><dc:type>Dataset</dc:type>"
        return f'<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/" {dc}>{inner}{link}</dc>'


class OaiDcat(OaiPmh):
    """The same with records in DCAT, whose publishers are blank nodes of the same name."""

    rdf = True

    def _metadata(self, number, text):
        spaces = 'xmlns:dcat="http://www.w3.org/ns/dcat#" xmlns:dct="http://purl.org/dc/terms/"'
        rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        publisher = f'<dct:publisher rdf:nodeID="p"/><dct:description>{text}</dct:description>'
        agent = f'<rdf:Description rdf:nodeID="p"><dct:title>{number}</dct:title></rdf:Description>'
        about = f'<dcat:Dataset rdf:about="https://town.example/{number}"><dct:title>T</dct:title>'
        return f"<rdf:RDF {rdf} {spaces}>{about}{publisher}</dcat:Dataset>{agent}</rdf:RDF>"


class DataJson:
    harvester = DataJsonHarvester()
    path = "data.json"
    unchanged = 1
    etags = True

    def __init__(self):
        self.records = Records(lambda number, text, stamp: {
            "identifier": f"n{number}", "title": f"Trees {number}", "description": text, "modified": stamp,
        })  # fmt: skip

    def __call__(self, _path, _query, headers):
        return self.file(self.body(), headers)

    def body(self):
        return json.dumps({"conformsTo": "https://project-open-data.cio.gov/v1.1/schema",
                           "dataset": self.records.all()}).encode()  # fmt: skip

    def file(self, body, headers):
        etag = f'"{sha256(body).hexdigest()[:16]}"'
        if self.etags and headers.get("If-None-Match") == etag:
            return 304, {"ETag": etag}, b""
        kind = {"Content-Type": self.media_type}
        return 200, kind | ({"ETag": etag} if self.etags else {}), body

    media_type = "application/json"


class DataJsonWithoutEtags(DataJson):
    etags = False


class Dcat(DataJson):
    harvester = CatalogueHarvester()
    path = "catalog.ttl"
    media_type = "text/turtle"

    def body(self):
        head = "@prefix dcat: <http://www.w3.org/ns/dcat#>. @prefix dct: <http://purl.org/dc/terms/>.\n"
        said = "".join(
            f'<#{each["identifier"]}> a dcat:Dataset; dct:title "{each["title"]}"; '
            f'dct:description "{each["description"]}".\n'
            for each in self.records.all()
        )
        return (head + said).encode()


class Dkan(DataJson):
    """All items of the metastore are one file, which Drupal gives an ETag."""

    harvester = DkanHarvester()
    path = ""

    def __call__(self, path, _query, headers):
        if path != "/api/1/metastore/schemas/dataset/items":
            return 404, {}, b""
        return self.file(json.dumps(self.records.all()).encode(), headers)


class DkanBefore2(DataJson):
    """No metastore: the data.json is read."""

    harvester = DkanHarvester()
    path = ""
    unchanged = 2

    def __call__(self, path, query, headers):
        return super().__call__(path, query, headers) if path == "/data.json" else (404, {}, b"")


class HubFeed(DataJson):
    harvester = ArcGisHarvester()
    path = ""
    etags = False

    def __call__(self, path, query, headers):
        is_feed = path == "/api/feed/dcat-us/1.1.json"
        return super().__call__(path, query, headers) if is_feed else (404, {}, b"")


class HubSearch:
    """A hub without a feed: its search by `sortBy`, as hub.js asks for it."""

    harvester = ArcGisHarvester()
    path = ""
    unchanged = 1

    def __init__(self):
        self.records = Records(self._record)

    @staticmethod
    def _record(number, text, stamp):
        modified = int(datetime.fromisoformat(stamp + "+00:00").timestamp() * 1000)
        said = {"title": f"Trees {number}", "description": text, "modified": modified, "type": "CSV"}
        return {"id": f"{number:08d}", "type": "Feature", "geometry": None, "properties": said}

    def __call__(self, path, query, _headers):
        if path != "/api/search/v1/collections/dataset/items":
            return 404, {}, b""
        by_date = query.get("sortBy") == "-properties.modified"
        found = self.records.latest_first() if by_date else self.records.all()
        start, limit = int(query["startindex"]) - 1, int(query["limit"])
        return reply({"features": found[start : start + limit], "numberMatched": len(found)})


class Dataverse:
    """The search lists all datasets; only those that were updated are exported again."""

    harvester = DataverseHarvester()
    path = ""
    unchanged = 2

    def __init__(self):
        self.records = Records(lambda number, text, stamp: (number, text, stamp[:19] + "Z"))

    def __call__(self, path, query, _headers):
        if path == "/api/datasets/export":
            found = {f"doi:10.1/{each[0]:04d}": each for each in self.records.all()}
            return reply(self._export(*found[query["persistentId"]]))
        start, size = int(query["start"]), int(query["per_page"])
        items = [{"type": "dataset", "global_id": f"doi:10.1/{number:04d}", "name": f"Trees {number}",
                  "url": f"https://doi.org/10.1/{number:04d}", "updatedAt": stamp}
                 for number, _, stamp in self.records.all()]  # fmt: skip
        return reply(
            {"status": "OK", "data": {"total_count": len(items), "items": items[start : start + size]}}
        )

    @staticmethod
    def _export(number, text, stamp):
        described = [{"dsDescriptionValue": {"typeName": "dsDescriptionValue", "value": text}}]
        fields = [
            {"typeName": "title", "typeClass": "primitive", "multiple": False, "value": f"Trees {number}"},
            {"typeName": "dsDescription", "typeClass": "compound", "multiple": True, "value": described},
        ]
        version = {"lastUpdateTime": stamp, "metadataBlocks": {"citation": {"fields": fields}}, "files": []}
        return {
            "id": number,
            "persistentUrl": f"https://doi.org/10.1/{number:04d}",
            "datasetVersion": version,
        }


class Invenio:
    """A search by `updated`, and a count. The latest version of each record is listed."""

    harvester = ZenodoHarvester()
    path = ""
    unchanged = 2

    def __init__(self):
        self.records = Records(self._record)
        self.replaced = {}

    def _record(self, number, text, stamp):
        metadata = {"title": f"Trees {number}", "description": text, "resource_type": {"id": "dataset"}}
        index = 1 + (number in self.replaced)
        return {"id": str(number), "created": "2020-01-01T00:00:00+00:00", "updated": stamp + "+00:00",
                "metadata": metadata, "versions": {"index": index, "is_latest": True}}  # fmt: skip

    def __call__(self, path, query, _headers):
        if path.endswith("/versions"):
            number = int(path.split("/")[-2])
            ids = [{"id": str(number)}, {"id": str(self.replaced[number])}]
            return reply({"hits": {"total": 2, "hits": ids}})
        found, size, page = self.records.all(), int(query["size"]), int(query.get("page", "1"))
        if "q" in query:
            since = query["q"].removeprefix('updated:["').partition('"')[0].removesuffix("Z")
            found = [each for each in found if each["updated"] >= since]
        return reply({"hits": {"total": len(found), "hits": found[(page - 1) * size : page * size]}})


class OgcRecords:
    """One collection of records, 25 on a page, in the order of `sortby`."""

    harvester = OgcRecordsHarvester()
    path = ""
    unchanged = 2
    by = "-updated"

    def __init__(self):
        self.records = Records(self._record)

    @staticmethod
    def _record(number, text, stamp):
        said = {"type": "dataset", "title": f"Trees {number}", "description": text, "updated": stamp + "Z"}
        return {"id": f"urn:x:{number:04d}", "type": "Feature", "geometry": None, "properties": said}

    collection = {"id": "town", "itemType": "record", "title": "Town"}  # noqa: RUF012

    def __call__(self, path, query, _headers):
        if path == "/":
            return reply({"title": "Town"})
        if path == "/collections":
            return reply({"collections": [self.collection]})
        by_date = query.get("sortby") == self.by
        found, start = self.records.latest_first() if by_date else self.records.all(), int(query.get("at", 0))
        more = {"rel": "next", "href": f"?{urlencode({**query, 'at': start + 25})}"}
        links = [more] if start + 25 < len(found) else []
        return reply({"features": found[start : start + 25], "numberMatched": len(found), "links": links})


class Stac(OgcRecords):
    harvester = StacHarvester()
    by = "-properties.updated"
    collection = {"type": "Collection", "id": "scenes", "title": "Scenes", "description": "All."}  # noqa: RUF012

    @staticmethod
    def _record(number, text, stamp):
        return {**OgcRecords._record(number, text, stamp), "collection": "scenes"}


class Csw:
    """A catalogue service that dates its records by the second, and takes a constraint on `dct:modified`."""

    harvester = CswHarvester()
    path = "csw"
    unchanged = 2

    def __init__(self):
        self.records = Records(lambda number, text, stamp: (stamp, csw_answers.iso_record(
            f"r{number:03d}", f"Trees {number}", text, stamp[:19])))  # fmt: skip

    def __call__(self, _path, query, _headers):
        if query["request"] == "GetCapabilities":
            return csw_answers.capabilities(csw_answers.GMD)
        found = self.records.all()
        if since := query.get("constraint", "").removeprefix("dct:modified >= "):
            found = [each for each in found if each[0] >= since.strip("'")]
        start = int(query["startPosition"])
        records = [record for _, record in found[start - 1 : start + 24]]
        return csw_answers.page([] if query["resultType"] == "hits" else records, len(found))


PREFIXES = """@prefix dcat: <http://www.w3.org/ns/dcat#>. @prefix dct: <http://purl.org/dc/terms/>.
@prefix hydra: <http://www.w3.org/ns/hydra/core#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>.
"""
DATASET = """<urn:town> dcat:dataset <urn:x:{number}>; dcat:record <urn:x:{number}/record> .
<urn:x:{number}> a dcat:Dataset; dct:title "T {number}"; dct:description "{text}";
    dct:publisher [ a foaf:Agent; foaf:name "Office {office}" ]; dcat:distribution <urn:x:{number}/csv> .
<urn:x:{number}/csv> a dcat:Distribution; dct:modified "{stamp}" .
<urn:x:{number}/record> a dcat:CatalogRecord; foaf:primaryTopic <urn:x:{number}> .
"""


class PagedDcat:
    """25 datasets on a page, `modified_since` as ckanext-dcat has it, publishers without names."""

    harvester = CatalogueHarvester()
    path = "catalog.ttl"
    unchanged = 2
    takes_changes = True

    def __init__(self):
        self.records = Records(lambda number, text, stamp: (stamp, number, text))

    def __call__(self, _path, query, _headers):
        found = self.records.all()
        if self.takes_changes and "modified_since" in query:
            found = [each for each in found if each[0] >= query["modified_since"]]
        page = int(query.get("page", "1"))
        said = "".join(
            DATASET.format(stamp=stamp, number=number, text=text, office=number % 3)
            for stamp, number, text in found[(page - 1) * 25 : page * 25]
        )
        view, following = (f"<?{urlencode({**query, 'page': each})}>" for each in (page, page + 1))
        more = f"{view} hydra:next {following} .\n" if page * 25 < len(found) else ""
        head = f'<urn:town> a dcat:Catalog; dct:title "Town". {view} a hydra:PagedCollection; '
        head += f"hydra:totalItems {len(found)} .\n"
        now = datetime.fromisoformat(max(self.records.stamps.values()) + "+00:00")
        kind = {"Content-Type": "text/turtle", "Date": format_datetime(now, usegmt=True)}
        return 200, kind, (PREFIXES + head + said + more).encode()


def as_graph(quads):
    """Statements, whatever blank nodes are called, and without what says where the pages are."""
    graph = Dataset([quad for quad in quads if "hydra" not in str(quad)])
    graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    return {str(quad) for quad in graph}


def xml(inner, now):
    head = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    body = f"{head}<responseDate>{now}</responseDate>{inner}</OAI-PMH>"
    return 200, {"Content-Type": "text/xml"}, body.encode()


def reply(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


PORTALS = [
    Ckan, Socrata, OpenDataSoft, OaiPmh, OaiDcat, DataJson, DataJsonWithoutEtags, Dcat, Dkan, DkanBefore2,
    HubFeed, HubSearch, Dataverse, Invenio, OgcRecords, Stac, Csw, PagedDcat,
]  # fmt: skip
ONE_MORE = {"Stac": 1}
"""Records that a portal has beside those of `Records`."""


@pytest.fixture(params=PORTALS, ids=lambda made: made.__name__)
def portal(request, server):
    server.answer = request.param()
    return server.answer


def same(server, portal, archive, whole):
    """Harvests changes, and everything beside it; both must bring the same. Returns the requests of both."""
    url = server.root + portal.path
    changed, end, requests = archive.harvest(portal.harvester, url)
    everything, _, all_requests = whole(portal.harvester, url)
    assert as_graph(changed) == as_graph(everything)
    return end, requests, all_requests


def test_nothing_changed(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    end, requests, _ = same(server, portal, archive, whole)
    assert end.changes_only, end.reason
    assert requests == portal.unchanged


def test_one_changed_one_added(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    portal.records.put(7, "changed")
    portal.records.put(COUNT, "new")
    same(server, portal, archive, whole)


def test_one_deleted(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    portal.records.delete(30)
    same(server, portal, archive, whole)
    assert len(archive.present) == COUNT - 1 + ONE_MORE.get(type(portal).__name__, 0)


def test_one_deleted_one_added_one_changed(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    portal.records.delete(30)
    portal.records.put(7, "changed")
    portal.records.put(COUNT, "new")
    same(server, portal, archive, whole)
    end, requests, _ = same(server, portal, archive, whole)
    present = COUNT + ONE_MORE.get(type(portal).__name__, 0)
    assert (len(archive.present), requests) == (present, portal.unchanged), end.reason


def test_all_changed(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    for number in range(COUNT):
        portal.records.put(number, "changed")
    same(server, portal, archive, whole)


def test_a_ckan_without_activities_lists_its_identifiers(server, archive, whole):
    server.answer = portal = Ckan()
    portal.activities = False
    archive.harvest(portal.harvester, server.root)
    portal.records.delete(30)
    end, _, _ = same(server, portal, archive, whole)
    assert end.changes_only
    assert not unsaid(end.reason)


def test_a_deletion_is_told_by_the_activity_stream(server, archive, whole):
    server.answer = portal = Ckan()
    archive.harvest(portal.harvester, server.root)
    portal.records.delete(30)
    end, requests, _ = same(server, portal, archive, whole)
    assert (end.changes_only, requests) == (True, 2)
    assert not unsaid(end.reason)


def test_a_portal_that_ignores_the_order_is_read_as_a_whole(server, archive, whole):
    server.answer = portal = Ckan()
    archive.harvest(portal.harvester, server.root)
    portal.records.latest_first = portal.records.all
    portal.records.put(50, "changed")
    end, _, _ = same(server, portal, archive, whole)
    assert not end.changes_only
    assert not unsaid(end.reason, "metadata_modified")


def test_a_new_version_takes_the_place_of_the_one_before(server, archive, whole):
    server.answer = portal = Invenio()
    archive.harvest(portal.harvester, server.root)
    portal.records.delete(30)
    portal.replaced[COUNT] = 30
    portal.records.put(COUNT, "second version")
    end, requests, _ = same(server, portal, archive, whole)
    assert end.changes_only, end.reason
    assert requests == 3
    assert (len(archive.present), "30" in archive.present) == (COUNT, False)


@pytest.mark.parametrize("make", [OgcRecords, Stac, HubSearch])
def test_a_catalogue_that_does_not_sort_is_read_as_a_whole(server, archive, whole, make):
    server.answer = portal = make()
    archive.harvest(portal.harvester, server.root)
    portal.records.latest_first = portal.records.all
    portal.records.put(50, "changed")
    end, _, _ = same(server, portal, archive, whole)
    assert not end.changes_only
    assert not unsaid(end.reason)


@pytest.mark.parametrize("make", [OgcRecords, Invenio])
def test_a_catalogue_that_refuses_to_be_asked_for_changes_is_read_as_a_whole(server, archive, whole, make):
    server.answer = portal = make()
    archive.harvest(portal.harvester, server.root)
    portal.records.put(50, "changed")

    def refusing(path, query, headers):
        return (400, {}, b"{}") if {"sortby", "q"} & set(query) else portal(path, query, headers)

    server.answer = refusing
    end, _, _ = same(server, portal, archive, whole)
    assert not end.changes_only
    assert "everything was read" in end.reason


def test_a_dataverse_exports_only_what_was_updated(server, archive, whole):
    server.answer = portal = Dataverse()
    archive.harvest(portal.harvester, server.root)
    portal.records.put(7, "changed")
    server.log.clear()
    same(server, portal, archive, whole)
    until = next(place for place, path in enumerate(server.log) if path.endswith("per_page=100"))
    exported = [path for path in server.log[:until] if "export" in path]
    assert exported == [
        "/api/datasets/export?exporter=dataverse_json&persistentId=doi%3A10.1%2F0007",
        "/api/datasets/export?exporter=dataverse_json&persistentId=doi%3A10.1%2F0059",
    ]


def test_a_catalogue_that_does_not_take_modified_since_is_read_as_a_whole(server, archive, whole):
    server.answer = portal = PagedDcat()
    portal.takes_changes = False
    archive.harvest(portal.harvester, server.root + portal.path)
    portal.records.put(50, "changed")
    end, _, _ = same(server, portal, archive, whole)
    assert not end.changes_only
    assert not unsaid(end.reason, "modified_since")


def test_a_record_of_a_catalogue_is_a_document_that_does_not_change_by_itself(server, archive):
    server.answer = portal = PagedDcat()
    archive.harvest(portal.harvester, server.root + portal.path)
    before = dict(archive.records)
    archive.bookmark = None
    portal.records.put(COUNT, "one more, which moves others to other pages")
    portal.records.put(0, "changed")
    archive.harvest(portal.harvester, server.root + portal.path)
    changed = {key for key, each in before.items() if archive.records[key].body != each.body}
    assert changed == {"urn:x:0"}


def test_a_record_of_a_catalogue_says_what_the_page_says_of_its_dataset(server, archive):
    server.answer = portal = PagedDcat()
    archive.harvest(portal.harvester, server.root + portal.path)
    stamp, number, text = portal.records.all()[7]
    page = PREFIXES + DATASET.format(stamp=stamp, number=number, text=text, office=1)
    record = archive.records["urn:x:7"]
    assert record.media_type == "application/n-triples"
    expected = parse(page.encode(), format=RdfFormat.TURTLE)
    assert as_graph(parse(record.body, format=RdfFormat.N_TRIPLES)) == as_graph(expected)


@pytest.mark.skipif(
    not COST, reason="measures for the documentation: TAMIAS_COST_RECORDS=2000 pytest -s -k costs"
)
def test_what_a_second_harvest_costs(server, portal, archive):
    """Requests, and processor time of the harvester without the portal's and the database's."""
    for number in range(COUNT, COST):
        portal.records.put(number, "as it was")
    costs = []
    for _ in range(2):
        gc.collect()
        _, end, requests = archive.harvest(portal.harvester, server.root + portal.path)
        costs.append((requests, archive.spent))
    (first, spent), (second, spent_again) = costs
    name = type(portal).__name__
    print(f"\n| {name} | {first} | {second} | {spent:.2f} s | {spent_again:.2f} s | {end.reason[:60]}")  # noqa: T201
    assert end.changes_only, end.reason
