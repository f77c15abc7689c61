"""The catalogue as other harvesters take it: pages of DCAT-AP, a portal's records, data.json, OAI-PMH."""

import json
import os
from pathlib import Path

import httpx
import jsonschema_rs
import pytest
from lxml import etree
from pyoxigraph import NamedNode, RdfFormat, parse

from tamias.archive.sources.catalogues import note_datasets, put_portal
from tamias.archive.sources.source_records import keep_records
from tamias.features.dcat.datasets.mapping import map_record
from tamias.features.portals.records import pod
from tamias.features.portals.records.ckan import MAPPING

from .conftest import START, Filled, Running

PORTAL = "https://town.example/"
COUNT = 130
US = "https://us.example/data.json"
PUBLIC = os.environ.get("TAMIAS_DCAT_US", "")
"""The folder of the public harvester of DCAT-US 3, with its JSON schemas."""
DCAT = "http://www.w3.org/ns/dcat#"
HYDRA = "http://www.w3.org/ns/hydra/core#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
OAI = "{http://www.openarchives.org/OAI/2.0/}"


def ckan_record(number):
    return {
        "id": f"{number:08d}", "title": f"Trees {number}", "notes": f"Of district {number}.",
        "metadata_modified": "2024-01-02T03:04:05", "tags": [{"name": "tree"}, {"name": f"n{number}"}],
        "organization": {"id": "o1", "name": "parks", "title": "Parks Office"},
        "maintainer": "Desk", "maintainer_email": "desk@town.example",
        "extras": [{"key": "frequency", "value": "annual"}, {"key": "language", "value": "en"}],
        "resources": [{"id": f"r{number}", "url": f"https://files.example/{number}.csv",
                       "format": "CSV", "mimetype": "text/csv", "name": "Table", "size": 12}],
    }  # fmt: skip


MAPPED = [
    map_record(MAPPING, json.dumps(ckan_record(number)).encode(), PORTAL) for number in range(COUNT)
]  # fmt: skip


def us_set(name, **more):
    return {"identifier": f"https://us.example/{name}", "title": name, "description": f"On {name}."} | more


