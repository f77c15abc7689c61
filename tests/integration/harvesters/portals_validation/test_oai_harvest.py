"""OAI-PMH repositories: their pages, their faults, and going on after a crash."""

import pytest

from tamias.features.portals.oai import OaiHarvester
from tamias.model.capture import Outcome

OAI = (
    '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2024-05-01T00:00:00Z</responseDate>'
)
DC = 'xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"'


def answer(verb, content, status=200, **headers):
    body = f'<?xml version="1.0" encoding="UTF-8"?>{OAI}<{verb}>{content}</{verb}></OAI-PMH>'
    return status, {"Content-Type": "text/xml; charset=utf-8", **headers}, body.encode()


def error(code, message=""):
    return (
        200,
        {"Content-Type": "text/xml"},
        f'{OAI}<error code="{code}">{message}</error></OAI-PMH>'.encode(),
    )


def record(number, *, kind="Dataset", deleted=False, more=""):
    day = f"2024-01-{number:02}T10:00:00Z"
    status = ' status="deleted"' if deleted else ""
    header = (
        f"<header{status}><identifier>oai:repo:{number}</identifier><datestamp>{day}</datestamp></header>"
    )
    fields = f"<dc:title>Dataset {number}</dc:title><dc:type>{kind}</dc:type>{more}"
    fields += f"<dc:identifier>https://repo.example.org/records/{number}</dc:identifier>"
    metadata = "" if deleted else f"<metadata><oai_dc:dc {DC}>{fields}</oai_dc:dc></metadata>"
    return f"<record>{header}{metadata}</record>"


class Repository:
    """Twelve records in pages of three, in the order of their dates."""

    def __init__(self):
        self.records = [record(number) for number in range(1, 13)]
        self.formats = ["oai_dc", "marcxml"]
        self.known = {}
        self.made = 0
        self.override = {}
        self.size = True

    def __call__(self, path, query):
        verb = query.get("verb")
        key = query.get("resumptionToken") or verb
        if key in self.override:
            return self.override[key]
        if verb == "Identify":
            said = (
                "<repositoryName>Twelve sets</repositoryName><adminEmail>admin@repo.example.org</adminEmail>"
            )
            return answer(verb, said + "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity>")
        if verb == "ListMetadataFormats":
            formats = (
                f"<metadataFormat><metadataPrefix>{name}</metadataPrefix></metadataFormat>"
                for name in self.formats
            )
            return answer(verb, "".join(formats))
        if "resumptionToken" in query:
            if query["resumptionToken"] not in self.known:
                return error("badResumptionToken", "expired")
            return self.page(self.known[query["resumptionToken"]])
        since = query.get("from", "")
        return self.page(
            next((n for n, each in enumerate(self.records) if f"2024-01-{n + 1:02}" >= since[:10]), 99)
        )

    def page(self, start):
        if start >= len(self.records):
            return error("noRecordsMatch")
        content = "".join(self.records[start : start + 3])
        if start + 3 < len(self.records):
            content += self.token(start + 3)
        return answer("ListRecords", content)

    def token(self, start):
        self.made += 1
        name = f"t{self.made}-{start}"
        self.known[name] = start
        size = f' completeListSize="{len(self.records)}"' if self.size else ""
        return f"<resumptionToken{size}>{name}</resumptionToken>"


@pytest.fixture
def repository(portal):
    portal.serve = Repository()
    return portal.serve


def asked(portal):
    return [query for _, query in portal.log if query.get("verb") == "ListRecords"]


def test_all_pages_of_a_repository_are_read(repository, harvest):
    harvested = harvest(OaiHarvester(), "/oai?verb=Identify")
    assert harvested.titles == [f"Dataset {number}" for number in range(1, 13)]


def test_a_repository_read_to_its_end_is_complete(repository, harvest):
    assert harvest(OaiHarvester(), "/oai").end.complete


def test_the_repositorys_name_becomes_the_catalogues_title(repository, harvest):
    titles = {
        quad.object.value
        for quad in harvest(OaiHarvester(), "/oai").quads
        if quad.predicate.value.endswith("title")
    }
    assert "Twelve sets" in titles


def test_the_richest_known_format_is_asked_for(portal, repository, harvest):
    repository.formats = ["oai_dc", "oai_datacite", "marcxml", "dcat_ap_de"]
    harvest(OaiHarvester(), "/oai", most_steps=2)
    assert asked(portal)[0]["metadataPrefix"] == "dcat_ap_de"


