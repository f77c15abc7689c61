"""A rule file that is wrong is refused with its name, the line, and what to do."""

import pytest

from tamias.features.scraping.book import load_rules
from tamias.features.scraping.words import KeyLines
from tamias.model.errors import ConfigError
from tests.messages import saying


def page(*lines):
    """A file whose fourth line is the first of these."""
    return "\n".join(['hosts = "example.org"', "[[page]]", 'match = "*"', *lines]) + "\n"


WRONG = [
    ("hosts = \n", 1, "Invalid value"),
    ('hosts = "example.org"\n', 1, "there is no page; begin one with [[page]]"),
    ('[[page]]\nmatch = "*"\n', 1, "hosts must be a text or a list of texts"),
    ('hosts = "https://example.org/"\n[[page]]\nmatch = "*"\n', 1, "is not a host"),
    ('hosts = "example.org"\n\n[[page]]\n', 3, "match must be a text or a list of texts"),
    ('hosts = "example.org"\n[[page]]\nmatch = "dataset/*"\n', 3, "must begin with / or *"),
    ('hosts = "example.org"\nhots = 1\n', 2, "did you mean hosts?"),
    (page('"dct:title" = "h1["'), 4, "'h1[' is not a valid CSS selector"),
    (page('"dcx:title" = "h1"'), 4, "the prefix 'dcx' is not declared"),
    (page('type = "Dataset"'), 4, "neither an IRI nor a prefixed name"),
    (page("", '"dct:title" = { slect = "h1" }'), 5, "did you mean select?"),
    (page('"dct:title" = { select = "h1", constant = "a" }'), 4, "either select or constant"),
    (page('"dct:title" = { select = "h1", iri = true, lang = "en" }'), 4, "one of iri, datatype and lang"),
    (page('"dct:title" = { select = "h1", lang = "no language" }'), 4, "is not a language"),
    (page('"dct:title" = { select = "h1", first = "yes" }'), 4, "first is true or false"),
    (page('"dct:title" = { select = "h1", number = ";" }'), 4, "number is true, or the decimal sign"),
    (page('subject = "{pgae}"'), 4, "there is no variable {pgae}"),
    (page("titel = 1"), 4, "there is no key 'titel' here"),
    (page('paginate = { last = 3 }'), 4, "parameter is missing"),
    (page("", '[page."dct:creator"]', "# who", 'each = "li["'), 7, "'li[' is not a valid CSS selector"),
    (page('"dct:title" = [', '  "h1",', "]", '"dct:x" = "h2["'), 7, "'h2[' is not a valid CSS selector"),
    (page('"dct:title" = """', "h1,", 'h2"""', 'each = "b["'), 7, "'b[' is not a valid CSS selector"),
    (page("", "[[page]]", 'match = "/b"', 'follow = "a["'), 7, "'a[' is not a valid CSS selector"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "complaint"), WRONG)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path, text, line, complaint):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        load_rules(path)
    assert str(refusal.value).startswith(f"{path}:{line}: ")
    assert complaint in str(refusal.value)


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_bytes(b'hosts = "a"\n# \xff\n')
    with pytest.raises(ConfigError, check=saying("wrong.toml:2", "UTF", "8")):
        load_rules(path)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ConfigError, check=saying()):
        load_rules(tmp_path / "none.toml")


def test_a_folder_without_rules_is_told(tmp_path):
    with pytest.raises(ConfigError, check=saying()):
        load_rules(tmp_path)


def test_the_files_of_a_folder_are_one_book(tmp_path):
    for name in ("a.example", "b.example"):
        (tmp_path / f"{name}.toml").write_text(f'hosts = "{name}"\n[[page]]\nmatch = "*"\n')
    rules = load_rules(tmp_path)
    assert rules.applies("http://a.example/")
    assert rules.applies("http://b.example/")


def test_keys_are_found_in_their_lines_whatever_stands_between():
    text = """a = 1
b = '''
c = 2
'''
[t."x:y"] # z = 9
"q\\"r" = [ {d = 1},
  2 ]
e.f = "#"
[[l]]
g = 1
[[l]]
[l.m]
h = 1
"""
    lines = KeyLines(text)
    paths = [
        ("a",), ("b",), ("t", "x:y"), ("t", "x:y", 'q"r'), ("t", "x:y", "e", "f"),
        ("l", 0, "g"), ("l", 1), ("l", 1, "m", "h"), ("t", "x:y", 'q"r', 0, "d"),
    ]  # fmt: skip
    assert [lines.line(path) for path in paths] == [1, 2, 5, 6, 8, 10, 11, 13, 6]
