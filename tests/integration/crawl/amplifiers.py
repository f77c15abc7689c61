"""Small documents that become large: each names something once and uses it thousands of times.

`amplifiers` gives each with its path. None has more than some 256 KiB, as most of the Web.
"""

import bz2
import gzip
import io
import json
import lzma
import random
import tarfile
import zipfile

import brotli
import zstandard
from pyjelly import jelly
from pyjelly.serialize.ioutils import write_delimited
from pyoxigraph import Literal, NamedNode, Triple

from tamias.features.hdt.writer import write_hdt

LONG = "http://long.example/" + "x" * 60_000 + "/"
TIMES = 9000
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MIB = 1 << 20


def lines(template, times=TIMES):
    return "".join(template.format(number) for number in range(times))


def turtle():
    yield "prefix.ttl", f"@prefix p: <{LONG}> .\n" + lines("p:{} p:a p:b .\n")
    yield "base.ttl", f"@base <{LONG}> .\n" + lines("<{}> <a> <b> .\n")
    yield "growing-base.ttl", lines("@base <folder{}/> .\n<> <> <> .\n", 6000)
    yield "datatype.ttl", f"@prefix p: <{LONG}> .\n<> <a:p> " + lines("1, '{}'^^p:t, ") + "2 ."
    yield "subject.ttl", f"<{LONG}> <a:p> " + lines("{}, ", 20_000) + "2 ."
    yield "predicate.ttl", f"@prefix a: <a:> .\na:s <{LONG}> " + lines("{}, ", 20_000) + "2 ."
    yield "list.ttl", f"@prefix p: <{LONG}> .\n<> <a:p> (" + "p:\n" * 40_000 + ") ."
    yield "reified.ttl", f"@prefix p: <{LONG}> .\n" + lines("<< p:{} p:a p:b >> p:c p:d .\n", 6000)
    yield "annotated.ttl", f"@prefix p: <{LONG}> .\n" + lines("p:{} p:a p:b {{| p:c p:d |}} .\n", 6000)
    deep = "<<( <a:s> <a:p> " * 500 + "<a:o>" + " )>>" * 500
    yield "deep-terms.ttl", f"@prefix a: <a:> .\na:s a:p {deep}, " + ", ".join([deep] * 15) + " ."
    declared = lines("@prefix p{0}: <a:{0}> . ", 5000)
    faulty = "".join(
        "<a:s> <a:p> %s .\n" % ("<a:b" if number % 12 == 0 else number) for number in range(6000)
    )
    yield "faults-behind-prefixes.ttl", declared + "\n" + faulty
    yield "fault-at-the-end.ttl", f"@prefix p: <{LONG}> .\n" + lines("p:{} p:a p:b .\n") + "p:a p:b"
    yield "of-its-own-address.ttl?" + "y" * 1900, "<> <> " + "<>,\n" * 50_000 + "<> ."


def trig_and_lines():
    yield "prefix.trig", f"@prefix p: <{LONG}> .\n" + lines("p:{} {{ p:s p:a p:b }}\n")
    yield "graph.trig", f"<{LONG}> {{ <a:s> <a:p> " + lines("{}, ", 20_000) + "2 }"
    yield "graph-to-quote.trig", f"<a:{'ü' * 30_000}> {{ <a:s> <a:p> " + lines("{}, ", 20_000) + "2 }"
    yield "fault.trig", f"@prefix p: <{LONG}> .\n" + lines("p:{} {{ p:s p:a p:b }}\n", 6000) + "p:a {"
    yield "short.nt?" + "y" * 1900, "<a:a> <a:a> <a:a> .\n" * 12_000
    yield "graphs.nq", lines("<a:a> <a:a> <a:a> <b:{}> .\n", 7000)
    yield "prefix.n3", f"@prefix p: <{LONG}> .\n" + lines("p:{} p:a p:b .\n")
    yield (
        "formulas.n3",
        f"@prefix p: <{LONG}> .\n" + lines("p:{} p:a p:b .\n{{ p:s p:a p:b }} p:c p:d .\n", 4000),
    )
    yield "nested-formulas.n3", "{ <a:s> <a:p> " * 900 + "1" + " } <a:p> <a:o> ." * 900
    yield "paths.n3", f"@prefix p: <{LONG}> .\np:a" + "!p:b" * 30_000 + " p:c p:d ."
    yield "bases.n3", lines("@base <b{}/> .\n:a :b :c .\n", 6000)


