"""Which puts may be written at the same time: those that share no URL, each all of one kind."""

from tamias.features.urlfrontier.puts import may_go_together
from tamias.frontier.put import offer
from tamias.model.item import Item


def offered(numbers, overwrites=lambda _: False, keeps_tags=True):
    urls = {number: f"http://h{number % 7}.example/{number}" for number in numbers}
    items = [
        Item(url=url, key=url, host=f"h{n % 7}.example", overwrites=overwrites(n), keeps_tags=keeps_tags)
        for n, url in urls.items()
    ]
    return offer(items, now=1, buckets=1)


def test_those_of_other_urls_of_the_same_queues_may():
    assert may_go_together(offered(range(100)), offered(range(100, 200)))
    assert may_go_together(offered(range(100)), offered(range(100, 200), lambda _: True))


def test_those_that_share_a_url_may_not():
    assert not may_go_together(offered(range(100)), offered(range(99, 200)))
    assert not may_go_together(offered(range(100), lambda _: True), offered(range(99, 200)))


def test_those_of_several_kinds_or_with_other_tags_may_not():
    mixed = offered(range(100), lambda number: number % 2 == 0)
    retagged = offered(range(100), lambda _: True, keeps_tags=False)
    for each in (mixed, retagged):
        assert not may_go_together(each, offered(range(100, 200)))
        assert not may_go_together(offered(range(100, 200)), each)