def test_the_format_that_the_address_names_is_asked_for(portal, repository, harvest):
    harvest(OaiHarvester(), "/oai?metadataPrefix=marcxml&set=maps", most_steps=2)
    assert (asked(portal)[0]["metadataPrefix"], asked(portal)[0]["set"]) == ("marcxml", "maps")


def test_a_format_that_is_refused_gives_way_to_the_next(portal, repository, harvest):
    repository.formats = ["oai_datacite", "oai_dc"]
    served = repository.__call__

    def picky(path, query):
        if query.get("metadataPrefix") == "oai_datacite":
            return error("cannotDisseminateFormat")
        return served(path, query)

    portal.serve = picky
    assert len(harvest(OaiHarvester(), "/oai").datasets) == 12


def test_a_token_stands_alone_in_its_request(portal, repository, harvest):
    harvest(OaiHarvester(), "/oai?set=maps")
    assert set(asked(portal)[1]) == {"verb", "resumptionToken"}


def test_a_harvest_goes_on_from_the_state_of_its_last_step(repository, harvest):
    first = harvest(OaiHarvester(), "/oai", most_steps=3)
    rest = harvest(OaiHarvester(), "/oai", state=first.steps[-1].state)
    assert first.titles + rest.titles == [f"Dataset {number}" for number in range(1, 13)]


def test_an_expired_token_is_replaced_by_the_last_date_seen(portal, repository, harvest):
    first = harvest(OaiHarvester(), "/oai", most_steps=3)
    repository.known.clear()
    harvest(OaiHarvester(), "/oai", state=first.steps[-1].state)
    assert [query["from"] for query in asked(portal) if "from" in query] == ["2024-01-06T10:00:00Z"]


def test_nothing_is_lost_when_a_token_expires(repository, harvest):
    first = harvest(OaiHarvester(), "/oai", most_steps=3)
    repository.known.clear()
    rest = harvest(OaiHarvester(), "/oai", state=first.steps[-1].state)
    assert set(first.titles + rest.titles) == {f"Dataset {number}" for number in range(1, 13)}


def test_a_repository_whose_tokens_never_last_is_read_by_dates(repository, harvest):
    repository.token = lambda start: "<resumptionToken>never</resumptionToken>"
    assert harvest(OaiHarvester(), "/oai").titles == [f"Dataset {number}" for number in range(1, 13)]


def test_where_dates_are_in_no_order_an_expired_token_means_to_begin_anew(repository, harvest):
    repository.records.reverse()
    first = harvest(OaiHarvester(), "/oai", most_steps=3)
    repository.known.clear()
    rest = harvest(OaiHarvester(), "/oai", state=first.steps[-1].state)
    assert len(set(rest.titles)) == 12


def test_tokens_that_expire_at_once_are_not_asked_for_for_ever(repository, harvest):
    repository.records = [
        each.replace(each[each.index("2024-01-") :][:10], "2024-01-01") for each in repository.records
    ]
    repository.token = lambda start: "<resumptionToken>never</resumptionToken>"
    assert harvest(OaiHarvester(), "/oai").end.outcome is Outcome.FAILED


def test_deleted_records_are_counted_and_make_no_dataset(repository, harvest):
    repository.records[4] = record(5, deleted=True)
    harvested = harvest(OaiHarvester(), "/oai")
    assert (len(harvested.datasets), "1 deleted records" in harvested.end.reason) == (11, True)


def test_a_record_about_an_article_makes_no_dataset(repository, harvest):
    repository.records[4] = record(5, kind="info:eu-repo/semantics/article")
    harvested = harvest(OaiHarvester(), "/oai")
    assert (len(harvested.datasets), harvested.end.complete) == (11, True)


def test_one_bad_record_does_not_stop_the_rest(repository, harvest):
    repository.records[4] = "<record><header><identifier>oai:repo:5</identifier></header></record>"
    harvested = harvest(OaiHarvester(), "/oai")
    assert (len(harvested.datasets), ["oai:repo:5" in problem for problem in harvested.problems]) == (
        11,
        [True],
    )


def test_records_around_broken_xml_are_kept(repository, harvest):
    repository.records[4] = record(5, more="<dc:subject>a & b \x0b</dc:subject>")
    harvested = harvest(OaiHarvester(), "/oai")
    assert (len(harvested.datasets), harvested.end.complete) == (12, False)


