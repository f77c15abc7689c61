"""Pages: their links, by selectolax, on every one; structured data where the bytes show that there is any.

Links come in document order, each once, as they stand.
"""

import codecs
import re
from collections.abc import Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tamias.analyse.chunks import RefusedError
from tamias.analyse.html.requisites import requisites
from tamias.analyse.jsonld.contexts import Contexts
from tamias.analyse.links.discovery import KINDS
from tamias.analyse.markup.page import XML, MarkupPage, extracted
from tamias.content.formats import read_by
from tamias.model.document import Document
from tamias.model.errors import UrlError
from tamias.model.finding import Finding, Links, Problem, Worded, Words
from tamias.model.kind import REFRESH
from tamias.model.site import Metas
from tamias.model.url import authority, resolve
from tamias.protocols import PageRules
from tamias.settings import AnalyseSettings

LONGEST_ANCHOR = 200
LONGEST_CONTEXT = 200
LONGEST_LANGUAGE = 35
MOST_ANCHORS = 5000
_NEAR = 4 * LONGEST_CONTEXT
"""Characters that are looked at for a context: spaces may be many."""
_BREAK = "\x1e"
"""Between two paragraphs."""
_INLINE = frozenset(
    b"a abbr b bdi bdo big cite code del dfn em font i img ins kbd mark q s samp small span strike strong sub"
    b" sup time tt u var wbr".decode().split()
)
_SILENT = frozenset({"script", "style", "noscript", "template", "textarea", "title", "svg"})
_UNBROKEN = _INLINE | _SILENT
_LEAVES = _SILENT | {"-text"}
_SPACE = re.compile(r"\s+")


def anchored(page: LexborHTMLParser) -> dict[str, Words]:
    """The words of a page's links, by their references as they stand."""
    if page.body is None:
        return {}
    text, spans = _read(page.body)
    language = _language(page.root.attrs.get("lang") if page.root else None)
    found: dict[str, Words] = {}
    for reference, start, end, its_language in spans:
        before = found.get(reference)
        if before is not None and before.anchor:
            before.count += 1
            continue
        found[reference] = Words(
            anchor=_plain(text[start : min(end, start + _NEAR)])[:LONGEST_ANCHOR],
            left=_plain(text[max(0, start - _NEAR) : start].rpartition(_BREAK)[2])[-LONGEST_CONTEXT:],
            right=_plain(text[end : end + _NEAR].partition(_BREAK)[0])[:LONGEST_CONTEXT],
            language=_language(its_language) or language,
            count=before.count + 1 if before else 1,
        )
    return found


def links_with_words(links: Links, words: dict[str, Words]) -> Links:
    """The same links, with their words."""
    return Links(Worded(links.references, words), links.base, links.kind)


Span = tuple[str, int, int, str | None]
"""A reference, from where to where its anchor stands in the text, and the language it names."""


def _read(body: LexborNode) -> tuple[str, list[Span]]:
    """Return the text of the body and the spans of its links, without recursion: pages may be deep."""
    pieces: list[str] = []
    spans: list[Span] = []
    length = 0
    stack: list[tuple[LexborNode, int, bool]] = [(body, 0, False)]
    while stack and len(spans) < MOST_ANCHORS:
        node, start, leaving = stack.pop()
        tag = node.tag or ""
        if tag == "-text":
            piece = node.text_content or ""
        else:
            piece = "" if tag in _UNBROKEN or tag.startswith("-") else _BREAK
        if leaving and tag in ("a", "area"):
            attributes = node.attrs
            reference = (attributes.get("href") or "").strip()
            if reference:
                spans.append((reference, start, length, attributes.get("hreflang")))
        pieces.append(piece)
        length += len(piece)
        if not leaving and tag not in _LEAVES:
            stack.append((node, length, True))
            child = node.last_child
            while child is not None:
                stack.append((child, 0, False))
                child = child.prev
    return "".join(pieces), spans


def _plain(text: str) -> str:
    return _SPACE.sub(" ", text.replace(_BREAK, " ").replace("\0", "")).strip()


def _language(attribute: str | None) -> str | None:
    """A language tag in lower case.

    >>> _language(" fr-CA ")
    'fr-ca'
    """
    return (attribute or "").strip().lower()[:LONGEST_LANGUAGE] or None


