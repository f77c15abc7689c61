"""Sites without an end: left alone after so many visits, or when their pages differ in numbers only."""

import pytest

from tamias.permit.traps import Traps, packed_alike, template_of, unpacked_alike

QUEUE = "a.test"


def page(day):
    return f"<h1>Day {day}</h1><a href='/cal?day={day + 1}'>next</a>".encode()


def url(day):
    return f"http://a.test/cal?day={day}"


def read_all(traps, days, body=page, quads=0, alike=None):
    """What the host knows of its pages that are alike, after all were read by the workers in turn."""
    alike = {} if alike is None else alike
    for day in range(days):
        traps[day % len(traps)].read(url(day), body(day), quads, alike)
    return unpacked_alike(packed_alike(alike))


def workers(monotony=50, number=1):
    return [Traps(host_visits=1000, monotony=monotony) for _ in range(number)]


def refusal(traps, alike, address=None):
    (told,) = {each.refusal(QUEUE, address or url(99), 0, 0.0, alike) for each in traps}
    return told


@pytest.mark.parametrize("number", [1, 8])
def test_pages_that_differ_in_numbers_only_are_left_alone_after_so_many_by_all_workers(number):
    traps = workers(number=number)
    first = 2 * (number - 1)  # what each of the others reads before it is counted with the host
    alike = read_all(traps, 49)
    assert refusal(traps, alike) is None
    assert "permit.monotony" in refusal(traps, read_all(traps, 1 + first, alike=alike))


def test_the_first_pages_count_though_they_are_not_compared():
    (traps,) = workers(monotony=200)
    alike = read_all([traps], 199)
    assert refusal([traps], alike) is None
    assert "permit.monotony" in refusal([traps], read_all([traps], 1, alike=alike))
    different = [body_of_words(day) for day in range(20)]
    assert read_all(workers(monotony=200), 20, body=lambda day: different[day]) == {}


def body_of_words(day):
    return b"page of " + bytes([97 + day % 26]) * (1 + day // 26)


def test_pages_with_statements_are_never_left_alone():
    traps = workers()
    assert refusal(traps, read_all(traps, 200, quads=1)) is None


def test_one_page_with_statements_shows_that_the_others_are_no_trap():
    traps = workers()
    alike = read_all(traps, 49)
    assert traps[0].read(url(49), page(49), 1, alike)
    assert alike == {}


def test_pages_that_differ_in_words_go_on():
    traps = workers()
    alike = read_all(traps, 200, body=body_of_words)
    assert refusal(traps, alike) is None


def test_other_pages_of_the_site_go_on():
    traps = workers()
    assert refusal(traps, read_all(traps, 50), "http://a.test/data") is None


def test_nothing_is_looked_at_when_it_is_off():
    traps = workers(monotony=0)
    assert refusal(traps, read_all(traps, 500)) is None


def test_pages_alike_are_visited_again_when_more_of_them_are_allowed():
    alike = read_all(workers(), 50)
    assert refusal(workers(monotony=100), alike) is None


def test_what_is_counted_with_a_host_is_bounded():
    (traps,), alike = workers(), {}
    for template in range(500):
        for day in range(5):
            traps.read(f"http://a.test/{'x' * template}/{day}", page(day), 0, alike)
    assert len(packed_alike(alike)) < 20_000


def test_a_queue_is_left_alone_after_so_many_visits():
    traps = Traps(host_visits=3, monotony=0)
    assert traps.refusal(QUEUE, url(1), 2, 0.0, {}) is None
    assert "permit.host_visits" in traps.refusal(QUEUE, url(1), 3, 99.0, {})


BUDGET = 20


def visits_until_refusal(document, quads, most=400):
    """How many documents a site shows before it is left alone; `most` if it never is."""
    traps, visits, earned = Traps(10**6, 0, BUDGET), 0, 0.0
    while visits < most and traps.refusal(QUEUE, url(visits), visits, earned, {}) is None:
        if traps.looks(visits):
            earned += traps.earned(QUEUE, document(visits), quads)
        visits += 1
    return visits


def word(number):
    """Another one for each number, without digits."""
    return "".join(chr(97 + int(digit)) for digit in f"{number:05}")


def chain(number):
    return (
        f'<http://a.test/{number}> <http://v/p> "Number {number}" ; <http://v/q> </{number + 1}> .'.encode()
    )


def data(number):
    return f'<http://a.test/{number}> <http://v/label> "{word(number)}" .'.encode()


def paths(number):
    path = "/".join(["amber", "birch"] * (number % 9))
    return f"<title>A place</title><a href='/{path}/cedar'>more</a>".encode()


def prose(number):
    return f"<p>About {word(number)}</p>".encode()


@pytest.mark.parametrize(
    ("document", "quads", "visits"),
    [
        pytest.param(chain, 2, range(BUDGET, 2 * BUDGET), id="a chain of Linked Data that counts"),
        pytest.param(paths, 0, range(BUDGET, BUDGET + 2), id="paths that grow"),
        pytest.param(prose, 0, range(5 * BUDGET, 11 * BUDGET), id="words without statements"),
        pytest.param(data, 1, range(400, 401), id="statements with new words"),
    ],
)
def test_the_budget_of_a_site_grows_with_what_is_new(document, quads, visits):
    assert visits_until_refusal(document, quads) in visits


def test_links_from_other_hosts_earn_visits():
    traps = Traps(10**6, 0, BUDGET)
    assert "permit.host_budget" in traps.refusal(QUEUE, url(1), BUDGET, 0.0, {})
    assert traps.refusal(QUEUE, url(1), BUDGET, 1.0, {}) is None


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
