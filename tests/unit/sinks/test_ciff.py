"""CIFF as written, read by the library of Protocol Buffers from the schema of the format."""

import io
from collections import Counter

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tamias.features.exports.ciff import export_ciff, terms

INT32, INT64, DOUBLE, STRING, MESSAGE = 5, 3, 1, 9, 11
SCHEMA = {
    "Header": [("version", INT32), ("num_postings_lists", INT32), ("num_docs", INT32),
               ("total_postings_lists", INT32), ("total_docs", INT32), ("total_terms_in_collection", INT64),
               ("average_doclength", DOUBLE), ("description", STRING)],
    "Posting": [("docid", INT32), ("tf", INT32)],
    "PostingsList": [("term", STRING), ("df", INT64), ("cf", INT64), ("postings", MESSAGE)],
    "DocRecord": [("docid", INT32), ("collection_docid", STRING), ("doclength", INT32)],
}  # fmt: skip


@pytest.fixture(scope="module")
def classes():
    file = descriptor_pb2.FileDescriptorProto(name="ciff.proto", package="ciff", syntax="proto3")
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            repeated = kind == MESSAGE
            message.field.add(
                name=field, number=number, type=kind, label=3 if repeated else 1,
                type_name=".ciff.Posting" if repeated else None,
            )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ciff.{name}")) for name in SCHEMA
    }


def read(content, classes):
    """The header, the postings lists and the records."""
    from google.protobuf.internal.decoder import _DecodeVarint

    place = 0

    def message(name):
        nonlocal place
        size, place = _DecodeVarint(content, place)
        found = classes[name].FromString(content[place : place + size])
        place += size
        return found

    header = message("Header")
    lists = [message("PostingsList") for _ in range(header.num_postings_lists)]
    records = [message("DocRecord") for _ in range(header.num_docs)]
    assert place == len(content)
    return header, lists, records


TEXTS = {
    "http://a.example/": "The cat and the hat",
    "http://b.example/": "",
    "http://c.example/": "A hat, a HAT; Ünder 日本",
    "http://d.example/": " ".join(["cat"] * 300),
}


def test_an_index_is_the_inversion_of_its_documents(classes):
    out = io.BytesIO()
    assert export_ciff(TEXTS.items(), out, "A test") == 4
    header, lists, records = read(out.getvalue(), classes)
    lengths = [len(list(terms(text))) for text in TEXTS.values()]
    assert (header.version, header.total_docs, header.description) == (1, 4, "A test")
    assert header.total_terms_in_collection == sum(lengths)
    assert header.average_doclength == pytest.approx(sum(lengths) / 4)
    assert [(each.docid, each.collection_docid, each.doclength) for each in records] == [
        (number, name, length) for number, (name, length) in enumerate(zip(TEXTS, lengths, strict=True))
    ]
    names = [each.term for each in lists]
    assert names == sorted(names, key=lambda term: term.encode())
    expected = Counter((term, number) for number, text in enumerate(TEXTS.values()) for term in terms(text))
    found = Counter()
    for each in lists:
        document = 0
        for posting in each.postings:
            document += posting.docid
            found[each.term, document] = posting.tf
        assert (each.df, each.cf) == (len(each.postings), sum(posting.tf for posting in each.postings))
    assert found == expected


def test_an_index_of_nothing_is_a_header(classes):
    out = io.BytesIO()
    assert export_ciff([], out, "Nothing") == 0
    header, lists, records = read(out.getvalue(), classes)
    assert (header.num_docs, lists, records) == (0, [], [])