def rdf_xml():
    start = f'<rdf:RDF xmlns:rdf="{RDF}" '
    about = '<rdf:Description rdf:about="{}" p:a="b"/>\n'
    yield "base.rdf", f'{start} xmlns:p="a:" xml:base="{LONG}">' + lines(about, 4000) + "</rdf:RDF>"
    yield "namespace.rdf", f'{start} xmlns:p="{LONG}">' + lines(about, 4000) + "</rdf:RDF>"
    entity = f'<!DOCTYPE rdf:RDF [<!ENTITY e "{LONG}">]>'
    yield (
        "entity.rdf",
        f'{entity}{start} xmlns:p="a:">' + lines(about.replace("{}", "&e;{}"), 4000) + "</rdf:RDF>",
    )
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))
    bomb = f'<!DOCTYPE rdf:RDF [<!ENTITY e0 "ha">{levels}]>'
    yield "laughs.rdf", f'{bomb}{start} xmlns:p="a:"><rdf:Description p:a="&e8;"/></rdf:RDF>'
    nested = "".join(f'<rdf:Description xml:base="folder{n}/"><p:a>' for n in range(450))
    unnested = "<rdf:Description rdf:about=''/>" + "</p:a></rdf:Description>" * 450
    yield "nested-bases.rdf", f'{start} xmlns:p="a:">{nested}{unnested}</rdf:RDF>'
    literal = '<rdf:Description><p:a rdf:parseType="Literal"><p:b/></p:a></rdf:Description>\n'
    yield "literals.rdf", f'{start} xmlns:p="{LONG}">' + literal * 2000 + "</rdf:RDF>"
    many = " ".join(f'xmlns:n{number}="a:{number}"' for number in range(2000))
    yield "many-namespaces.rdf", f'{start} xmlns:p="a:" {many}>' + literal * 2000 + "</rdf:RDF>"
    item = "<rdf:Description/>"
    yield (
        "collection.rdf",
        f'{start} xmlns:p="{LONG}"><rdf:Description><p:a rdf:parseType="Collection">'
        + item * 8000
        + "</p:a></rdf:Description></rdf:RDF>",
    )
    statement = '<p:a rdf:ID="i{}">b</p:a>\n'
    yield (
        "reified.rdf",
        f'{start} xmlns:p="a:" xml:base="{LONG}"><rdf:Description>'
        + lines(statement, 6000)
        + "</rdf:Description></rdf:RDF>",
    )
    yield (
        "language.rdf",
        f'{start} xmlns:p="a:" xml:lang="en{"-abcdefgh" * 6000}"><rdf:Description>'
        + "<p:a>b</p:a>" * 9000
        + "</rdf:Description></rdf:RDF>",
    )
    triple = "<triple><uri>a:s</uri><uri>a:p</uri><uri>a:o</uri></triple>"
    trix = "http://www.w3.org/2004/03/trix/trix-1/"
    yield "graph.trix", f'<TriX xmlns="{trix}"><graph><uri>{LONG}</uri>{triple * 3000}</graph></TriX>'
    value = '{"value": "a:o", "type": "uri"}, '
    yield "subject.rj", f'{{"{LONG}": {{"{LONG}": [{value * 4000}{value[:-2]}]}}}}'