KIND = {"@type": "Kind", "fn": "Desk", "hasEmail": "mailto:desk@us.example"}
US_CATALOGUE = {
    "title": "State",
    "description": "All of it.",
    "publisher": {"name": "State office"},
    "contactPoint": [KIND],
    "dataset": [
        us_set(
            "top",
            license="https://creativecommons.org/publicdomain/zero/1.0/",
            theme=[{"@id": "https://us.example/theme", "prefLabel": "Water"}],
            temporal=[{"startDate": "2020-01-01"}],
            spatial=[{"prefLabel": "State", "bbox": "POLYGON((8 47,9 47,9 48,8 48,8 47))"}],
            distribution=[{"downloadURL": "https://us.example/top.csv", "mediaType": "text/csv"}],
            qualifiedAttribution=[{"agent": {"name": "Lab"}, "hadRole": "https://us.example/role/funder"}],
            qualifiedRelation=[
                {"relation": "https://us.example/old", "hadRole": "https://us.example/role/was"}
            ],
        )
    ],
    "service": [
        {
            "@id": "https://us.example/s",
            "title": "API",
            "endpointURL": ["https://us.example/api"],
            "servesDataset": [us_set("served")],
        }
    ],
    "record": [
        {"@id": "https://us.example/r", "primaryTopic": "https://us.example/top", "modified": "2024-06-15"}
    ],
    "datasetSeries": [
        {
            "@id": "https://us.example/y",
            "title": "Years",
            "description": "Each.",
            "seriesMember": [us_set("top")],
        }
    ],
    "catalog": [{"@id": "https://us.example/c", "title": "Child", "dataset": [us_set("child")]}],
}
US_FILE = pod.read_file(json.dumps(US_CATALOGUE).encode(), US)
US_WHOLE = map_record(pod.CATALOGUE, US_FILE.catalogue, US)
US_INNER = [each for each in US_FILE.inner if b'"top"' not in each]
"""Without the member of the series, which is in the list too."""
US_MAPPED = [map_record(pod.MAPPING, each, US) for each in [*US_FILE.records, *US_INNER]]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A service over 130 archived files and a harvested portal with 130 records."""
    filled = Filled(tmp_path_factory.mktemp("many"))
    for number in range(COUNT):
        filled.put(f"http://many.example/{number}.csv", f"a\n{number}\n".encode(), title=f"Numbers {number}")

    def harvested(cursor):
        put_portal(cursor, PORTAL, "ckan", START)
        keep_records(cursor, PORTAL, START, [each.source for each in MAPPED])
        note_datasets(cursor, PORTAL, "ckan", START, [each.dataset for each in MAPPED])
        put_portal(cursor, US, "data-json", START)
        keep_records(cursor, US, START, [each.source for each in [US_WHOLE, *US_MAPPED]])
        note_datasets(cursor, US, "data-json", START, [each.dataset for each in US_MAPPED])

    filled.session.transact(harvested)
    filled.close()
    running = Running(filled.data, "--no-crawl", TAMIAS_SECRET="x" * 20)
    yield running.address
    running.stop()


def pages(url):
    """The statements of each page, as a harvester that follows `hydra:PagedCollection` goes through them."""
    while url:
        quads = list(parse(httpx.get(url, timeout=60).raise_for_status().content, format=RdfFormat.TURTLE))
        yield quads
        paged = {each.subject for each in quads if each.object == NamedNode(HYDRA + "PagedCollection")}
        following = [each.object.value for each in quads
                     if each.subject in paged and each.predicate.value == HYDRA + "nextPage"]  # fmt: skip
        url = following[0] if following else None


def datasets_of(quads):
    """Everything that says it is a dataset: that is what harvesters take."""
    return [each.subject.value for each in quads if each.object == NamedNode(DCAT + "Dataset")]


def test_every_dataset_is_on_one_page_and_nothing_else_is_a_dataset(address):
    found = [name for page in pages(f"{address}/catalog.ttl") for name in datasets_of(page)]
    listed = [each.object.value for page in pages(f"{address}/catalog.ttl") for each in page
              if each.predicate.value == DCAT + "dataset"]  # fmt: skip
    assert (len(found), len(set(found))) == (COUNT, COUNT)
    assert sorted(found) == sorted(listed)


def test_a_dataset_has_the_file_on_the_web_and_the_file_in_the_archive(address):
    (page, *_) = pages(f"{address}/catalog.ttl")
    name = datasets_of(page)[0]
    said = {each.predicate.value.rpartition("#")[2]: each.object.value for each in page
            if each.subject.value == f"{name}/1#distribution"}  # fmt: skip
    forms = {each.object.value for each in page
             if each.subject.value == name and each.predicate.value == DCAT + "distribution"}  # fmt: skip
    assert forms == {f"{name}#distribution", f"{name}/1#distribution"}
    assert httpx.get(said["downloadURL"]).content.startswith(b"a\n")


def test_the_records_of_a_portal_are_served_with_all_that_was_mapped(address):
    said = {str(each.triple) for page in pages(f"{address}/catalog.ttl?portal={PORTAL}") for each in page}
    missing = [str(quad.triple) for each in MAPPED for quad in each.quads if str(quad.triple) not in said]
    assert missing == []


def test_the_records_of_a_portal_break_no_rule_of_dcat_ap(address, violations):
    (page, *_) = pages(f"{address}/catalog.ttl?portal={PORTAL}")
    assert violations(page) == []


@pytest.mark.parametrize("asked", ["portal=https://other.example/", f"portal={PORTAL}&page=3"])
def test_a_portal_or_a_page_that_is_not_there(address, asked):
    assert httpx.get(f"{address}/catalog.ttl?{asked}").status_code == 404
    assert httpx.get(f"{address}/data.json?portal=https://other.example/").status_code == 404


def test_data_json_has_every_archived_dataset(address):
    told = httpx.get(f"{address}/data.json", timeout=60).json()
    assert told["conformsTo"] == "https://project-open-data.cio.gov/v1.1/schema"
    assert sorted(each["title"] for each in told["dataset"]) == sorted(f"Numbers {n}" for n in range(COUNT))
    (one,) = [each for each in told["dataset"] if each["title"] == "Numbers 7"]
    web, archived = sorted(one["distribution"], key=lambda each: "many.example" not in each["downloadURL"])
    assert (web["downloadURL"], web["mediaType"]) == ("http://many.example/7.csv", "text/csv")
    assert httpx.get(archived["downloadURL"]).content == b"a\n7\n"


def test_data_json_of_a_portal_says_what_its_records_say(address):
    told = httpx.get(f"{address}/data.json?portal={PORTAL}", timeout=60).json()["dataset"]
    expected = [
        {
            "@type": "dcat:Dataset",
            "title": f"Trees {number}",
            "description": f"Of district {number}.",
            "identifier": f"{PORTAL}dataset/{number:08d}",
            "accessLevel": "public",
            "modified": "2024-01-02T03:04:05",
            "keyword": ["tree", f"n{number}"],
            "publisher": {"@type": "org:Organization", "name": "Parks Office"},
            "contactPoint": {"@type": "vcard:Contact", "fn": "Desk", "hasEmail": "mailto:desk@town.example"},
            "landingPage": f"{PORTAL}dataset/{number:08d}",
            "accrualPeriodicity": "R/P1Y",
            "language": ["en"],
            "distribution": [
                {"@type": "dcat:Distribution", "downloadURL": f"https://files.example/{number}.csv",
                 "mediaType": "text/csv", "title": "Table", "format": "CSV", "byteSize": 12}
            ],
        }
        for number in range(COUNT)
    ]  # fmt: skip
    assert sorted(told, key=lambda each: each["identifier"]) == expected


def us_json(address, portal=""):
    wanted = {"version": "3"} | ({"portal": portal} if portal else {})
    return httpx.get(f"{address}/data.json", params=wanted, timeout=60).raise_for_status().json()


def test_data_json_in_version_3_has_all_parts_of_a_catalogue(address):
    told = us_json(address, US)
    (top,) = [each for each in told["dataset"] if each["title"] == "top"]
    assert top == {
        "@type": "Dataset",
        "@id": "https://us.example/top",
        "title": "top",
        "description": "On top.",
        "identifier": "https://us.example/top",
        "publisher": {"@type": "Organization", "name": "State office"},
        "contactPoint": [KIND],
        "theme": [{"@type": "Concept", "@id": "https://us.example/theme", "prefLabel": "Water"}],
        "spatial": [
            {"@type": "Location", "prefLabel": "State", "bbox": "POLYGON((8 47,9 47,9 48,8 48,8 47))"}
        ],
        "temporal": [{"@type": "PeriodOfTime", "startDate": "2020-01-01"}],
        "license": "https://creativecommons.org/publicdomain/zero/1.0/",
        "qualifiedAttribution": [
            {
                "@type": "Attribution",
                "agent": {"@type": "Organization", "name": "Lab"},
                "hadRole": "https://us.example/role/funder",
            }
        ],
        "qualifiedRelation": [
            {
                "@type": "Relationship",
                "relation": "https://us.example/old",
                "hadRole": "https://us.example/role/was",
            }
        ],
        "distribution": [
            {
                "@type": "Distribution",
                "downloadURL": "https://us.example/top.csv",
                "mediaType": "text/csv",
                "license": "https://creativecommons.org/publicdomain/zero/1.0/",
            }
        ],
    }
    again = pod.read_file(json.dumps(told).encode(), US)
    written = [map_record(pod.MAPPING, each, US) for each in [*again.records, *again.inner]]
    whole = map_record(pod.CATALOGUE, again.catalogue, US)

    def links(mapped):
        """The statements that join parts, of the file that was harvested and of the one that was written."""
        names = {
            "dataset",
            "service",
            "catalog",
            "seriesMember",
            "servesDataset",
            "endpointURL",
            "primaryTopic",
        }
        return {
            (quad.subject.value, quad.predicate.value, quad.object.value)
            for each in mapped
            for quad in each.quads
            if quad.predicate.value.replace("#", "/").rpartition("/")[2] in names
        }

    assert links([whole, *written]) == links([US_WHOLE, *US_MAPPED])


def test_data_json_in_version_3_has_every_dataset_of_the_archive_and_of_a_portal(address):
    told = us_json(address)
    assert sorted(each["title"] for each in told["dataset"]) == sorted(f"Numbers {n}" for n in range(COUNT))
    told = us_json(address, PORTAL)
    assert sorted(each["title"] for each in told["dataset"]) == sorted(f"Trees {n}" for n in range(COUNT))


def test_data_json_has_no_other_version(address):
    assert httpx.get(f"{address}/data.json?version=2").status_code == 400


@pytest.mark.skipif(not PUBLIC, reason="TAMIAS_DCAT_US names no folder with the public schemas of DCAT-US 3")
@pytest.mark.parametrize("portal", ["", PORTAL, US])
def test_data_json_in_version_3_is_valid_by_the_public_schemas(address, portal):
    files = Path(PUBLIC, "schemas/dcatus3.0/definitions").glob("*.json")
    schemas = {each["$id"]: each for each in (json.loads(file.read_bytes()) for file in files)}
    wanted = {"$ref": "https://resources.data.gov/dcat-us/3.0.0/definitions/catalog"}
    registry = jsonschema_rs.Registry(list(schemas.items()))
    validator = jsonschema_rs.Draft202012Validator(wanted, registry=registry, validate_formats=True)
    told = us_json(address, portal)
    assert [f"{each.instance_path}: {each.message}" for each in validator.iter_errors(told)] == []
    del told["dataset"][0]["contactPoint"]
    assert not validator.is_valid(told)


def ask(address, **words):
    answer = httpx.get(f"{address}/oai", params=words, timeout=60)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/xml; charset=utf-8")
    return etree.fromstring(answer.content)


def listed(address, verb, **words):
    root, found = ask(address, verb=verb, **words), []
    while True:
        found += root.iter(f"{OAI}{'header' if verb == 'ListIdentifiers' else 'record'}")
        token = root.findtext(f".//{OAI}resumptionToken")
        if not token:
            return found
        root = ask(address, verb=verb, resumptionToken=token)


def test_oai_lists_every_record_once(address):
    names = [
        each.findtext(f"{OAI}identifier")
        for each in listed(address, "ListIdentifiers", metadataPrefix="oai_dc")
    ]
    assert (len(names), len(set(names))) == (COUNT, COUNT)


def test_oai_gives_dublin_core_and_dcat_of_a_record(address):
    space = "{http://purl.org/dc/elements/1.1/}"
    titles = [
        each.findtext(f".//{space}title") for each in listed(address, "ListRecords", metadataPrefix="oai_dc")
    ]
    assert sorted(titles) == sorted(f"Numbers {number}" for number in range(COUNT))
    name = listed(address, "ListIdentifiers", metadataPrefix="dcat")[0].findtext(f"{OAI}identifier")
    root = ask(address, verb="GetRecord", identifier=name, metadataPrefix="dcat")
    rdf = root.find(".//{http://www.w3.org/1999/02/22-rdf-syntax-ns#}RDF")
    said = {str(each.triple) for each in parse(etree.tostring(rdf), format=RdfFormat.RDF_XML)}
    resource = name.rpartition(":")[2]
    (page,) = [
        page
        for page in pages(f"{address}/catalog.ttl")
        if f"{address}/dataset/{resource}" in datasets_of(page)
    ]
    own = {str(each.triple) for each in page if resource in each.subject.value}
    assert own <= said


def test_oai_takes_spans_of_time_and_post(address):
    assert len(listed(address, "ListIdentifiers", metadataPrefix="oai_dc", **{"from": "2026-01-01"})) == COUNT
    late = {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc", "from": "2026-01-02T00:00:00Z"}
    answer = httpx.post(f"{address}/oai", data=late, timeout=60)
    assert etree.fromstring(answer.content).find(f"{OAI}error").get("code") == "noRecordsMatch"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("badVerb", {"verb": "List"}),
        ("badVerb", {}),
        ("badArgument", {"verb": "ListRecords"}),
        ("badArgument", {"verb": "Identify", "colour": "red"}),
        ("badArgument", {"verb": "ListRecords", "metadataPrefix": "oai_dc", "from": "yesterday"}),
        ("badArgument", {"verb": "ListRecords", "metadataPrefix": "oai_dc", "from": "2026-99-99"}),
        ("badArgument", {"verb": "ListRecords", "metadataPrefix": "oai_dc", "resumptionToken": "x"}),
        ("badResumptionToken", {"verb": "ListRecords", "resumptionToken": "oai_dc!x"}),
        ("badResumptionToken", {"verb": "ListRecords", "resumptionToken": "\x00"}),
        ("cannotDisseminateFormat", {"verb": "ListRecords", "metadataPrefix": "marc"}),
        ("idDoesNotExist", {"verb": "GetRecord", "identifier": "oai:x:1\x00", "metadataPrefix": "oai_dc"}),
        ("idDoesNotExist", {"verb": "ListMetadataFormats", "identifier": "oai:127.0.0.1:nothing"}),
        ("noSetHierarchy", {"verb": "ListSets"}),
        ("noSetHierarchy", {"verb": "ListRecords", "metadataPrefix": "oai_dc", "set": "a"}),
    ],
)  # fmt: skip
def test_oai_says_what_is_wrong_with_a_request(address, code, words):
    assert ask(address, **words).find(f"{OAI}error").get("code") == code


def test_oai_introduces_itself(address):
    said = {etree.QName(each).localname: each.text for each in ask(address, verb="Identify").iter()}
    assert (said["protocolVersion"], said["granularity"], said["baseURL"], said["earliestDatestamp"]) == (
        "2.0", "YYYY-MM-DDThh:mm:ssZ", f"{address}/oai", "2026-01-01T00:00:00Z",
    )  # fmt: skip
