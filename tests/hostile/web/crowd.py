"""Good hosts in a crowd of bombs and traps: ten hosts of thirty documents, a hostile one on each.

Every good document says known statements in one of ten formats, so a crawl is compared quad by quad.
"""

import bz2
import gzip
import itertools
import json
import lzma
import random
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial

import zstandard
from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, serialize

from benchmarks.webs.server import WireRequest, head
from tests.hostile.web.attacks.packed import Bomb, nested, overlapping, wide_zip, zeros_in
from tests.hostile.web.wire import Answer, drip, endless, made, redirect, silent, whole

HOSTS = 10
DOCUMENTS = 30
"""Of each good host, its first page included."""
ENDPOINTS = 122
TRAP = "/hostile"
"""Where the hostile document of a good host stands."""
ENDPOINT = "trap-sparql"
_PAGES_GIVEN = itertools.count()
_ROWS = 40
_READ_SLOWLY = (0, 1, 2, 3, 5, 6, 9, 11, 12, 13)
"""Of the hostile answers, those that come at once: a host is asked one thing at a time."""
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "flint")
_V = "http://vocabulary.test/"
Site = Mapping[str, Answer]
Packer = Callable[[bytes], bytes]


def good_names() -> list[str]:
    """The names of the good hosts."""
    return [f"crowd-{number}.test" for number in range(HOSTS)]


def good_sites() -> dict[str, Site]:
    """The good hosts, each with one hostile document."""
    return {name: _site(name, number) for number, name in enumerate(good_names())}


def expected() -> dict[str, frozenset[str]]:
    """What each good document says, as N-Quads in the graph of its URL."""
    return {
        _url(name, number): frozenset(
            str(Quad(each.subject, each.predicate, each.object, NamedNode(_url(name, number)))) + " ."
            for each in _statements(name, number)
        )
        for name in good_names()
        for number in range(DOCUMENTS)
    }


def hostile_sites(endpoints: int) -> dict[str, Site]:
    """Hosts with nothing good about them: so many bombs, one seed for each, and the traps."""
    pages: dict[str, dict[str, Answer]] = {}
    for number, (path, answer) in zip(range(endpoints), itertools.cycle(_hostile()), strict=False):
        pages.setdefault(f"bad-{number // 3}.test", {})[f"/{number}{path}"] = answer
    sites: dict[str, Site] = dict(pages)
    for name, make in TRAPS.items():
        sites[f"{name}.test"] = {"*": made(make, _trap_type(name))}
    return sites


def _trap_type(name: str) -> str:
    if name == ENDPOINT:
        return "application/sparql-results+json"
    return "text/turtle" if "ld" in name else "text/html"


def hostile_seeds(endpoints: int) -> list[str]:
    """One address for each endpoint."""
    return [
        f"{'sparql:' if name == f'{ENDPOINT}.test' else ''}http://{name}{'/' if path == '*' else path}"
        for name, site in hostile_sites(endpoints).items()
        for path in site
    ]


def _url(name: str, number: int) -> str:
    return f"http://{name}{_path(number)}"


def _path(number: int) -> str:
    return f"/{number}.{_FORMATS[number % len(_FORMATS)][0]}" if number else "/"


def _statements(name: str, number: int) -> list[Triple]:
    subject = NamedNode(f"{_url(name, number)}#it")
    said = [
        Triple(subject, NamedNode(f"{_V}p{row % 7}"), Literal(f"{name} {number} says {row}"))
        for row in range(_ROWS)
    ]
    if number:
        return said
    following = [_url(name, each) for each in range(1, DOCUMENTS)]
    return said + [
        Triple(subject, NamedNode(f"{_V}next"), NamedNode(each)) for each in [_trap(name), *following]
    ]


def _trap(name: str) -> str:
    return f"http://{name}{TRAP}"


