"""A Fuseki, a dump and a Linked Data site that declare each other: `where` and `read --one` find all."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pyoxigraph import RdfFormat, parse
from servers import fuseki

SITEMAP = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
        xmlns:sc="http://sw.deri.org/2007/07/sitemapextension/scschema.xsd">
  <sc:dataset>
    <sc:datasetLabel>Chipmunks</sc:datasetLabel>
    <sc:datasetURI>{base}/void.ttl#chipmunks</sc:datasetURI>
    <sc:linkedDataPrefix slicing="subject">{base}/resource/</sc:linkedDataPrefix>
    <sc:sampleURI>{base}/resource/tamias</sc:sampleURI>
    <sc:sparqlEndpointLocation slicing="subject-object">{endpoint}</sc:sparqlEndpointLocation>
    <sc:sparqlGraphName>{base}/graphs/chipmunks</sc:sparqlGraphName>
    <sc:dataDumpLocation>{base}/dump.nt</sc:dataDumpLocation>
    <changefreq>weekly</changefreq>
  </sc:dataset>
</urlset>
"""
VOID = (
    "<{base}/void.ttl#chipmunks> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    " <http://rdfs.org/ns/void#Dataset> .\n"
    '<{base}/void.ttl#chipmunks> <http://rdfs.org/ns/void#uriSpace> "{base}/resource/" .\n'
    "<{base}/void.ttl#chipmunks> <http://rdfs.org/ns/void#sparqlEndpoint> <{endpoint}> .\n"
    "<{base}/void.ttl#chipmunks> <http://rdfs.org/ns/void#dataDump> <{base}/dump.nt> .\n"
)
NAMES = ("tamias", "striatus", "sibiricus")


@pytest.fixture
def site():
    """`site.pages` by path, each a body and a type; `site.base` is where they are."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body, media_type = self.server.pages.get(self.path, (b"", ""))
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", media_type or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.2", 0), Handler)
    server.pages = {}
    server.base = f"http://127.0.0.2:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def tamias(verb, data, *words):
    command = [sys.executable, "-m", "tamias", verb, "--data", str(data), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def publish(site, endpoint):
    """The same statements in the Fuseki, in the dump and in the documents; each says where the others are."""
    base = site.base
    about = {
        name: f"<{base}/resource/{name}> <http://e/eats> <http://e/nuts> .\n"
        f'<{base}/resource/{name}> <http://e/called> "{name}" .\n'
        for name in NAMES
    }
    void = VOID.format(base=base, endpoint=endpoint)
    site.pages |= {f"/resource/{name}": (text.encode(), "text/turtle") for name, text in about.items()}
    site.pages["/robots.txt"] = (f"Sitemap: {base}/sitemap.xml\n".encode(), "text/plain")
    site.pages["/sitemap.xml"] = (SITEMAP.format(base=base, endpoint=endpoint).encode(), "application/xml")
    site.pages["/dump.nt"] = (("".join(about.values()) + void).encode(), "application/n-triples")
    site.pages["/void.ttl"] = (void.encode(), "text/turtle")
    lines = ("".join(about.values()) + void).splitlines()
    return "".join(f"{line[:-2]} <{base}/graphs/chipmunks> .\n" for line in lines), about


def test_where_names_the_endpoint_the_dump_the_document_and_our_own_copy(started, site, tmp_path):
    if not os.environ.get("TAMIAS_NIGHTLY"):
        pytest.skip(
            "run by `make nightly`; tests/integration/crawl/test_declared_datasets.py is the short form"
        )
    server = started(fuseki, "Fuseki", required=True)
    quads, about = publish(site, server.url)
    (tmp_path / "data.nq").write_text(quads)
    server.load(tmp_path / "data.nq")
    base, data = site.base, tmp_path / "data"
    tamias(
        "crawl",
        data,
        f"{base}/void.ttl",
        "--allow-private",
        "--delay",
        "0",
        "--workers",
        "1",
        "--include",
        r"127\.0\.0\.",
    )

    iri = f"{base}/resource/tamias"
    told = [json.loads(line) for line in tamias("where", data, iri, "--json").splitlines()]
    places = {(each["kind"], each["url"], each["by"]) for each in told}
    sitemap, void = f"{base}/sitemap.xml", f"{base}/void.ttl"
    assert places >= {
        ("document", iri, sitemap),
        ("sparql", server.url, sitemap),
        ("dump", f"{base}/dump.nt", sitemap),
        ("sparql", server.url, void),
        ("dump", f"{base}/dump.nt", void),
    }
    (by_sitemap,) = [each for each in told if (each["kind"], each["by"]) == ("sparql", sitemap)]
    assert (by_sitemap["graphs"], by_sitemap["slicing"]) == ([f"{base}/graphs/chipmunks"], "subject-object")
    copies = {each["url"] for each in told if each["by"] == "this crawl"}
    assert copies
    held = parse(tamias("export", data).encode(), format=RdfFormat.N_QUADS)
    assert copies <= {str(quad.graph_name)[1:-1] for quad in held if quad.subject.value == iri}

    one = parse(tamias("read", data, "--one", iri, "--allow-private").encode(), format=RdfFormat.N_QUADS)
    wanted = parse(about["tamias"].encode(), format=RdfFormat.N_TRIPLES)
    assert {quad.triple for quad in one} == {quad.triple for quad in wanted}