def json_ld():
    def dump(document):
        return json.dumps(document, separators=(",", ":"))

    terms = {f"term{number}": f"http://e.example/{number}" for number in range(3000)}
    node = {"@id": "a:s", "name": "b"}
    yield "known-context.jsonld", dump([{"@context": "https://schema.org", **node}] * 4500)
    yield (
        "known-context-of-all-terms.jsonld",
        dump([{"@context": "https://schema.org", **node}] * 3000 + [dict.fromkeys(_schema_org_names(), 1)]),
    )
    yield "named-context.jsonld", dump([{"@context": "large-context.jsonld", **node}] * 3500)
    yield "named-in-rows.jsonld", dump({"@context": ["large-context.jsonld"] * 5000, **node})
    yield "empty-contexts.jsonld", dump({"@context": terms, "@graph": [{"@context": {}, "term1": 1}] * 4500})
    yield (
        "null-contexts.jsonld",
        dump([{"@context": [terms, None] * 2, "a:p": 1}, {"@context": [None] * 9000}]),
    )
    scoped = {"@id": "a:p", "@context": terms}
    yield "scoped-by-property.jsonld", dump({"@context": {"p": scoped}, "p": [{"p": 1}] * 9000})
    yield (
        "scoped-by-type.jsonld",
        dump({"@context": {"T": scoped}, "@graph": [{"@type": "T", "term1": 1}] * 4500}),
    )
    nested = {"p": {"@id": "a:p", "@context": {"p": {"@id": "a:p", "@context": terms}}}}
    yield "scoped-twice.jsonld", dump({"@context": nested, "p": [{"p": {"p": 1}}] * 9000})
    yield (
        "vocabulary.jsonld",
        dump({"@context": {"@vocab": LONG}, "@graph": [{"a": 1, "b": {"c": 2}}] * 5000}),
    )
    yield (
        "base.jsonld",
        dump({"@context": {"@base": LONG}, "@graph": [{"@id": "a", "a:p": {"@id": "b"}}] * 5000}),
    )
    yield (
        "prefix.jsonld",
        dump({"@context": {"p": LONG}, "@graph": [{"@id": "p:a", "p:b": {"@id": "p:c"}}] * 4000}),
    )
    yield "term.jsonld", dump({"@context": {"p": LONG}, "p": list(range(20_000))})
    yield (
        "datatype.jsonld",
        dump({"@context": {"p": {"@id": "a:p", "@type": LONG}}, "p": list(range(20_000))}),
    )
    yield "reverse.jsonld", dump({"@id": LONG, "@reverse": {"a:p": [{"@id": f"a:{n}"} for n in range(9000)]}})
    yield "list.jsonld", dump({"@context": {"p": LONG}, "a:p": {"@list": [{"p": 1}] * 12_000}})
    lists = {"@id": "a:p", "@container": "@list"}
    yield "lists-of-lists.jsonld", dump({"@context": {"p": lists}, "p": [[[[1]]]] * 15_000})
    yield (
        "index.jsonld",
        dump(
            {
                "@context": {"p": {"@id": LONG, "@container": "@index"}},
                "p": {f"i{n}": n for n in range(12_000)},
            }
        ),
    )
    indexed = {"@id": "a:p", "@container": "@index", "@index": LONG}
    yield (
        "property-index.jsonld",
        dump(
            {
                "@context": {"@version": 1.1, "p": indexed},
                "p": {f"i{n}": {"@id": f"a:{n}"} for n in range(7000)},
            }
        ),
    )
    yield (
        "languages.jsonld",
        dump({"@context": {"p": {"@id": LONG, "@container": "@language"}}, "p": {"en": ["a"] * 30_000}}),
    )
    yield (
        "ids.jsonld",
        dump(
            {
                "@context": {"@base": LONG, "p": {"@id": "a:p", "@container": "@id"}},
                "p": {f"i{n}": {"a:q": 1} for n in range(7000)},
            }
        ),
    )
    yield "graph.jsonld", dump({"@id": LONG, "@graph": [{"@id": "a:s", "a:p": list(range(20_000))}]})
    yield (
        "included.jsonld",
        dump({"@context": {"@vocab": LONG}, "@included": [{"@id": "a:s", "p": 1}] * 6000}),
    )
    yield (
        "nested-terms.jsonld",
        dump(
            {
                "@context": {"@vocab": LONG, "n": "@nest"},
                "n": [{"n": {"n": {"p": number}}} for number in range(6000)],
            }
        ),
    )
    yield "types.jsonld", dump({"@context": {"@vocab": LONG}, "@type": [f"T{n}" for n in range(15_000)]})
    yield (
        "aliases.jsonld",
        dump(
            {
                "@context": {f"a{n}": f"a{n + 1}:x" for n in range(4000)} | {"a4000": "http://e.example/"},
                "a0:b": 1,
            }
        ),
    )
    yield (
        "difficult.jsonld",
        dump(
            {
                "@context": {**terms, "p": {"@id": "a:p", "@container": "@type"}},
                "@graph": [{"@context": {}, "p": {"T": {"term1": 1}}} for _ in range(2500)],
            }
        ),
    )