def _site(name: str, number: int) -> dict[str, Answer]:
    pages: dict[str, Answer] = {TRAP: _hostile()[_READ_SLOWLY[number]][1]}
    for each in range(DOCUMENTS):
        _, media_type, write = _FORMATS[each % len(_FORMATS)] if each else _FORMATS[0]
        pages[_path(each)] = whole(write(_statements(name, each)), media_type)
    return pages


def _rdf(form: RdfFormat, triples: Iterable[Triple]) -> bytes:
    return serialize(triples, format=form) or b""


def _json_ld(triples: Iterable[Triple]) -> bytes:
    said: dict[str, dict[str, list[object]]] = {}
    for each in triples:
        assert isinstance(each.subject, NamedNode)
        assert isinstance(each.object, Literal)
        node = said.setdefault(each.subject.value, {})
        node.setdefault(each.predicate.value, []).append({"@value": each.object.value})
    return json.dumps([{"@id": subject, **node} for subject, node in said.items()]).encode()


def _page(triples: Iterable[Triple]) -> bytes:
    script = b'<script type="application/ld+json">' + _json_ld(triples) + b"</script>"
    return b"<!DOCTYPE html><title>good</title>" + script + b"<p>Good words.</p>" * 50


def _packed(pack: Packer, form: RdfFormat, triples: Iterable[Triple]) -> bytes:
    return pack(_rdf(form, triples))


_FORMATS: list[tuple[str, str, Callable[[Iterable[Triple]], bytes]]] = [
    ("ttl", "text/turtle", partial(_rdf, RdfFormat.TURTLE)),
    ("nt", "application/n-triples", partial(_rdf, RdfFormat.N_TRIPLES)),
    ("nq", "application/n-quads", partial(_rdf, RdfFormat.N_QUADS)),
    ("trig", "application/trig", partial(_rdf, RdfFormat.TRIG)),
    ("rdf", "application/rdf+xml", partial(_rdf, RdfFormat.RDF_XML)),
    ("jsonld", "application/ld+json", _json_ld),
    ("html", "text/html", _page),
    ("ttl.bz2", "application/x-bzip2", partial(_packed, bz2.compress, RdfFormat.TURTLE)),
    ("nt.gz", "application/gzip", partial(_packed, gzip.compress, RdfFormat.N_TRIPLES)),
    ("nq.xz", "application/x-xz", partial(_packed, lzma.compress, RdfFormat.N_QUADS)),
]


@cache
def quads_bomb() -> bytes:
    """12.5 MB of gzip that are 45 million statements: 170 times its size, a member repeated."""
    return _repeated(50, 12_500_000)


@cache
def steady_bomb() -> bytes:
    """2 MB of gzip that unpack to 60 times their size: statements, below any limit on the ratio."""
    return _repeated(15, 2_000_000)


def _repeated(times: int, size: int) -> bytes:
    chance = random.Random(times)
    lines = (
        f'<http://b.test/{number}> <http://b.test/p> "{chance.getrandbits(48):x}" .\n'.encode() * times
        for number in range(20_000)
    )
    member = gzip.compress(b"".join(lines), 9)
    return member * (size // len(member))


def _entities() -> str:
    levels = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 9))
    return (
        f"<!DOCTYPE rdf:RDF [<!ENTITY e0 'lol'>{levels}]>"
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='http://b.test/'>"
        "<rdf:Description rdf:about='http://b.test/'><p:x>&e8;</p:x></rdf:Description></rdf:RDF>"
    )


def _flat_rdf_xml() -> str:
    row = "<p:x>{}</p:x>"
    return (
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='http://b.test/'>"
        f"<rdf:Description rdf:about='http://b.test/'>{''.join(map(row.format, range(400_000)))}"
        "</rdf:Description></rdf:RDF>"
    )


def _large() -> str:
    return "".join(f'<http://b.test/{n}> <http://b.test/p> "{n * 7919}" .\n' for n in range(100_000))


