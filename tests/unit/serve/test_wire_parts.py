"""What is read of messages without the parser is what the parser reads."""

from hypothesis import given
from hypothesis import strategies as st

from tamias.crawl.remote.grpc.messages import message
from tamias.serve.urlfrontier.wire_parts import ack, split_batch, split_item

ITEM, BATCH = message("urlfrontier.URLItem"), message("urlfrontier.DiscoveredBatch")
INFO, ACK = message("urlfrontier.URLInfo"), message("urlfrontier.AckMessage")

infos = st.builds(INFO, url=st.text(max_size=300), key=st.text(max_size=20), crawlID=st.text(max_size=9))


@given(
    st.text(max_size=300),
    infos,
    st.sampled_from(["discovered", "known"]),
    st.integers(0, 2**60),
    st.binary(max_size=9),
)
def test_an_item_is_read_as_the_parser_reads_it_or_left_to_it(name, info, kind, date, more):
    item = ITEM(ID=name, creation_date=date)
    getattr(item, kind).info.CopyFrom(info)
    raw = item.SerializeToString() + more
    found = split_item(raw)
    if name and name.isascii() and kind == "discovered" and not date and not more:
        assert found is not None
    if found is not None:
        parsed = ITEM.FromString(raw)
        assert (parsed.WhichOneof("item"), parsed.creation_date) == ("discovered", 0)
        assert (parsed.ID.encode(), parsed.discovered.SerializeToString()) == found


@given(st.text(max_size=9), st.lists(infos, max_size=5), st.binary(max_size=9))
def test_a_batch_is_read_as_the_parser_reads_it_or_left_to_it(name, some, more):
    whole = BATCH(ID=name, items=some).SerializeToString()
    if name.isascii():
        assert split_batch(whole) is not None
    for raw in (whole, whole + more, whole[:-1]):
        found = split_batch(raw)
        try:
            parsed = BATCH.FromString(raw)
        except Exception:  # noqa: BLE001 (the parser is asked again where a URL of it cannot be read)
            continue
        if found is not None:
            assert parsed.ID.encode() == found[0]
            assert list(parsed.items) == [INFO.FromString(each) for each in found[1]]


@given(st.text(max_size=300), st.sampled_from([0, 1, 2]))
def test_an_answer_is_written_as_the_library_writes_it(name, status):
    assert ACK.FromString(ack(name.encode(), status)) == ACK(ID=name, status=status)
    if name:
        assert ack(name.encode(), status) == ACK(ID=name, status=status).SerializeToString()