def _schema_org_names():
    from tamias.analyse.jsonld.contexts import known

    return list(known("https://schema.org").terms)[:2000]


def pages():
    head = "<!DOCTYPE html><title>x</title>"
    yield (
        "rdfa-prefix.html",
        f'{head}<div prefix="p: {LONG}" about="a:s">' + lines('<i property="p:{}">a</i>', 6000),
    )
    yield (
        "rdfa-vocab.html",
        f'{head}<div vocab="{LONG}" about="a:s">' + lines('<i property="p{}">a</i>', 6000),
    )
    yield (
        "rdfa-rows.html",
        f'{head}<div about="a:s"><p property="{lines("a:p{} ", 8000)}" content="{"x" * 60_000}">',
    )
    both = lines("a:p{} ", 5000)
    yield (
        "rdfa-relations.html",
        f'{head}<div about="a:s" rel="{both}" rev="{both}">' + lines('<b about="a:{}"></b>', 4000),
    )
    yield "rdfa-types.html", f"{head}" + f'<div about="a:s" typeof="{lines("a:T{} ", 4000)}"></div>' * 4
    yield "rdfa-texts.html", head + '<div property="a:p">some words ' * 900 + "x" * 100_000
    yield (
        "rdfa-literals.html",
        head + f'<div property="a:p" datatype="rdf:XMLLiteral" prefix="q: {LONG}">some ' * 3,
    )
    yield "rdfa-list.html", f'{head}<div about="{LONG}">' + '<i property="a:p" inlist content="b"></i>' * 5000
    yield (
        "rdfa-about.html",
        f'{head}<div about="{LONG}">' + lines('<i property="a:p" content="{}"></i>', 5500),
    )
    shared = "<div id=s>" + lines("<i itemprop=p{}>some words</i>", 3000) + "</div>"
    item = "<div itemscope itemref=s></div>"
    yield "microdata-references.html", f"{head}{shared}{item * 4000}"
    doubling = lines('<div id="i{0}" itemprop="p" itemscope itemref="j{0} k{0}"></div>', 1)
    chain = "".join(
        f'<div id="i{n}" itemprop="a:p" itemscope itemref="i{n + 1} j{n + 1}"></div>'
        f'<div id="j{n}" itemprop="a:q" itemscope itemref="i{n + 1} j{n + 1}"></div>'
        for n in range(1000)
    )
    yield "microdata-doubling.html", f"{head}{doubling}<div itemscope itemref=i0></div>{chain}"
    yield (
        "microdata-texts.html",
        head + "<div itemscope>" + "<div itemprop=p>some words " * 900 + "x" * 100_000,
    )
    yield (
        "microdata-type.html",
        f'{head}<div itemscope itemtype="{LONG}#T">' + lines("<i itemprop=p{}>a</i>", 6000),
    )
    yield "microformats.html", head + '<div class="h-entry p-name">some words ' * 900 + "x" * 100_000
    yield "base.html", f'{head}<base href="/{"x" * 8000}/">' + lines("<a href=p{}>a</a>", 12_000)
    yield "entities.html", head + "<p>" + "&CounterClockwiseContourIntegral;" * 7000
    yield "formatting.html", head + ("<b><i><u>" + "<p>") * 3000
    yield "attributes.html", head + "<p " + lines("a{} ", 25_000) + ">"
    script = '<script type="application/ld+json">{"@context":"https://schema.org","name":"a"}</script>'
    yield "scripts.html", head + script * 3000
    names = json.dumps(dict.fromkeys(_schema_org_names(), 1) | {"@context": "https://schema.org"})
    yield (
        "script-of-all-terms.html",
        f"{head}{script * 2000}<script type='application/ld+json'>{names}</script>",
    )
    entity = f'<!DOCTYPE html [<!ENTITY e "{"x" * 60_000}">]>'
    yield (
        "entities.xhtml",
        f'{entity}<html xmlns="http://www.w3.org/1999/xhtml"><body>'
        + "<p property='a:p'>&e;</p>" * 5000
        + "</body></html>",
    )


