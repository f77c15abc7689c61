"""A limit on URLs: exact, however often one of them has to be tried."""

import pytest

from tamias.crawl.visit.visitor import Allowance
from tamias.model.lease import Task


def task(fails=0):
    return Task(uid=1, url="http://example.org/", crawl=1, depth=0, score=1.0, fails=fails)


def test_no_limit_is_never_used_up():
    free = Allowance(None)
    assert all(free.take(task()) for _ in range(1000))
    assert not free.used_up


@pytest.mark.parametrize("urls", [1, 5])
def test_as_many_visits_as_allowed_may_begin(urls):
    limited = Allowance(urls)
    assert [limited.take(task()) for _ in range(urls + 1)] == [True] * urls + [False]
    assert limited.used_up


def test_a_repeated_attempt_is_free_while_anything_is_allowed():
    limited = Allowance(1)
    assert limited.take(task(fails=1))
    assert limited.take(task())
    assert not limited.take(task(fails=1))


def test_a_visit_that_came_to_nothing_is_given_back():
    limited = Allowance(1)
    limited.take(task())
    limited.give_back(task())
    assert limited.take(task())
