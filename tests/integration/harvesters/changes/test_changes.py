"""A second harvest asks for changes only, and what it leads to is what a harvest of everything brings."""

import json

import pytest

from tamias.harvesters.portals.ckan import CkanHarvester

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


def reply(value):
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


PORTALS = [Ckan]


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
    end, requests, _ = same(server, portal, archive, whole)
    assert end.changes_only, end.reason
    assert requests == portal.unchanged


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
