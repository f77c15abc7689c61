"""The listings of the paper on Semantic Sitemaps (Tummarello) as printed, but for hosts: read and written."""

import xml.etree.ElementTree as ET

import pytest

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.sitemaps.org/schemas/sitemap/0.9
    http://www.sitemaps.org/schemas/sitemap/0.9/sitemap.xsd"
  xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
  xmlns:sc="http://sw.deriv.org/2007/07/sitemapextension/scschema.xsd">
"""
LISTINGS = {
    "1: a dump and a prefix": """<sc:dataset>
    <sc:datasetLabel>Product Catalog for Example.org</sc:datasetLabel>
    <sc:dataDumpLocation>http://example.org/cataloguedump.rdf</sc:dataDumpLocation>
    <sc:linkedDataPrefix>http://example.org/products/</sc:linkedDataPrefix>
    <changefreq>monthly</changefreq>
  </sc:dataset>
</urlset>""",
    "2: fragments and an endpoint": """<sc:dataset>
  <sc:datasetLabel>Product Catalog for Example.org</sc:datasetLabel>
  <sc:datasetURI>http://example.org/aboutcatalog.rdf#catalog</sc:datasetURI>
<sc:dataDumpLocation>http://example.org/cataloguedump.rdf</sc:dataDumpLocation>
<sc:dataFragmentDumpLocation>http://example.org/cataloguedump_part1.rdf
</sc:dataFragmentDumpLocation>
<sc:dataFragmentDumpLocation>http://example.org/cataloguedump_part2.rdf
</sc:dataFragmentDumpLocation>

<sc:linkedDataPrefix>http://example.org/products/</sc:linkedDataPrefix>
<sc:sparqlEndPoint>http://example.org/queryengine/sparql</sc:sparqlEndPoint>
  <changefreq>monthly</changefreq>
</sc:dataset>

</urlset>""",
    "3: other hosts and priorities": """<sc:dataset>
  <sc:datasetLabel>Product Catalog for Example.org</sc:datasetLabel>
<sc:datasetURI>http://example.org/aboutcatalog.rdf#catalog</sc:datasetURI>
<sc:dataDumpLocation>http://example.org/cataloguedump.rdf</sc:dataDumpLocation>
<sc:dataDumpLocation
  priority="0">http://backup.example.org/cataloguedump.rdf</sc:dataDumpLocation>
<sc:sparqlEndPoint priority="10">http://example.org/queryengine/sparql
</sc:sparqlEndPoint>
<sc:sparqlEndPoint>http://secondary.example.org/queryengine/sparql
</sc:sparqlEndPoint>
  <changefreq>monthly</changefreq>
</sc:dataset>
</urlset>""",
}
SAME = {"sparqlEndPoint": "sparqlEndpointLocation", "dataFragmentDumpLocation": "dataFragmentDump"}
"""Names in the listings, and in the paper's own definitions."""


def fields(text):
    """What is said of the datasets: names, values and priorities."""
    found = set()
    for element in ET.fromstring(text).iter():
        name = element.tag.rpartition("}")[2]
        if element.text and element.text.strip():
            found.add((SAME.get(name, name), element.text.strip(), element.get("priority")))
    return found


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_is_understood_whole(tamias, site, site_at, reply, listing):
    others = site_at("127.0.0.7")
    text = (HEAD + LISTINGS[listing]).replace("http://example.org", site.url(""))
    for name in ("backup", "secondary"):
        text = text.replace(f"http://{name}.example.org", others.url(""))
    site.pages["/robots.txt"] = f"Sitemap: {site.url('/sitemap.xml')}\n".encode()
    site.pages["/sitemap.xml"] = reply(200, text.encode(), Content_Type="application/xml")
    site.pages["/start"] = reply(200, b"<> <#is> <#page> .", Content_Type="text/turtle")
    done = tamias.crawl("--max-wait", "1", site.url("/start"))
    assert done.returncode in (0, 5), done.stderr
    written = tamias.run("export", "--format", "semantic-sitemap", "--url", site.url("/"))
    assert written.returncode == 0, written.stderr
    assert fields(text) <= fields(written.stdout)
