"""A second harvest asks for changes only, and what it leads to is what a harvest of everything brings."""

import json
from hashlib import sha256

import pytest

from tamias.harvesters.portals.ckan import CkanHarvester
from tamias.harvesters.portals.data_json import DataJsonHarvester
from tamias.harvesters.portals.dcat import CatalogueHarvester
from tamias.harvesters.portals.oai import OaiHarvester
from tamias.harvesters.portals.opendatasoft import OpenDataSoftHarvester
from tamias.harvesters.portals.socrata import SocrataHarvester

COUNT = 60


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


def xml(inner, now):
    head = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
    body = f"{head}<responseDate>{now}</responseDate>{inner}</OAI-PMH>"
    return 200, {"Content-Type": "text/xml"}, body.encode()


def reply(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


PORTALS = [Ckan, Socrata, OpenDataSoft, OaiPmh, OaiDcat, DataJson, DataJsonWithoutEtags, Dcat]


@pytest.fixture(params=PORTALS, ids=lambda made: made.__name__)
def portal(request, server):
    server.answer = request.param()
    return server.answer


def same(server, portal, archive, whole):
    """Harvests changes, and everything beside it; both must bring the same. Returns the requests of both."""
    url = server.root + portal.path
    changed, end, requests = archive.harvest(portal.harvester, url)
    everything, _, all_requests = whole(portal.harvester, url)
    assert set(changed) == set(everything)
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
    assert len(archive.present) == COUNT - 1


def test_one_deleted_one_added_one_changed(server, portal, archive, whole):
    archive.harvest(portal.harvester, server.root + portal.path)
    portal.records.delete(30)
    portal.records.put(7, "changed")
    portal.records.put(COUNT, "new")
    same(server, portal, archive, whole)
    end, requests, _ = same(server, portal, archive, whole)
    assert (len(archive.present), requests) == (COUNT, portal.unchanged), end.reason


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
    assert "deletions by a list of all identifiers" in end.reason


def test_a_deletion_is_told_by_the_activity_stream(server, archive, whole):
    server.answer = portal = Ckan()
    archive.harvest(portal.harvester, server.root)
    portal.records.delete(30)
    end, requests, _ = same(server, portal, archive, whole)
    assert (end.changes_only, requests) == (True, 2)
    assert "deletions by the activity stream" in end.reason


def test_a_portal_that_ignores_the_order_is_read_as_a_whole(server, archive, whole):
    server.answer = portal = Ckan()
    archive.harvest(portal.harvester, server.root)
    portal.records.latest_first = portal.records.all
    portal.records.put(50, "changed")
    end, _, _ = same(server, portal, archive, whole)
    assert not end.changes_only
    assert "everything was read: the records are not in the order of metadata_modified" in end.reason