def test_after_a_page_that_ends_early_it_goes_on_from_the_last_date(portal, repository, harvest):
    whole = repository.page(0)[2]
    repository.override["ListRecords"] = (
        200,
        {"Content-Type": "text/xml"},
        whole[: whole.rindex(b"<record>") + 40],
    )
    served = repository.__call__

    def cut_once(path, query):
        if "from" in query:
            repository.override.clear()
        return served(path, query)

    portal.serve = cut_once
    assert set(harvest(OaiHarvester(), "/oai").titles) == {f"Dataset {number}" for number in range(1, 13)}


def test_a_page_that_always_ends_early_ends_the_walk(repository, harvest):
    whole = repository.page(0)[2]
    repository.override["ListRecords"] = (
        200,
        {"Content-Type": "text/xml"},
        whole[: whole.rindex(b"<record>") + 40],
    )
    harvested = harvest(OaiHarvester(), "/oai")
    assert (harvested.end.outcome, "Dataset 2" in harvested.titles) == (Outcome.FAILED, True)


def test_a_repository_that_gives_one_page_for_ever_is_left(repository, harvest):
    repository.size = False
    repository.override["again"] = answer(
        "ListRecords", record(1) + "<resumptionToken>again</resumptionToken>"
    )
    repository.override["ListRecords"] = repository.override["again"]
    assert "same page again" in harvest(OaiHarvester(), "/oai").end.reason


def test_a_pause_that_the_server_asks_for_is_passed_on(repository, harvest):
    repository.override["ListRecords"] = (503, {"Retry-After": "120"}, b"")
    end = harvest(OaiHarvester(), "/oai").end
    assert (end.retry, end.retry_after_ms) == (True, 120_000)


def test_an_error_of_the_protocol_is_the_reason(repository, harvest):
    repository.override["ListRecords"] = error("badArgument", "no such set")
    assert "badArgument: no such set" in harvest(OaiHarvester(), "/oai").end.reason


def test_an_empty_repository_is_complete(repository, harvest):
    repository.records.clear()
    assert harvest(OaiHarvester(), "/oai").end.complete


def test_a_page_of_html_is_no_repository(repository, harvest):
    repository.override["Identify"] = (200, {"Content-Type": "text/html"}, b"<html><p>Oops<br></html>")
    assert "is not OAI-PMH" in harvest(OaiHarvester(), "/oai").end.reason


def test_entities_are_not_expanded(repository, harvest):
    entities = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>'
    bomb = entities + b"<OAI-PMH><ListRecords>&b;</ListRecords></OAI-PMH>"
    repository.override["ListRecords"] = (200, {"Content-Type": "text/xml"}, bomb)
    harvested = harvest(OaiHarvester(), "/oai")
    assert (harvested.end.outcome, "document type" in harvested.problems[0]) == (Outcome.FAILED, True)


def test_records_that_are_dcat_are_kept_as_they_stand(repository, harvest):
    repository.formats = ["oai_dc", "dcat"]
    repository.records = [dcat_record(1), dcat_record(2)]
    harvested = harvest(OaiHarvester(), "/oai")
    told = {quad.object.value for quad in harvested.quads if quad.predicate.value.endswith("#keyword")}
    assert (told, harvested.titles) == ({"own words 1", "own words 2"}, ["DCAT 1", "DCAT 2"])


def test_blank_nodes_of_two_records_are_never_one(repository, harvest):
    repository.formats = ["oai_dc", "dcat"]
    repository.records = [dcat_record(1), dcat_record(2)]
    quads = harvest(OaiHarvester(), "/oai").quads
    assert len({quad.object for quad in quads if quad.predicate.value.endswith("distribution")}) == 2


def test_files_named_by_a_dcat_record_become_links(repository, harvest):
    repository.formats = ["oai_dc", "dcat"]
    repository.records = [dcat_record(1)]
    assert ("https://repo.example.org/1.csv", None) in harvest(OaiHarvester(), "/oai").links


def dcat_record(number):
    rdf = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dct="http://purl.org/dc/terms/"
      xmlns:dcat="http://www.w3.org/ns/dcat#"><dcat:Dataset rdf:about="https://repo.example.org/{number}">
      <dct:title>DCAT {number}</dct:title><dcat:keyword>own words {number}</dcat:keyword>
      <dcat:distribution rdf:nodeID="file"/></dcat:Dataset><dcat:Distribution rdf:nodeID="file">
      <dcat:downloadURL rdf:resource="https://repo.example.org/{number}.csv"/></dcat:Distribution></rdf:RDF>"""
    header = f"<header><identifier>oai:{number}</identifier><datestamp>2024-01-0{number}</datestamp></header>"
    return f"<record>{header}<metadata>{rdf}</metadata></record>"
