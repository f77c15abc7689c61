"""The frontier out of one Tamias and into another as JSON lines; indexes of archives as seeds."""

import json
from contextlib import closing

from google.protobuf import json_format

from tamias.database.connect import Database
from tamias.features.remote_workers.grpc.connection import message

URL_ITEM = message("urlfrontier.URLItem")


def lines(tamias):
    done = tamias.run("export", "--format", "urlfrontier")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_url(items):
    return {item["known"]["info"]["url"]: item["known"] for item in items}


def tags_of(tamias, url):
    with closing(Database(tamias.data)) as database, closing(database.session()) as session:
        asked = "SELECT tags FROM url WHERE url.url = %s"
        return session.transact(lambda cursor: cursor.execute(asked, [url]).fetchone())[0]


def test_the_export_is_what_the_protocol_calls_a_url_item(tamias, site):
    site.pages["/a"] = b"<#a> <#b> <#c> ."
    tamias.crawl(site.url("/a"))
    items = [json_format.ParseDict(line, URL_ITEM()) for line in lines(tamias)]
    known = {item.known.info.url: item for item in items}[site.url("/a")]
    assert (known.known.refetchable_from_date, known.known.info.key, known.known.info.crawlID) == (
        0,
        "127.0.0.1",
        "DEFAULT",
    )
    assert known.creation_date > 1_500_000_000


def test_what_another_frontier_knew_is_taken_over_and_given_on(fresh, tmp_path):
    told = {
        "http://a.example/done": {"metadata": {"lang": {"values": ["de"]}}, "date": "0"},
        "http://a.example/later": {"metadata": {}, "date": "4070908800"},
        "http://a.example/tagged": {"metadata": {"tags": {"values": ["lang=de"]}}, "date": "4070908800"},
        "http://a.example/both": {
            "metadata": {"tags": {"values": ["good"]}, "lang": {"values": ["fr"]}},
            "date": "4070908800",
        },
    }
    items = [
        {
            "known": {
                "info": {"url": url, "key": "my_queue", "metadata": each["metadata"], "crawlID": "news"},
                "refetchableFromDate": each["date"],
            }
        }
        for url, each in told.items()
    ]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    first = fresh("first")
    assert first.crawl("--seeds", tmp_path / "dump.jsonl", "--max-wait", "0").returncode in (0, 5)
    found = by_url(lines(first))
    assert {url: each["refetchableFromDate"] for url, each in found.items()} == {
        url: each["date"] for url, each in told.items()
    }
    assert tags_of(first, "http://a.example/tagged") == ["lang=de"]
    assert tags_of(first, "http://a.example/both") == ["good"]
    assert found["http://a.example/both"]["info"]["metadata"] == told["http://a.example/both"]["metadata"]
    done = found["http://a.example/done"]["info"]
    assert (done["key"], done["crawlID"], done["metadata"]) == (
        "my_queue",
        "news",
        {"lang": {"values": ["de"]}},
    )


def test_addresses_of_an_index_are_crawled_and_those_on_a_block_list_counted(tamias, site, tmp_path):
    site.pages["/a"] = b"<#a> <#b> <#c> ."
    rows = [f'x 2024 {{"url": "{url}"}}\n' for url in (site.url("/a"), "http://bad.example/")]
    (tmp_path / "index.cdxj").write_text("".join(rows))
    (tmp_path / "nasty").write_text("bad.example\n")
    tamias.env["TAMIAS_FILTERS__BLOCKLISTS"] = str(tmp_path / "nasty")
    done = tamias.crawl(f"cdx:{tmp_path / 'index.cdxj'}")
    assert "imported seeds: 1 new, 0 known" in done.stderr
    assert "1 seed was skipped:" in done.stderr
    excluded = "the seed http://bad.example/ is excluded: block list nasty: bad.example"
    assert f"index.cdxj line 2: {excluded}" in done.stderr
    assert site.asked("/a") == 1