@cache
def _hostile() -> list[tuple[str, Answer]]:
    """What is served over and over, under other addresses."""
    gz, turtle = "application/gzip", "text/turtle"
    ok = head(200, [("Content-Type", turtle)])
    return [
        (".nt.gz", Bomb(quads_bomb, gz)),
        (".nt.gz", Bomb(zeros_in(gzip.compress), gz)),
        (".nt.bz2", Bomb(zeros_in(bz2.compress), "application/x-bzip2")),
        (".nt.xz", Bomb(zeros_in(lambda data: lzma.compress(data, preset=0)), "application/x-xz")),
        (".nt.zst", Bomb(zeros_in(zstandard.ZstdCompressor().compress), "application/zstd")),
        (".nt.gz", Bomb(steady_bomb, gz)),
        (".zip", Bomb(wide_zip, "application/zip")),
        (".zip", Bomb(lambda: nested(6), "application/zip")),
        (".zip", Bomb(overlapping, "application/zip")),
        ("", Bomb(lambda: b"<div>" * 100_000, "text/html")),
        ("", Bomb(lambda: b"[" * 100_000, "application/ld+json")),
        ("", Bomb(lambda: b"<a> <b> " + b"[ <c> " * 200_000, turtle)),
        ("", whole(_entities(), "application/rdf+xml")),
        ("", Bomb(lambda: _flat_rdf_xml().encode(), "application/rdf+xml")),
        ("", Bomb(lambda: _large().encode(), "application/n-triples")),
        ("", drip(ok, b"#", 0.5)),
        ("", silent),
        ("", endless(ok, b"# without an end\n")),
        ("", redirect("/hostile")),
        (".nt.gz", Bomb(lambda: gzip.compress(_large().encode())[:-5000], gz)),
        (".gz", Bomb(lambda: b"\x1f\x8b\x08" + random.Random(3).randbytes(300_000), gz)),
        ("", Bomb(lambda: b'<a> <b> "' + b"x" * 8_000_000, turtle)),
    ]


def ld_chain(asked: WireRequest) -> str:
    """Linked Data whose every document names the next one."""
    number = int(asked.path.rpartition("/")[2] or 0)
    return f'<{asked.path}> <{_V}label> "Number {number}" ; <{_V}next> </{number + 1}>, </{2 * number + 5}> .'


def ld_paths(asked: WireRequest) -> str:
    """Linked Data whose paths grow, by words."""
    links = ", ".join(f"<http://trap-ld-paths.test{asked.path.rstrip('/')}/{word}>" for word in _WORDS[:4])
    return f'<> <{_V}label> "A place" ; <{_V}next> {links} .'


def growing_paths(asked: WireRequest) -> str:
    """Pages whose paths grow, by words."""
    links = "".join(f'<a href="{asked.path.rstrip("/")}/{word}">{word}</a>' for word in _WORDS)
    return f"<!DOCTYPE html><title>{asked.path}</title>{links}"


def growing_queries(asked: WireRequest) -> str:
    """Pages whose queries grow, by words."""
    before = f"{asked.query}&" if asked.query else ""
    links = "".join(f'<a href="/?{before}{word}={len(before)}">{word}</a>' for word in _WORDS)
    return f"<!DOCTYPE html><title>{asked.query}</title>{links}"


def endless_rows(_: WireRequest) -> str:
    """A SPARQL endpoint that answers whatever is asked with rows that nobody has seen before."""
    start = 100 * next(_PAGES_GIVEN)
    words = ["".join(chr(97 + int(digit)) for digit in str(start + row)) for row in range(100)]
    rows = [
        {
            "s": {"type": "uri", "value": f"urn:row:{word}"},
            "p": {"type": "uri", "value": f"{_V}label"},
            "o": {"type": "literal", "value": word},
        }
        for word in words
    ]
    return json.dumps({"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": rows}})


TRAPS: dict[str, Callable[[WireRequest], str]] = {
    "trap-ld-chain": ld_chain,
    "trap-ld-paths": ld_paths,
    "trap-grown-paths": growing_paths,
    "trap-grown-queries": growing_queries,
    ENDPOINT: endless_rows,
}