_GENERATORS = {"ckan": "ckan", "dkan": "dkan", "udata": "udata", "opendatasoft": "opendatasoft"}
"""The first word of `<meta name=generator>`; Drupal's own says nothing of data."""

_MARKS = (
    (b"hubcdn.arcgis.com", "arcgis"),
    (b"/dkan/", "dkan"),
    (b"dv_rebind_bootstrap_ui", "dataverse"),
    (b"data-invenio-config", "zenodo"),
    (b'ng-app="ods.', "opendatasoft"),
    (b"udata-front", "udata"),
)
_SOCRATA = b"window.socrata"
"""Stands in a script at the beginning."""
_BEGINNING = 16_384
_CKAN_ROOT = "body[data-site-root]"
_WORD = re.compile(r"[a-z]+")


def portal_links(page: MarkupPage, parsed: LexborHTMLParser, generators: list[str]) -> list[Links]:
    """The root of the portal that made a page, with its kind; usually none."""
    markup = page.markup
    kinds: dict[str, None] = {}
    for mark, kind in _MARKS:
        if mark in markup:
            kinds[kind] = None
    if page.data.find(_SOCRATA, 0, _BEGINNING) >= 0:
        kinds["socrata"] = None
    for generator in generators:
        word = _WORD.match(generator.strip().lower())
        if word and word[0] in _GENERATORS:
            kinds[_GENERATORS[word[0]]] = None
    return [Links([_root(page, parsed, kind)], page.url, kind) for kind in kinds]


def _root(page: MarkupPage, parsed: LexborHTMLParser, kind: str) -> str:
    """The top of the host; a CKAN further down says where, and is believed of its own host."""
    body = parsed.css_first(_CKAN_ROOT) if kind == "ckan" else None
    if body is None:
        return "/"
    try:
        root = resolve((body.attrs.get("data-site-root") or "/").strip(), page.url)
        return root if authority(root) == authority(page.url) else "/"
    except UrlError:
        return "/"


_LINKING = "a[href],area[href],link[href],iframe[src],frame[src]"
_NOWHERE = ("#", "javascript:", "mailto:", "tel:", "data:")
_LOOKS = frozenset({"stylesheet", "icon", "mask-icon", "apple-touch-icon", "manifest", "pingback"})
_HINTS = frozenset({"preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch"})
_FURNITURE = _LOOKS | _HINTS | {"nofollow"}
"""What a link is not followed for: refused by the page, or part of its looks."""
_ROBOTS = ("robots", "tamias")
_SIGNALS = frozenset({*_ROBOTS, "tdm-reservation", "tdm-policy"})
_META_WORDS = (b"&", b"robots", b"generator", b"tdm-", b"tamias")
"""In the name of each meta that is read is one of these; the first where it is not written in letters."""
_MOST_METAS = 100
_LONGEST_META = 8192
_FEW_TAGS = 2000
"""Up to here even the worst formatting takes about 200 MB."""
_MANY_TAGS = 8000
"""Up to here even the worst nesting is parsed in a tenth of a second."""
_COPY_WEIGHT = 40
"""An open formatting element is copied into every paragraph: 370 bytes each, where depth costs 2 ns."""

