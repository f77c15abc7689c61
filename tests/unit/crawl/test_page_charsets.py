"""Pages are decoded as browsers do it: byte order mark, header, `<meta>`, UTF-8 if it is, windows-1252."""

import pytest

import tamias

SCHEMA = "http://schema.org/"


def page(text, head="", encoding="utf-8"):
    markup = f"{head}<div itemscope itemtype='{SCHEMA}Person'><b itemprop=name>{text}</b></div>"
    return markup.encode(encoding)


def name_in(data, media_type="text/html"):
    reading = tamias.read(data, base="http://a.example/", media_type=media_type)
    return [quad.object.value for quad in reading.quads if quad.predicate.value == f"{SCHEMA}name"]


META = "<meta charset={}>"
PRAGMA = '<meta http-equiv="Content-Type" content="text/html; charset={}">'
LONG = "<!-- " + "x" * 1024 + " -->"
CASES = [
    # (what, head, encoding of the bytes, declared media type, text)
    ("nothing declared", "", "cp1252", "text/html", "Straße “quoted” €"),
    ("nothing declared, and UTF-8", "", "utf-8", "text/html", "Straße “quoted” €"),
    ("a mark before the header", "\ufeff", "utf-8", "text/html; charset=iso-8859-1", "Straße"),
    ("a mark of UTF-16", "\ufeff", "utf-16-be", "text/html; charset=utf-8", "Straße"),
    (
        "the header before the meta",
        META.format("utf-8"),
        "cp1251",
        "text/html; charset=windows-1251",
        "Привет",
    ),
    ("an unknown header", META.format("koi8-r"), "koi8-r", "text/html; charset=nonsense", "Привет"),
    ("a meta", META.format("koi8-r"), "koi8-r", "text/html", "Привет"),
    ("a quoted meta", META.format("'koi8-r'"), "koi8-r", "text/html", "Привет"),
    ("a meta with other attributes", "<META name=x / charset=koi8-r >", "koi8-r", "text/html", "Привет"),
    ("a pragma", PRAGMA.format("koi8-r"), "koi8-r", "text/html", "Привет"),
    ("a meta that is no pragma", "<meta name=x content='charset=koi8-r'>", "cp1252", "text/html", "Straße"),
    ("a meta in a comment", "<!-- <meta charset=koi8-r> -->", "cp1252", "text/html", "Straße"),
    ("a meta in an attribute", "<p title='<meta charset=koi8-r>'>", "cp1252", "text/html", "Straße"),
    ("a meta after an odd comment", "<!--><meta charset=koi8-r>", "koi8-r", "text/html", "Привет"),
    ("a meta beyond 1024 bytes", LONG + META.format("koi8-r"), "cp1252", "text/html", "Straße"),
    ("a meta that says UTF-16", META.format("utf-16le"), "utf-8", "text/html", "Straße"),
    ("ISO-8859-1 is windows-1252", "", "cp1252", "text/html; charset=ISO-8859-1", "“quoted” €"),
    ("Shift_JIS is windows-31J", META.format("Shift_JIS"), "cp932", "text/html", "①髙"),
    ("x-sjis is windows-31J", META.format("x-sjis"), "cp932", "text/html", "①髙"),
    ("GB2312 is GBK", META.format("gb2312"), "gbk", "text/html", "朱镕基"),
    ("an XML declaration", '<?xml version="1.0" encoding="koi8-r"?><html>', "koi8-r", "text/html", "Привет"),
]


@pytest.mark.parametrize(
    ("head", "encoding", "told", "text"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_the_text_is_what_a_browser_shows(head, encoding, told, text):
    assert name_in(page(text, head, encoding), told) == [text]


def test_a_character_cut_off_at_the_end_does_not_make_utf_8_another_encoding():
    assert name_in(page("Straße") + "é".encode()[:1]) == ["Straße"]
