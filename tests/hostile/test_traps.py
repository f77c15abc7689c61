"""Sites without an end: left alone after so many visits, or when their pages differ in numbers only."""

import pytest

from tamias.permit.traps import Traps, template_of

QUEUE = "a.test"


def page(day):
    return f"<h1>Day {day}</h1><a href='/cal?day={day + 1}'>next</a>".encode()


def url(day):
    return f"http://a.test/cal?day={day}"


def read_all(traps, days, body=page, quads=0):
    for day in range(days):
        traps.read(url(day), body(day), quads)


def test_pages_that_differ_in_numbers_only_are_left_alone_after_so_many():
    traps = Traps(host_visits=1000, monotony=50)
    read_all(traps, 49)
    assert traps.refusal(QUEUE, url(49)) is None
    read_all(traps, 1)
    assert "permit.monotony" in traps.refusal(QUEUE, url(50))


def test_pages_with_statements_are_never_left_alone():
    traps = Traps(host_visits=1000, monotony=50)
    read_all(traps, 200, quads=1)
    assert traps.refusal(QUEUE, url(200)) is None


def test_pages_that_differ_in_words_go_on():
    traps = Traps(host_visits=1000, monotony=50)
    read_all(traps, 200, body=lambda day: b"page of " + bytes([97 + day % 26]) * (1 + day // 26))
    assert traps.refusal(QUEUE, url(200)) is None


def test_other_pages_of_the_site_go_on():
    traps = Traps(host_visits=1000, monotony=50)
    read_all(traps, 50)
    assert traps.refusal(QUEUE, "http://a.test/data") is None


def test_nothing_is_looked_at_when_it_is_off():
    traps = Traps(host_visits=1000, monotony=0)
    read_all(traps, 500)
    assert traps.refusal(QUEUE, url(500)) is None


def test_a_queue_is_left_alone_after_so_many_visits():
    traps = Traps(host_visits=3, monotony=0)
    for _ in range(3):
        assert traps.refusal(QUEUE, url(1)) is None
        traps.visited(QUEUE)
    assert "permit.host_visits" in traps.refusal(QUEUE, url(1))
    assert traps.refusal("b.test", "http://b.test/") is None


@pytest.mark.parametrize(
    ("address", "template"),
    [
        ("http://a.test/", "http://a.test/"),
        ("http://a.test", "http://a.test"),
        ("http://a1.test/x/12/y", "http://a1.test/x/#/y"),
        ("http://a.test/x?b=1&a=2&b=3", "http://a.test/x?a&b"),
        ("http://a.test/2024-05-01.html", "http://a.test/#"),
    ],
)
def test_the_template_of_an_address_has_no_numbers(address, template):
    assert template_of(address) == template
