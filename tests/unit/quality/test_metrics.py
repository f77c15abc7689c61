"""Portal Watch's metrics and the European points of descriptions."""

import msgspec
import pytest

from tamias.features.dcat.measures import METRICS
from tamias.features.quality.metrics import (
    INDICATORS,
    ClaimedDescription,
    Got,
    claims_of,
    dataset_metrics,
    indicator_points,
    points,
)
from tamias.model.dataset import Agent, Dataset, Distribution, Period

PERFECT = Dataset(
    iri="https://data.example.org/1",
    record="1",
    title="Rain",
    description="Of a year",
    keywords=("rain",),
    themes=("http://publications.europa.eu/resource/authority/data-theme/ENVI",),
    spatial=("Vienna",),
    temporal=(Period("2020-01-01", None),),
    publisher=Agent(name="Weather office"),
    contact=Agent(name="Desk", email="desk@weather.example", homepage="https://weather.example/"),
    issued="2020-01-01",
    modified="2021-01-01",
    access_rights="http://publications.europa.eu/resource/authority/access-right/PUBLIC",
    rights="as the licence says",
    distributions=(
        Distribution(
            url="https://data.example.org/rain.csv",
            format="CSV",
            media_type="text/csv",
            byte_size=1000,
            licence="https://creativecommons.org/licenses/by/4.0/",
            issued="2020-01-01",
            modified="2021-01-01",
        ),
    ),
)
CAME = Got(tried=True, retrieved=True, media_type="text/csv", byte_size=1000)
BARE = Dataset(
    iri="https://data.example.org/2", record="2", title="", distributions=(Distribution(url="nowhere"),)
)


def measured(dataset, *got):
    return dataset_metrics(claims_of(dataset), got)


def changed(**words):
    """The perfect dataset with another form."""
    form = msgspec.structs.replace(PERFECT.distributions[0], **words)
    return msgspec.structs.replace(PERFECT, distributions=(form,))


def test_a_perfect_description_of_data_that_came_has_ones_throughout():
    assert set(measured(PERFECT, CAME).values()) == {1.0}


def test_an_empty_description_has_zeros_but_for_its_being_there():
    found = measured(BARE, Got())
    assert {name for name, value in found.items() if value} == {"exac", "reme"}


