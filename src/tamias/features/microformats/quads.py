"""Microformats as quads: the mapping that docs/microformats.md describes, from the canonical JSON."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tamias.analyse.markup.page import MarkupPage
from tamias.features.markup.statements import is_absolute, named_node
from tamias.features.microformats.items import microformats
from tamias.model.finding import Finding, Problem, Quads
from tamias.model.vocabulary import RDF_TYPE

BATCH = 1000
MAX_QUADS = 100_000
ROOM_PER_BYTE = 8
LEAST_ROOM = 1_000_000
MOST_ROOM = 20_000_000


def extract(page: MarkupPage) -> Iterator[Finding]:
    """The microformats of the page, unless they repeat its text beyond eight times its size."""
    room = min(MOST_ROOM, max(LEAST_ROOM, ROOM_PER_BYTE * len(page.data)))
    found, complete = microformats(page.tree, base=page.base, room=room)
    if not complete:
        yield Problem(f"microformats that repeat the page's text beyond {room} characters were not read")
    statements = quads(found, page.url)
    written = 0
    while batch := list(islice(statements, min(BATCH, MAX_QUADS - written))):
        yield Quads(batch)
        written += len(batch)
    if next(statements, None) is not None:
        yield Problem(f"only the first {MAX_QUADS} statements of the microformats were taken")


MF: Final = "https://w3id.org/tamias/mf#"
RDF_HTML: Final = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML")

HAS_ITEM: Final = NamedNode(MF + "hasItem")
HAS_CHILD: Final = NamedNode(MF + "hasChild")
HAS_VALUE: Final = NamedNode(MF + "hasValue")
HAS_ALT: Final = NamedNode(MF + "hasAlt")

_OF_POSTS = "syndication in-reply-to like-of repost-of bookmark-of follow-of listen-of watch-of read-of"
ADDRESSES: Final = frozenset(
    f"""url uid photo logo audio video featured sound email tel impp identifier principles item-license
    {_OF_POSTS} translation-of""".split()
)
"""Properties whose value is an IRI where it is one."""

_XFN = """friend acquaintance contact met co-worker colleague neighbor child parent sibling spouse kin muse
    crush date sweetheart me"""
RELATIONS: Final = frozenset(f"license tag {_XFN}".split())
"""The relations that are microformats by themselves."""

_NAMING = ("http://", "https://", "urn:")


def quads(found: dict[str, Any], url: str) -> Iterator[Quad]:
    """Yield the statements of the microformats of the page at `url`."""
    page = _iri(url)
    for item in found.get("items", []):
        node = _node(item)
        if page is not None:
            yield Quad(page, HAS_ITEM, node)
        yield from _item(item, node)
    if page is not None:
        for relation, addresses in found.get("rels", {}).items():
            if relation in RELATIONS:
                targets = (_iri(address) for address in addresses)
                yield from (Quad(page, NamedNode(f"{MF}rel_{relation}"), each) for each in targets if each)


def _item(item: dict[str, Any], node: NamedNode | BlankNode) -> Iterator[Quad]:
    for kind in item["type"]:
        yield Quad(node, RDF_TYPE, NamedNode(MF + kind))
    for name, values in item["properties"].items():
        for value in values:
            yield from _property(node, name, value)
    for child in item.get("children", []):
        inner = _node(child)
        yield Quad(node, HAS_CHILD, inner)
        yield from _item(child, inner)


def _property(node: NamedNode | BlankNode, name: str, value: Any) -> Iterator[Quad]:
    predicate = NamedNode(MF + name)
    if isinstance(value, str) or "type" not in value:
        yield from _plain(node, predicate, value, is_address=name in ADDRESSES)
        return
    inner = _node(value)
    yield Quad(node, predicate, inner)
    yield from _item(value, inner)
    if "value" in value:
        said = value if "html" in value else value["value"]
        yield from _plain(inner, HAS_VALUE, said, is_address=name in ADDRESSES)


def _plain(
    node: NamedNode | BlankNode, predicate: NamedNode, value: Any, *, is_address: bool
) -> Iterator[Quad]:
    """A value that is no item: text or address, content with its HTML, an image with its `alt`."""
    if isinstance(value, str):
        yield Quad(node, predicate, (_iri(value) if is_address else None) or Literal(value))
    elif "html" in value:
        yield Quad(node, predicate, Literal(value["html"], datatype=RDF_HTML))
        yield Quad(node, predicate, Literal(value["value"]))
    else:
        shown = _iri(value["value"]) or Literal(value["value"])
        yield Quad(node, predicate, shown)
        if isinstance(shown, NamedNode):
            yield Quad(shown, HAS_ALT, Literal(value["alt"]))


def _node(item: dict[str, Any]) -> NamedNode | BlankNode:
    """An item is named by its first `uid` that can name anything, and anonymous otherwise."""
    for uid in item["properties"].get("uid", []):
        if isinstance(uid, str) and uid.lower().startswith(_NAMING) and (named := _iri(uid)):
            return named
    return BlankNode()


def _iri(text: str) -> NamedNode | None:
    return named_node(text) if is_absolute(text) else None
