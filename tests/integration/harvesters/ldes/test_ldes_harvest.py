"""Harvests through an event stream: all members first, then the new ones, and on after an interruption."""

import pytest

from tamias.model.capture import Outcome
from tamias.model.finding import Links, Problem, Quads

IMMUTABLE = {"Cache-Control": "max-age=600, immutable"}


def members(steps):
    """The numbers of the members whose statements came, in order."""
    return [
        int(quad.object.value)
        for step in steps
        for finding in step.findings
        if isinstance(finding, Quads)
        for quad in finding.quads
        if quad.predicate.value == "http://x/n" and "/m/" in str(quad.subject)
    ]


def findings(steps, kind):
    return [finding for step in steps for finding in step.findings if isinstance(finding, kind)]


def end(steps):
    return steps[-1].end


def paths(asked):
    return [path for path, _status in asked]


def before(page, day):
    bound = f'tree:path dct:created ; tree:value "2024-01-{day:02}T00:00:00Z"'
    return f"[ a tree:LessThanRelation ; {bound} ; tree:node <{page}> ]"


def three_pages(stream, headers=None):
    stream.write("/p1", [1, 2], ["/p2"], headers=headers)
    stream.write("/p2", [3, 4], ["/p3"], headers=headers)
    stream.write("/p3", [5])


def test_a_first_harvest_brings_every_member(stream, harvest):
    three_pages(stream)
    steps = harvest()
    assert (members(steps), end(steps).outcome, end(steps).complete) == ([1, 2, 3, 4, 5], Outcome.OK, True)


def test_every_statement_of_a_new_member_comes(stream, harvest):
    stream.write("/p1", [1])
    [quads] = findings(harvest(), Quads)
    assert len([quad for quad in quads.quads if "ldes" not in str(quad)]) == 5


def test_a_second_harvest_brings_only_what_is_new(stream, harvest):
    three_pages(stream)
    bookmark = end(harvest()).bookmark
    stream.write("/p3", [5, 6], ["/p4"])
    stream.write("/p4", [7])
    assert members(harvest(bookmark=bookmark)) == [6, 7]


def test_a_page_that_is_not_changed_is_not_sent_again(stream, harvest):
    three_pages(stream)
    bookmark = end(harvest()).bookmark
    stream.asked()
    steps = harvest(bookmark=bookmark)
    assert (stream.asked(), members(steps)) == ([("/p1", 304), ("/p2", 304), ("/p3", 304)], [])


def test_members_are_told_apart_without_validators(stream, harvest):
    stream.write("/p1", [1, 2], etag=False)
    bookmark = end(harvest()).bookmark
    stream.write("/p1", [1, 2, 3], etag=False)
    assert members(harvest(bookmark=bookmark)) == [3]


@pytest.mark.parametrize("how", ["header", "statement"])
def test_an_immutable_page_is_asked_for_once(stream, harvest, how):
    three_pages(stream, IMMUTABLE if how == "header" else None)
    if how == "statement":
        stream.write("/p1", [1, 2], ["/p2"], extra="<> ldes:immutable true .")
        stream.write("/p2", [3, 4], ["/p3"], extra="<> ldes:immutable true .")
    bookmark = end(harvest()).bookmark
    stream.asked()
    stream.write("/p3", [5, 6])
    steps = harvest(bookmark=bookmark)
    assert (paths(stream.asked()), members(steps)) == (["/p3"], [6])


def test_a_harvest_that_was_killed_goes_on_and_repeats_nothing(stream, harvest):
    three_pages(stream)
    first = harvest(most_steps=2)
    stream.asked()
    rest = harvest(state=first[-1].state)
    assert (members(first), members(rest), paths(stream.asked())) == ([1, 2, 3, 4], [5], ["/p3"])


def test_a_killed_second_harvest_still_knows_the_bookmark(stream, harvest):
    three_pages(stream)
    bookmark = end(harvest()).bookmark
    stream.write("/p1", [1, 2, 6], ["/p2"])
    stream.write("/p3", [5, 7])
    first = harvest(bookmark=bookmark, most_steps=1)
    rest = harvest(bookmark=bookmark, state=first[-1].state)
    assert (members(first), members(rest)) == ([6], [7])


def test_loops_are_cut(stream, harvest):
    stream.write("/p1", [1], ["/p2", "/p1"])
    stream.write("/p2", [2], ["/p1", "/p2#here"])
    harvest()
    assert paths(stream.asked()) == ["/p1", "/p2"]


