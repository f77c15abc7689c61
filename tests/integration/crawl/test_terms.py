"""Terms of use: a licence (RSL) that robots.txt names holds for its paths; 402 is refused with its terms."""

import json

RSL = """<rsl xmlns="https://rslstandard.org/rsl"><content url="/data/">
<license><permits type="usage">search</permits></license></content></rsl>"""
DATA = b"<http://a.example/> <http://a.example/is> <http://a.example/here> ."
VOCABULARY = "https://w3id.org/tamias/vocab#"


def test_a_licence_that_robots_txt_names_is_fetched_first_and_holds_for_its_paths(tamias, site, reply):
    licence = site.url("/rsl.xml")
    site.pages["/robots.txt"] = f"User-agent: *\nAllow: /\n\nLicense: {licence}\n".encode()
    site.pages["/rsl.xml"] = reply(200, RSL.encode(), content_type="application/rsl+xml")
    for path in ("/data/a.nt", "/b.nt"):
        site.pages[path] = reply(200, DATA, content_type="application/n-triples")
    tamias.crawl(site.url("/data/a.nt"), site.url("/b.nt"))
    lines = [line.split(" ", 2) for line in tamias.run("export", "--graph", "metadata").stdout.splitlines()]
    requested = {
        said.split(">")[0][1:]: node for node, name, said in lines if name.endswith("#requestedUrl>")
    }
    said = {
        path: {
            text.split('"')[1]
            for node, name, text in lines
            if node == requested[site.url(path)]
            and name[1:-1] in (f"{VOCABULARY}signal", f"{VOCABULARY}notPermitted")
        }
        for path in ("/data/a.nt", "/b.nt")
    }
    named = f"robots.txt license: {licence}"
    assert said == {
        "/data/a.nt": {
            named,
            "rsl license: ai-train=no",
            "rsl license: ai-input=no",
            "no_training (rsl license: ai-train=no)",
            "no_ai_input (rsl license: ai-input=no)",
        },
        "/b.nt": {named},
    }


def test_a_response_that_asks_for_a_payment_is_refused_with_its_terms(tamias, site, reply):
    terms = {"crawler_price": "USD 0.01", "link": '</rsl.xml>; rel="license"; type="application/rsl+xml"'}
    site.pages["/a.csv"] = reply(402, b"pay", content_type="text/plain", **terms)
    assert tamias.run("add", site.url("/a.csv")).returncode == 0
    tamias.crawl("--recrawl")
    [row] = json.loads(tamias.run("list", "--trouble", "--json").stdout)
    terms = "402 Payment Required (crawler-price: USD 0.01; license: /rsl.xml)"
    assert row["trouble"] == f"refused: terms: {terms}"
