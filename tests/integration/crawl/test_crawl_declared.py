"""Declared types in a crawl: what the declared syntax reads is kept, the rest are problems by their lines."""

import io
import zipfile

from pyoxigraph import RdfFormat, parse

LINE = b"<http://a.example/s%d> <http://a.example/p> <http://a.example/o> .\n"
LINES = [LINE % number for number in range(9)]
ODD = b"<alice> <http://a.example/p> <http://a.example/o> .\n"
LARGE = [LINE % number for number in range(6000)]
"""More than is read in the worker itself."""
NT, TTL = "application/n-triples", "text/turtle"


def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("_", "."), text)
    return file.getvalue()


DOCUMENTS = {
    # path: (body, declared type, N-Triples that are kept, what is told)
    "/relative": (b"<alice> <http://x/knows> <bob> .", TTL, None, None),
    "/odd": (b"".join([*LINES[:4], ODD, *LINES[4:]]), NT, b"".join(LINES), "line 5: "),
    "/ending.nt": (b"".join([*LINES[:4], ODD, *LINES[4:]]), "text/plain", b"".join(LINES), "line 5: "),
    "/large": (b"".join([*LARGE[:4], ODD, *LARGE[4:]]), NT, b"".join(LARGE), "line 5: "),
    "/member.zip": (zipped(data_nt=ODD + b"".join(LINES)), "application/zip", b"".join(LINES), "line 1: "),
    "/controls": (b'<x:s> <x:p> "\x01\x02\x03" .\n', NT, b'<x:s> <x:p> "\x01\x02\x03" .\n', None),
    "/spaced": (b'<x:s> <x:p> "Alice" @en .\n', NT, b'<x:s> <x:p> "Alice"@en .\n', None),
}


def test_a_declared_syntax_is_believed_and_what_it_does_not_read_is_told(tamias, site, reply):
    for path, (body, media_type, _, _) in DOCUMENTS.items():
        site.pages[path] = reply(200, body, Content_Type=media_type)
    done = tamias.crawl(*map(site.url, DOCUMENTS), "--depth", 0)
    assert done.returncode == 0, done.stderr
    found = list(parse("\n".join(tamias.quads()).encode(), format=RdfFormat.N_QUADS))
    attempts = tamias.attempts()
    for path, (body, _, kept, told) in DOCUMENTS.items():
        url = site.url(path)
        wanted = parse(kept or body, format=RdfFormat.TURTLE, base_iri=url)
        of_document = {quad.triple for quad in found if quad.graph_name.value.startswith(url)}
        assert of_document == {quad.triple for quad in wanted}, path
        (attempt,) = attempts[url]
        problem = attempt.get("problem", "")
        assert problem.startswith(told) if told else not problem, path