def test_pages_whose_members_are_all_older_than_the_last_harvest_are_passed_over(stream, harvest):
    stream.write("/p1", [], [before("/old", 10), before("/new", 20)], etag=False)
    stream.write("/old", [1, 9], etag=False)
    stream.write("/new", [11, 12], etag=False)
    bookmark = end(harvest()).bookmark
    stream.asked()
    stream.write("/new", [11, 12, 13], etag=False)
    steps = harvest(bookmark=bookmark)
    assert (paths(stream.asked()), members(steps)) == (["/p1", "/new"], [13])


def test_a_harvest_that_reaches_its_bound_is_ended_by_the_next(stream, harvest):
    three_pages(stream)
    first = harvest(most_pages=2)
    second = harvest(bookmark=end(first).bookmark)
    assert (members(first), end(first).complete, members(second), end(second).complete) == (
        [1, 2, 3, 4],
        False,
        [5],
        True,
    )


def test_a_server_in_trouble_ends_the_harvest_for_now(stream, harvest):
    three_pages(stream)
    stream.write("/p2", status=503, headers={"Retry-After": "7"})
    steps = harvest()
    assert (end(steps).retry, end(steps).retry_after_ms, members(steps)) == (True, 7000, [1, 2])


def test_after_trouble_the_harvest_goes_on_with_every_page(stream, harvest):
    three_pages(stream)
    stream.write("/p2", status=500)
    steps = harvest()
    three_pages(stream)
    assert members(harvest(state=steps[-2].state)) == [3, 4, 5]


def test_a_page_that_is_gone_is_no_failure(stream, harvest):
    three_pages(stream)
    stream.write("/p2", status=410)
    steps = harvest()
    assert (end(steps).outcome, "1 pages gone" in end(steps).reason) == (Outcome.OK, True)


def test_a_page_that_is_refused_is_a_problem_and_is_tried_again_by_the_next_walk(stream, harvest):
    stream.write("/p1", [1], ["/p2", "/p3"])
    stream.write("/p2", status=403)
    stream.write("/p3", [3])
    first = harvest()
    stream.write("/p2", [2])
    second = harvest(bookmark=end(first).bookmark)
    assert (members(first), end(first).complete, len(findings(first, Problem)), members(second)) == (
        [1, 3],
        False,
        1,
        [2],
    )


def test_a_page_that_is_refused_for_a_while_does_not_repeat_its_members(stream, harvest):
    stream.write("/p1", [1, 2])
    bookmark = end(harvest()).bookmark
    stream.write("/p1", status=403)
    bookmark = end(harvest(bookmark=bookmark)).bookmark
    stream.write("/p1", [1, 2, 3])
    assert members(harvest(bookmark=bookmark)) == [3]


def test_a_stream_that_is_not_there_is_gone(stream, harvest):
    assert end(harvest("/nothing")).outcome is Outcome.GONE


def test_the_stream_s_own_address_leads_to_its_view(stream, harvest):
    stream.write("/about", extra="</stream> tree:view </p1> .")
    three_pages(stream)
    assert members(harvest("/about")) == [1, 2, 3, 4, 5]


def test_pages_of_another_host_are_harvested_on_their_own(stream, harvest):
    stream.write("/p1", [1], ["http://elsewhere.example/p2"])
    [links] = findings(harvest(), Links)
    assert (links.references, links.kind) == (["http://elsewhere.example/p2"], "ldes")


def test_a_damaged_page_is_read_again(stream, harvest):
    stream.write("/p1", [1], extra="</m/1> :broken .\n")
    first = harvest()
    stream.write("/p1", [1, 2])
    assert (end(first).complete, members(harvest(bookmark=end(first).bookmark))) == (False, [2])


def test_that_a_stream_lets_go_of_old_members_is_said(stream, harvest):
    stream.write("/p1", [1], extra="<> ldes:retentionPolicy [ a ldes:DurationAgoPolicy ] .")
    assert "ldes:retentionPolicy" in end(harvest()).reason


@pytest.mark.parametrize("junk", [b"", b"\xc1", b"\x00" * 50])
def test_a_bookmark_that_cannot_be_read_begins_anew(stream, harvest, junk):
    stream.write("/p1", [1])
    assert members(harvest(bookmark=junk, state=junk)) == [1]
