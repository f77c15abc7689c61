"""A batch is counted before it is parsed, whatever else it holds."""

import pytest

from tamias.crawl.remote.grpc.messages import message
from tamias.crawl.remote.grpc.status import CallError
from tamias.serve.urlfrontier.puts import MOST_OF_A_BATCH, check_number_of_items, parsed

BATCH = message("urlfrontier.DiscoveredBatch")
EMPTY_ITEM = b"\x12\0"
TOO_MANY = EMPTY_ITEM * (MOST_OF_A_BATCH + 1)


@pytest.mark.parametrize(
    "before",
    [b"", b"\x0a\x03abc", b"\x18\x96\x01", b"\x1d1234", b"\x1912345678", b"\x1a\x02xy"],
    ids=["nothing", "name", "number", "4 bytes", "8 bytes", "unknown text"],
)
def test_too_many_items_are_counted_behind_any_field(before):
    with pytest.raises(CallError, match="at most"):
        check_number_of_items(before + TOO_MANY)


def test_an_item_is_counted_however_its_tag_is_written():
    with pytest.raises(CallError, match="at most"):
        check_number_of_items(b"\x92\x00\0" * (MOST_OF_A_BATCH + 1))


def test_a_group_cannot_hide_items():
    with pytest.raises(CallError, match="groups"):
        check_number_of_items(b"\x1b\x1c" + TOO_MANY)


def test_the_largest_batch_is_taken():
    raw = EMPTY_ITEM * MOST_OF_A_BATCH + b"\x0a\x01n"
    check_number_of_items(raw)
    assert len(parsed(BATCH, raw).items) == MOST_OF_A_BATCH


def test_a_batch_that_is_cut_off_is_left_to_the_parser():
    raw = b"\x0a\x80\x80\x20" + b"n" * (1 << 19) + b"\x12\x7f"
    check_number_of_items(raw)
    with pytest.raises(CallError, match="cannot be read"):
        parsed(BATCH, raw)