def test_keywords_count_for_discovery():
    bare = Dataset(iri="https://data.example.org/2", record="2", title="Rain", keywords=("rain",))
    assert measured(bare)["exdi"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("got", [(CAME,), (Got(),)], ids=["came", "not tried"])
def test_every_metric_that_is_measured_is_defined(got):
    told = claims_of(PERFECT)
    assert {*dataset_metrics(told, got), *points(told, got)} <= METRICS.keys()


def test_of_what_was_never_tried_no_delivery_is_told():
    assert not {"rere", "acfo", "acsi"} & measured(PERFECT, Got()).keys()


@pytest.mark.parametrize(
    ("promise", "found", "true"),
    [
        ({"format": "CSV", "media_type": None}, "text/csv", 1.0),
        ({"format": "CSV", "media_type": None}, "text/html", 0.0),
        ({"media_type": "application/json"}, "application/geo+json", 1.0),
        ({"media_type": "text/xml"}, "application/xml", 1.0),
        ({"media_type": "application/xml"}, "application/rdf+xml", 1.0),
        ({"media_type": "application/geo+json"}, "application/json", 0.0),
        ({"media_type": "text/csv"}, "application/zip", 0.0),
        ({"media_type": "application/octet-stream", "format": "csv"}, "text/csv", 1.0),
    ],
)
def test_accuracy_of_the_format_compares_the_promise_with_what_was_found(promise, found, true):
    assert measured(changed(**promise), Got(tried=True, retrieved=True, media_type=found))["acfo"] == true


def test_no_promised_format_is_no_accuracy():
    assert "acfo" not in measured(changed(format=None, media_type=None), CAME)


@pytest.mark.parametrize(("told", "true"), [(1000, 1.0), (1005, 1.0), (2000, 0.0), (0, 0.0)])
def test_accuracy_of_the_size_allows_for_rounding(told, true):
    assert measured(changed(byte_size=told), CAME)["acsi"] == true


def test_retrievability_is_the_share_of_what_was_tried():
    form = PERFECT.distributions[0]
    three = msgspec.structs.replace(PERFECT, distributions=(form, form, form))
    assert measured(three, CAME, Got(tried=True), Got())["rere"] == 0.5


@pytest.mark.parametrize(
    ("date", "readable"),
    [
        ("2020-01-01", 1.0),
        ("2020", 1.0),
        ("2020-01-01T10:00:00+01:00", 1.0),
        ("1.1.2020", 0.75),
        ("2020-13-01", 0.75),
    ],
)
def test_dates_must_be_readable(date, readable):
    assert measured(changed(issued=date), CAME)["coda"] == readable


@pytest.mark.parametrize(
    ("licence", "known", "is_open"),
    [
        ("CC BY 4.0", 1, 1), ("cc-by", 1, 1), ("cc-zero", 1, 1), ("CC-BY-NC-4.0", 1, 0), ("odc-odbl", 1, 1),
        ("https://creativecommons.org/licenses/by-nd/4.0/", 1, 0), ("uk-ogl", 1, 1), ("ask us", 0, 0),
        ("https://creativecommons.org/publicdomain/zero/1.0/", 1, 1), ("dl-de/by-2-0", 1, 1),
        ("notspecified", 0, 0),
        ("http://publications.europa.eu/resource/authority/licence/CC_BY_4_0", 1, 1),
        ("http://publications.europa.eu/resource/authority/licence/CC_BYNC_4_0", 1, 0),
    ],
)  # fmt: skip
def test_a_licence_is_known_and_open(licence, known, is_open):
    found = measured(changed(licence=licence), CAME)
    assert (found["coli"], found["opli"]) == (known, is_open)


@pytest.mark.parametrize(
    ("media_type", "is_open", "readable"),
    [
        ("text/csv", 1, 1), ("application/pdf", 1, 0), ("application/vnd.ms-excel", 0, 1),
        ("image/png", 1, 0),
        ("application/geo+json", 1, 1), ("application/msword", 0, 0),
    ],
)  # fmt: skip
def test_a_format_is_open_and_readable_by_machines(media_type, is_open, readable):
    found = measured(changed(format=None, media_type=media_type), CAME)
    assert (found["opfo"], found["opma"]) == (is_open, readable)


def test_the_licence_of_the_dataset_is_that_of_its_forms():
    dataset = msgspec.structs.replace(changed(licence=None), licence="CC BY 4.0")
    assert measured(dataset, CAME)["opli"] == 1.0


def test_the_points_of_all_indicators_are_405():
    assert sum(indicator.points for indicator in INDICATORS) == 405


def test_a_perfect_description_of_data_that_came_has_all_points():
    assert points(claims_of(PERFECT), [CAME]) == {
        "mqa-findability": 100,
        "mqa-accessibility": 100,
        "mqa-interoperability": 110,
        "mqa-reusability": 75,
        "mqa-contextuality": 20,
        "mqa": 405,
    }


def test_what_did_not_come_loses_the_points_of_its_addresses():
    assert points(claims_of(PERFECT), [Got(tried=True)])["mqa"] == 405 - 80


def test_an_indicator_of_forms_gives_points_by_their_share():
    form = PERFECT.distributions[0]
    both = (form, msgspec.structs.replace(form, licence=None))
    told = claims_of(msgspec.structs.replace(PERFECT, distributions=both))
    assert indicator_points(told, [CAME, CAME])["licence"] == 10


def test_what_is_kept_of_a_description_survives_json():
    told = claims_of(PERFECT)
    assert msgspec.json.decode(msgspec.json.encode(told), type=ClaimedDescription) == told


def test_signs_that_no_database_keeps_are_replaced():
    dataset = changed(url="http://example.org/\0\ud800", licence="\0\ud800")
    form = msgspec.json.decode(msgspec.json.encode(claims_of(dataset)))["forms"][0]
    assert (form["url"], form["licence"]) == ("http://example.org/\ufffd?", "\ufffd?")
