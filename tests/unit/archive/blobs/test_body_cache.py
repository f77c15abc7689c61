"""The cache of bodies stays within its bytes."""

from tamias.archive.blobs.reader import BodyCache


def test_what_was_not_used_for_longest_goes_first():
    cache = BodyCache(20)
    cache.put("a", bytes(10))
    cache.put("b", bytes(10))
    cache.get("a")
    cache.put("c", bytes(10))
    assert [name for name in "abc" if cache.get(name) is not None] == ["a", "c"]


def test_a_body_larger_than_all_the_room_is_left_out():
    cache = BodyCache(20)
    cache.put("a", bytes(10))
    cache.put("b", bytes(21))
    assert cache.get("a") is not None
    assert cache.get("b") is None


def test_what_is_forgotten_makes_room():
    cache = BodyCache(20)
    cache.put("a", bytes(15))
    cache.forget("a")
    cache.put("b", bytes(15))
    cache.put("c", bytes(5))
    assert cache.get("b") is not None
