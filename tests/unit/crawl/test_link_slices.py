"""The links of a large document come to the frontier in slices, between which other visits are committed."""

import pytest

from tamias.crawl.plan.admit import Reference
from tamias.crawl.visit.reader import LINKS_AT_ONCE, slices


def reference(count, **more):
    return Reference([f"/{number}" for number in range(count)], "http://a.test/", 1, 1, **more)


@pytest.mark.parametrize("count", [0, 1, LINKS_AT_ONCE, LINKS_AT_ONCE + 1, 5 * LINKS_AT_ONCE - 1])
def test_slices_are_small_and_hold_all_links_in_order(count):
    whole = reference(count, tags=("a",))
    parts = list(slices(whole))
    assert [link for part in parts for link in part.references] == whole.references
    assert all(len(part.references) <= LINKS_AT_ONCE for part in parts)
    assert {(part.base, part.depth, part.tags) for part in parts} <= {("http://a.test/", 1, ("a",))}


def test_a_sitemap_is_counted_as_a_whole():
    whole = reference(3 * LINKS_AT_ONCE, listed=True)
    assert list(slices(whole)) == [whole]
