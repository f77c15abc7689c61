"""Sentences of messages stand in one file, which is written from what tests get."""

import pytest

from tests import messages
from tests.messages import is_worded, read, saying, unsaid


@pytest.fixture
def sentences(tmp_path, monkeypatch):
    file = tmp_path / "messages.toml"
    file.write_text('[test_messages]\na_new_sentence_takes_the_place_of_the_old = "…there is no blob…"\n')
    monkeypatch.setattr(messages, "SENTENCES", file)
    return file


def test_a_new_sentence_takes_the_place_of_the_old(sentences, monkeypatch):
    said = "tamias: a warning\ntamias: no blob 7 is in /tmp/data/blobs\n"
    assert unsaid(said, "7") == ["…there is no blob…"]
    monkeypatch.setenv("TAMIAS_MESSAGES", "write")
    assert unsaid(said, "7") == []
    monkeypatch.delenv("TAMIAS_MESSAGES")
    assert unsaid(said, "7") == []
    assert read(sentences) == {
        "test_messages": {
            "a_new_sentence_takes_the_place_of_the_old": "tamias: no blob 7 is in …",
        }
    }


@pytest.mark.usefixtures("sentences")
def test_what_must_be_named_is_not_written_away(monkeypatch):
    monkeypatch.setenv("TAMIAS_MESSAGES", "write")
    assert unsaid("there is a blob", "8") == ["8"]


@pytest.mark.usefixtures("sentences")
def test_an_error_without_its_sentence_fails():
    with pytest.raises(AssertionError, match="make messages"):
        saying()(ValueError("whatever"))


@pytest.mark.parametrize(
    ("sentence", "worded"),
    [("one … three", True), ("one two", False), ("…two…", True), ("ONE TWO THREE", False)],
)
def test_a_sentence_is_a_whole_line_but_for_what_may_be_anything(sentence, worded):
    assert is_worded(["zero", "one two three"], sentence) is worded
