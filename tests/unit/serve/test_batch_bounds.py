"""A batch has so many items at most, and one that has far more is not even parsed."""

import pytest

from tamias.features.remote_workers.grpc.connection import CallError
from tamias.features.urlfrontier import puts
from tamias.features.urlfrontier.puts import MOST_OF_A_BATCH, parsed_batch

EMPTY_ITEM = b"\x12\0"
TOO_MANY = EMPTY_ITEM * (MOST_OF_A_BATCH + 1)


@pytest.mark.parametrize(
    "before",
    [b"", b"\x0a\x03abc", b"\x18\x96\x01", b"\x1d1234", b"\x1912345678", b"\x1a\x02xy"],
    ids=["nothing", "name", "number", "4 bytes", "8 bytes", "unknown text"],
)
def test_too_many_items_are_counted_behind_any_field(before):
    with pytest.raises(CallError, match="at most"):
        parsed_batch(before + TOO_MANY)


def test_an_item_is_counted_however_its_tag_is_written():
    with pytest.raises(CallError, match="at most"):
        parsed_batch(b"\x92\x00\0" * (MOST_OF_A_BATCH + 1))


@pytest.mark.parametrize("item", [EMPTY_ITEM, b"\x92\x00\0"], ids=["usual", "a long tag"])
def test_a_batch_that_would_take_much_memory_is_not_even_parsed(item, monkeypatch):
    monkeypatch.setattr(puts, "parsed", None)
    with pytest.raises(CallError, match="at most"):
        parsed_batch(item * (9 * MOST_OF_A_BATCH))


def test_the_largest_batch_is_taken():
    raw = EMPTY_ITEM * MOST_OF_A_BATCH + b"\x0a\x01n"
    assert len(parsed_batch(raw).items) == MOST_OF_A_BATCH


def test_a_batch_that_is_cut_off_is_left_to_the_parser():
    raw = b"\x0a\x80\x80\x20" + b"n" * (1 << 19) + b"\x12\x7f"
    with pytest.raises(CallError, match="cannot be read"):
        parsed_batch(raw)