def feeds_and_sitemaps():
    entity = f'<!DOCTYPE x [<!ENTITY e "{LONG}">]>'
    urls = lines("<url><loc>&e;{}</loc></url>", 8000)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    yield "sitemap-entity.xml", f'{entity}<urlset xmlns="{space}">{urls}</urlset>'
    alternates = '<xhtml:link rel="alternate" hreflang="en" href="/a{}"/>'
    yield (
        "sitemap-alternates.xml",
        f'<urlset xmlns="{space}" xmlns:xhtml="http://www.w3.org/1999/xhtml"><url><loc>/</loc>'
        + lines(alternates, 4000)
        + "</url></urlset>",
    )
    entry = "<entry><id>a:{0}</id><link href='{0}'/></entry>"
    yield (
        "feed-base.atom",
        f'<feed xmlns="http://www.w3.org/2005/Atom" xml:base="{LONG}">{lines(entry, 4000)}</feed>',
    )
    yield (
        "feed-entity.atom",
        f'{entity}<feed xmlns="http://www.w3.org/2005/Atom">'
        + lines("<entry><link href='&e;{}'/></entry>", 4000)
        + "</feed>",
    )
    items = lines("<item><link>&e;{}</link></item>", 5000)
    yield "feed.rss", f'{entity}<rss version="2.0"><channel>{items}</channel></rss>'


