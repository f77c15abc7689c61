"""Remote JSON-LD contexts are kept, and asked for once."""

from tamias.crawl.analysis.analysers import MAX_CONTEXT, ContextCache


def test_a_context_that_was_put_is_at_hand():
    cache = ContextCache()
    cache.put("http://c/a", b"{}")
    assert (cache("http://c/a"), cache("http://c/b")) == (b"{}", None)


def test_only_untried_addresses_of_the_web_are_to_be_fetched():
    cache = ContextCache()
    cache.put("http://c/gone", None)
    wanted = ["http://c/a", "http://c/gone", "file:///etc/passwd", "http://c/a", "https://c/b"]
    assert cache.to_fetch(wanted) == ["http://c/a", "https://c/b"]


def test_a_context_that_is_too_large_counts_as_none():
    cache = ContextCache()
    cache.put("http://c/a", b" " * (MAX_CONTEXT + 1))
    assert (cache("http://c/a"), cache.to_fetch(["http://c/a"])) == (None, [])


def test_the_oldest_contexts_make_room():
    cache = ContextCache(most=2)
    for name in "abc":
        cache.put(name, b"{}")
    assert [cache(name) for name in "abc"] == [None, b"{}", b"{}"]