_FORMATTING = re.compile(rb"(?i)<(?:b|i|u|s|em|tt|big|code|font|nobr|small|strike|strong)[\s/]")
_SHORT_PAGE = 16_384
"""Its tags have a few thousand attributes at most."""
_REFRESH = re.compile(r"(?is)\s*[0-9.]+(?:\s*[;,]\s*|\s+)(?:url\s*=\s*)?(.+)")
_QUOTED = re.compile(rb"""\"[^"]*+"|'[^']*+'""")
_TAG = re.compile(rb"<(/?)([A-Za-z][^\s/>]{0,20})")
_FORMATTING_TAGS = frozenset(b"b i u s em tt big code font nobr small strike strong".split())
_UNCLOSED = frozenset(
    b"area base br col embed hr img input link meta source track wbr param"
    b" p li dt dd tr td th thead tbody tfoot colgroup option optgroup rp rt html head body a".split()
)
"""Elements without an end tag, or that the next of their kind ends."""
_LONGEST_BASE = 8192
"""Every reference would be made as long."""
FALLBACK = "cp1252"
_BROWSER_NAMES = {
    **dict.fromkeys(("iso8859-1", "ascii", "latin-1"), "cp1252"),
    **dict.fromkeys(("iso8859-11", "tis-620"), "cp874"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""What browsers read in place of an encoding that it extends (Encoding Standard, section 4.2)."""


class HtmlAnalyser:
    """Reads links and structured data of HTML and XHTML, and RDFa in any other XML."""

    media_types = read_by(__name__)

    def __init__(
        self,
        limits: AnalyseSettings | None = None,
        rules: Sequence[PageRules] = (),
        contexts: Contexts | None = None,
        *,
        anchors: bool = False,
        requisites: bool = False,
    ) -> None:
        """`contexts` gives the remote JSON-LD contexts at hand; with `anchors`, links have their words.

        With `requisites`, what pages need to be shown is found, too.
        """
        self._anchors = anchors
        self._requisites = requisites
        self._limits = limits or AnalyseSettings()
        self._rules = rules
        self._contexts = contexts

    def analyse(self, document: Document) -> Iterator[Finding]:
        data = document.stream.read(self._limits.html_bytes)
        if document.stream.read(1):
            yield Problem(
                f"only the first {len(data)} bytes of the page were read (limit analyse.html_bytes)"
            )
        page = MarkupPage(
            _utf8(data, document.charset, is_page=document.media_type not in XML),
            url=document.base,
            base=document.base,
            media_type=document.media_type,
            entity_bytes=self._limits.entity_bytes,
            contexts=self._contexts,
            budget=document.budget,
        )
        try:
            _check_tags(page, self._limits.html_nesting)
            if not page.is_xml:
                check_nesting(page.data, self._limits.html_nesting)
        except RefusedError as refusal:
            yield Problem(str(refusal))
            return
        if not page.is_xml:
            yield from self._seen(page)
        yield from extracted(page)
        for book in self._rules:
            if book.applies(page.url):
                yield from book.extract(page.url, page.data, base=page.base)

    def _read_links(self, page: MarkupPage, parsed: LexborHTMLParser) -> Iterator[Finding]:
        with_words = anchored(parsed) if self._anchors else {}
        for links in _links(parsed, page.base):
            yield links_with_words(links, with_words) if with_words else links

    def _seen(self, page: MarkupPage) -> Iterator[Finding]:
        """Yield metas and links as a browser sees them, and set the page's base."""
        parsed = page.parsed
        # Each look at all elements takes longer than a look whether there can be such a tag.
        metas = _metas(parsed) if _has_telling_meta(page.markup) else []
        signals = [(name, content) for name, content in metas if name in _SIGNALS]
        if signals:
            yield Metas(signals[:_MOST_METAS])
        if b"<base" in page.markup:
            page.base = _base(parsed, page.base)
        if any(book.narrows(page.url) for book in self._rules):
            return
        if _forbids_following(metas):
            yield Links([], page.base)
            return
        if b"http-equiv" in page.markup and (target := _refresh(parsed)) is not None:
            yield Links([target], page.base, REFRESH)
        if self._requisites:
            yield requisites(parsed, page.base)
        yield from self._read_links(page, parsed)
        yield from portal_links(page, parsed, [content for name, content in metas if name == "generator"])


def _utf8(page: bytes, charset: str | None, *, is_page: bool) -> bytes:
    """The text in UTF-8; of a page that declares no encoding and is no UTF-8, as browsers take it."""
    if charset is None and is_page and not _may_be_utf8(page):
        charset = FALLBACK
    if charset in (None, "utf-8"):
        return page.removeprefix(codecs.BOM_UTF8)
    charset = charset or "utf-8"
    text = page.decode(_BROWSER_NAMES.get(charset, charset), "replace")
    return text.removeprefix("\ufeff").encode("utf-8", "replace")


def _may_be_utf8(page: bytes) -> bool:
    """Return whether a page is UTF-8, its cut end apart (HTML standard, 13.2.3.2, step 7)."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(page)
    except UnicodeDecodeError:
        return False
    return True


def _has_telling_meta(markup: bytes) -> bool:
    for word in _META_WORDS:  # noqa: SIM110 - every page passes here, and a generator costs more than a search
        if word in markup:
            return True
    return False


def _metas(page: LexborHTMLParser) -> list[tuple[str, str]]:
    return [
        ((meta.attrs.get("name") or "").strip().lower(), (meta.attrs.get("content") or "")[:_LONGEST_META])
        for meta in page.css("meta[name]")
    ]


def _refresh(page: LexborHTMLParser) -> str | None:
    """Return the target of the first `<meta http-equiv=refresh>`, unless it only loads the page again."""
    for meta in page.css("meta[http-equiv]"):
        if (meta.attrs.get("http-equiv") or "").strip().lower() == "refresh":
            found = _REFRESH.match((meta.attrs.get("content") or "")[:_LONGEST_META])
            target = found[1].strip() if found else ""
            quote = target[:1]
            if quote in ("'", '"'):
                target = target[1:].partition(quote)[0].strip()
            return None if not target or target.startswith(_NOWHERE) else target
    return None


def _links(page: LexborHTMLParser, base: str) -> Iterator[Links]:
    """Yield the links without a kind, even if there are none, then those of each kind."""
    plain: dict[str, None] = {}
    found: dict[str | None, dict[str, None]] = {None: plain}
    for node in page.css(_LINKING):
        attributes = node.attributes
        reference = (attributes.get("href") or attributes.get("src") or "").strip()
        if not reference or reference.startswith(_NOWHERE):
            continue
        relation = attributes.get("rel")
        if not relation:
            plain[reference] = None
        elif _FURNITURE.isdisjoint(relation.lower().split()):
            # `<a rel=sitemap>` mostly leads to a page.
            kinds = map(KINDS.get, relation.lower().split()) if node.tag == "link" else ()
            kind = next(filter(None, kinds), None)
            found.setdefault(kind, {})[reference] = None
    for kind, references in found.items():
        yield Links(list(references), base, kind)


def _forbids_following(metas: list[tuple[str, str]]) -> bool:
    said = [content.lower().replace(",", " ").split() for name, content in metas if name in _ROBOTS]
    return any("nofollow" in words or "none" in words for words in said)


def _base(page: LexborHTMLParser, url: str) -> str:
    """The first `<base href>`, unless it is not a web address."""
    node = page.css_first("base[href]")
    if node is None:
        return url
    try:
        base = resolve((node.attrs.get("href") or "").strip(), url)
    except UrlError:
        return url
    return base if base.startswith(("http:", "https:", "ftp:")) and len(base) <= _LONGEST_BASE else url


def _check_tags(page: MarkupPage, limit: int) -> None:
    """Refuses a page with a tag of so many attributes that comparing each with each would take too long."""
    if len(page.data) <= _SHORT_PAGE or max(map(len, page.tags), default=0) <= _SHORT_PAGE:
        return
    for tag in page.tags:
        if len(tag) > _SHORT_PAGE:
            attributes = len(_QUOTED.sub(b" ", tag).replace(b"/", b" ").split())
            if attributes * attributes > limit:
                raise RefusedError(
                    f"a tag with about {attributes} attributes (limit analyse.html_nesting), not read"
                )


def check_nesting(page: bytes, limit: int) -> None:
    """Refuse a page on which the parser's work would grow with the square of its size."""
    tags = page.count(b"<")
    if tags <= _FEW_TAGS:
        return
    if tags <= _MANY_TAGS and _COPY_WEIGHT * tags * len(_FORMATTING.findall(page)) <= limit:
        return
    depth, formatting = _deepest(page)
    if tags * max(depth, _COPY_WEIGHT * formatting) > limit:
        raise RefusedError(
            f"{tags} tags nested up to {max(depth, formatting)} deep (limit analyse.html_nesting), not read"
        )


def _deepest(page: bytes) -> tuple[int, int]:
    """Estimate how many elements, and how many formatting elements, are open at once at most."""
    depth = deepest = formatting = most = 0
    for slash, name in _TAG.findall(page):
        tag = name.lower()
        if tag in _UNCLOSED:
            continue
        step = -1 if slash else 1
        depth = max(0, depth + step)
        deepest = max(deepest, depth)
        if tag in _FORMATTING_TAGS:
            formatting = max(0, formatting + step)
            most = max(most, formatting)
    return deepest, most