def packed():
    """Bodies that unpack to much; all but the last to the Turtle that becomes large once more."""
    small = turtle_of_zeros = b"<a:s> <a:p> 0 .\n"
    much = small * (20 * MIB // len(small))
    yield "zeros.ttl.gz", gzip.compress(much)
    yield "zeros.ttl.bz2", bz2.compress(much[: len(much) // 20]) * 20
    yield "zeros.ttl.xz", lzma.compress(much, preset=0)
    yield "zeros.ttl.zst", zstandard.compress(much)
    yield "zeros.ttl.br", brotli.compress(much, quality=1)
    yield "gz-in-gz.ttl.gz", gzip.compress(gzip.compress(bytes(100 * MIB)))
    prefix = dict(turtle())["prefix.ttl"].encode()
    yield "prefix.ttl.gz", gzip.compress(prefix)
    yield "prefixes.zip", _zipped({f"{number}.ttl": prefix for number in range(40)})
    yield "members.zip", _zipped({f"{number}.ttl": turtle_of_zeros for number in range(1500)})
    yield "zip-in-zip.zip", _zipped({"a.zip": _zipped({"b.zip": _zipped({"c.ttl": much})})})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for number in range(60):
            member = tarfile.TarInfo(f"{number}.ttl")
            member.size = len(prefix)
            archive.addfile(member, io.BytesIO(prefix))
    yield "prefixes.tar.gz", out.getvalue()
    yield "shared-text.xlsx", _workbook()
    yield "repeated.ods", _spreadsheet()


def _zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return out.getvalue()


def _workbook():
    main, office = (
        "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
        "http://schemas.openxmlformats.org",
    )
    rows = "".join(f'<row r="{n}">' + '<c t="s"><v>0</v></c>' * 200 + "</row>" for n in range(1, 3000))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types"/>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}/officeDocument/2006/relationships">'
        '<sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{office}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument/2006/relationships/worksheet"'
        ' Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{main}"><si><t>{"x" * 32_000}</t></si></sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    return _zipped(parts)


def _spreadsheet():
    urn = "urn:oasis:names:tc:opendocument:xmlns:"
    content = (
        f'<office:document-content xmlns:office="{urn}office:1.0" xmlns:table="{urn}table:1.0"'
        f' xmlns:text="{urn}text:1.0"><office:body><office:spreadsheet><table:table table:name="a">'
        '<table:table-row table:number-rows-repeated="1000000"><table:table-cell office:value-type="string"'
        f' table:number-columns-repeated="16000"><text:p>{"x" * 1000}</text:p></table:table-cell>'
        "</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"
    )
    return _zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": content})


def binary():
    values = Literal("x" * 30_000)
    out = io.BytesIO()
    write_hdt(
        [Triple(NamedNode(f"urn:{number}"), NamedNode("urn:p"), values) for number in range(2000)],
        out, name="urn:x", most=10**6,
    )  # fmt: skip
    yield "literal.hdt", out.getvalue()
    options = jelly.RdfStreamOptions(
        physical_type=jelly.PHYSICAL_STREAM_TYPE_QUADS,
        max_name_table_size=100, max_prefix_table_size=10, max_datatype_table_size=10, version=1,
    )  # fmt: skip
    long = jelly.RdfLiteral(lex="x" * 100_000)
    first = jelly.RdfQuad(s_bnode="a", p_iri=jelly.RdfIri(name_id=1), o_literal=long, g_bnode="g")
    rows = [
        jelly.RdfStreamRow(options=options),
        jelly.RdfStreamRow(name=jelly.RdfNameEntry(value="urn:p")),
        jelly.RdfStreamRow(quad=first),
        *[jelly.RdfStreamRow(quad=jelly.RdfQuad(s_bnode="a"))] * 9000,
    ]
    out = io.BytesIO()
    write_delimited(jelly.RdfStreamFrame(rows=rows), out)
    yield "repeated.jelly", out.getvalue()
    yield "wide.csv", (",".join(["a"] * 60_000) + "\n" + "," * 59_999 + "\n").encode()
    yield "rows.csv", b"a,b\n" + b",\n" * 120_000
    yield "random.csv", random.Random(1).randbytes(200_000).hex().encode()[:250_000]


def large_context():
    """What `named-context.jsonld` names: a context of nearly a mebibyte."""
    terms = {f"term{number}": f"http://e.example/{number}" for number in range(20_000)}
    return json.dumps({"@context": {**terms, "name": "a:name"}}).encode()


def amplifiers():
    """All of them: what is asked for, and the bytes that are given."""
    made = (turtle, trig_and_lines, rdf_xml, json_ld, pages, feeds_and_sitemaps, packed, binary)
    for each in made:
        for name, content in each():
            yield name, content.encode() if isinstance(content, str) else content


TYPES = {
    "ttl": "text/turtle",
    "trig": "application/trig",
    "nt": "application/n-triples",
    "nq": "application/n-quads",
    "n3": "text/n3",
    "rdf": "application/rdf+xml",
    "trix": "application/trix",
    "rj": "application/rdf+json",
    "jsonld": "application/ld+json",
    "html": "text/html",
    "xhtml": "application/xhtml+xml",
    "xml": "application/xml",
    "atom": "application/atom+xml",
    "rss": "application/rss+xml",
    "csv": "text/csv",
    "hdt": "application/vnd.hdt",
    "jelly": "application/x-jelly-rdf",
}


def media_type(name):
    """The type that a server would give it."""
    ending = name.partition("?")[0].rpartition(".")[2]
    return TYPES.get(ending, "application/octet-stream")
