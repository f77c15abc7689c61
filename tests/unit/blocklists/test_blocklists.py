"""Block lists: what lines mean, what is kept out, and what becomes of lists that change, break or vanish."""

import gzip
import os

import pytest

from tamias.features.blocklists.filter import BlocklistFilter, read_lists
from tamias.features.blocklists.table import BlockedPart, entries, expressions
from tamias.model.errors import ConfigError
from tamias.settings import FiltersSettings
from tests.messages import saying, unsaid


@pytest.fixture
def written(tmp_path):
    """`written(name, text)` is a list in a file, which nobody has read: paths of earlier tests come again."""
    read_lists.cache_clear()

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def keeping(*paths):
    return BlocklistFilter(FiltersSettings(blocklists=tuple(str(path) for path in paths)))


@pytest.mark.parametrize(
    ("line", "what", "text"),
    [
        ("example.org", BlockedPart.DOMAIN, "example.org"),
        ("EXAMPLE.org.", BlockedPart.DOMAIN, "example.org"),
        (".example.org", BlockedPart.DOMAIN, "example.org"),
        ("*.example.org", BlockedPart.DOMAIN, "example.org"),
        ("||example.org^", BlockedPart.DOMAIN, "example.org"),
        ("address=/example.org/0.0.0.0", BlockedPart.DOMAIN, "example.org"),
        ("bücher.example", BlockedPart.DOMAIN, "xn--bcher-kva.example"),
        ("192.0.2.7", BlockedPart.DOMAIN, "192.0.2.7"),
        ("https://example.org/", BlockedPart.DOMAIN, "example.org"),
        ("0.0.0.0 ads.example.org", BlockedPart.HOST, "ads.example.org"),
        ("::1\tads.example.org # why", BlockedPart.HOST, "ads.example.org"),
        ("www.example.org/a/b/", BlockedPart.ADDRESS, "example.org/a/b"),
        ("http://example.org/ä", BlockedPart.ADDRESS, "example.org/%C3%A4"),
        ("example.org/*/print", BlockedPart.PATTERN, "example.org/*/print"),
        ("/[?&]sessid=/", BlockedPart.EXPRESSION, "[?&]sessid="),
    ],
)
def test_a_line_says_what_its_format_means(line, what, text):
    assert entries(line) == [(what, text)]


@pytest.mark.parametrize("line", ["", "  ", "# a", "! b", "; c", "[Adblock Plus 2.0]", "127.0.0.1 localhost"])
def test_comments_and_idle_lines_say_nothing(line):
    assert entries(line) == []


@pytest.mark.parametrize(
    "line",
    ["word", "two words", "0.0.0.0 not_a_host!", "a^b", "*", "*a*", "/(a+)+$/", "/a.*b.*c/", "/[/", "/a*/"],
)
def test_a_line_that_makes_no_sense_says_so(line):
    assert entries(line) is None


def test_lines_of_an_expressions_file_are_expressions():
    assert expressions("[?&]sid=") == [(BlockedPart.EXPRESSION, "[?&]sid=")]


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("example.org", "http://example.org/"),
        ("example.org", "ftp://a.b.example.org:21/x"),
        ("0.0.0.0 a.example.org", "https://user@a.example.org:8443/x?y"),
        ("example.org/a", "https://www.example.org/a/b?c"),
        ("example.org/a", "https://example.org/a?c"),
        ("example.org/a?b=1", "http://example.org/a?b=1"),
        ("example.org/*/print", "http://example.org/x/print"),
        ("*://*.example.org/*ads*", "https://a.example.org/x/ads/y"),
        ("/[?&]sid=/", "http://example.org/?sid=4"),
        ("[2001:db8::1]", "http://[2001:db8::1]/"),
        ("192.0.2.7", "http://192.0.2.7/"),
    ],
)
def test_what_a_list_names_is_kept_out(written, line, url):
    assert keeping(written("list", line)).refuse(url, 0).startswith("block list list: ")


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("example.org", "http://example.org.test/"),
        ("example.org", "http://notexample.org/"),
        ("0.0.0.0 example.org", "http://a.example.org/"),
        ("example.org/a", "https://example.org/ab"),
        ("example.org/a/b", "https://example.org/a"),
        ("example.org/*/print", "http://example.org/x/print/y"),
        ("example.org/*/print", "http://other.test/?example.org/x/print"),
        ("2.7", "http://192.0.2.7/"),
        ("example.org", "urn:example.org"),
        ("example.org", "not a url"),
    ],
)
def test_what_no_list_names_is_let_in(written, line, url):
    assert keeping(written("list", line)).refuse(url, 0) is None


def test_every_entry_of_a_long_list_is_found_and_nothing_else(written):
    kept = keeping(written("long", "".join(f"n{number}.example\n" for number in range(5000))))
    assert all(kept.refuse(f"http://a.n{number}.example/", 0) for number in range(5000))
    assert not any(kept.refuse(f"http://n{number}.example/", 0) for number in range(5000, 10_000))


def test_a_folder_of_categories_is_a_list_for_each(written, tmp_path):
    written("ut1/adult/domains", "adult.example\n")
    written("ut1/shop/urls", "mixed.example/shop\n")
    written("ut1/shop/expressions", "buy[0-9]\n")
    written("ut1/README", "not a list\n")
    kept = keeping(tmp_path / "ut1")
    refused = [
        kept.refuse(f"http://{place}", 0)
        for place in ("adult.example/", "mixed.example/shop/1", "a.test/buy7")
    ]
    assert [reason.split(":")[0] for reason in refused] == [
        "block list ut1/adult",
        "block list ut1/shop",
        "block list ut1/shop",
    ]


def test_one_category_can_be_chosen(written, tmp_path):
    written("ut1/adult/domains", "adult.example\n")
    written("ut1/shop/domains", "shop.example\n")
    kept = keeping(tmp_path / "ut1" / "shop")
    assert kept.refuse("http://adult.example/", 0) is None


def test_a_packed_list_is_read(tmp_path):
    (tmp_path / "list.txt.gz").write_bytes(gzip.compress(b"example.org\r\n"))
    assert (
        keeping(tmp_path / "list.txt.gz").refuse("http://example.org/", 0) == "block list list: example.org"
    )


def test_a_list_gets_the_name_it_is_given(written):
    path = written("list", "example.org")
    assert keeping(f"mine={path}").refuse("http://example.org/", 0) == "block list mine: example.org"


def test_two_lists_of_one_name_are_refused(written):
    with pytest.raises(ConfigError, match="NAME=PATH"):
        keeping(written("a/list", "a.example"), written("b/list", "b.example"))


def test_counts_are_by_list_and_begin_anew(written):
    kept = keeping(written("one", "one.example"), written("two", "two.example"))
    for url in (
        "http://one.example/",
        "http://one.example/2",
        "http://two.example/",
        "http://three.example/",
    ):
        kept.refuse(url, 0)
    assert kept.taken_counts() == {"one": 2, "two": 1}
    assert kept.taken_counts() == {}


def test_a_changed_list_is_read_anew(written):
    path = written("list", "old.example")
    kept = keeping(path)
    path.write_text("new.example")
    os.utime(path, (1, 1))
    kept.look()
    assert [bool(kept.refuse(f"http://{name}.example/", 0)) for name in ("old", "new")] == [False, True]


def test_a_list_that_vanishes_stays_in_force_with_a_warning(written, caplog):
    path = written("list", "old.example")
    kept = keeping(path)
    path.unlink()
    kept.look()
    assert kept.refuse("http://old.example/", 0)
    assert not unsaid(caplog.text)


def test_a_list_that_breaks_stays_in_force(tmp_path):
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress(b"old.example\n"))
    kept = keeping(path)
    path.write_bytes(gzip.compress(b"new.example\n" * 1000)[:-9])
    kept.look()
    assert kept.refuse("http://old.example/", 0)


def test_a_category_that_appears_is_read(written, tmp_path):
    written("ut1/adult/domains", "adult.example\n")
    kept = keeping(tmp_path / "ut1")
    written("ut1/shop/domains", "shop.example\n")
    kept.look()
    assert kept.refuse("http://shop.example/", 0) == "block list ut1/shop: shop.example"


def test_lines_that_make_no_sense_are_counted_and_told(written, caplog):
    keeping(written("list", "good.example\nbad line here\n" + "x" * 5000 + "\n"))
    assert not unsaid(caplog.text, "2", "3")


def test_a_list_that_is_not_there_is_a_wrong_setting(tmp_path):
    with pytest.raises(ConfigError, check=saying()):
        keeping(tmp_path / "none")


def test_too_many_entries_name_the_setting(written):
    with pytest.raises(ConfigError, match="blocklist_entries"):
        BlocklistFilter(
            FiltersSettings(blocklists=(str(written("list", "a.example\nb.example\n")),), blocklist_entries=1)
        )
