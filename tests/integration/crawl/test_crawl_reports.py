"""The log and the reports of a crawl have the columns of Heritrix, and agree with what the site was asked."""

import re
from collections import Counter

PAGE = b'<a href="/a.ttl">a</a> <a href="/gone">g</a> <a href="/moved">m</a> <a href="/closed/x">c</a>'
# As in the manual of Heritrix 3: 2011-06-23T17:12:08.802Z   200       1299 http://example.com/robots.txt LREP
# http://example.com/ text/plain #014 20110623171208574+225 sha1:ZPXK2PGOA2FJCJKAEWOP4BXHDGIUVQHC - -
LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z +(-?\d+) +(\d+|-) (\S+) ([LREXPIM]+|-) (\S+) (\S+) #\d+"
    r" (\d{17}\+\d+|-) (sha256:[0-9a-f]{64}|-) (\S+) (\S+)"
)


def test_the_log_and_the_reports_are_those_of_the_crawl(tamias, site, reply, tmp_path):
    html = {"Content-Type": "text/html"}
    site.pages |= {
        "/": reply(200, PAGE, **html),
        "/a.ttl": b"<http://e/s> <http://e/p> 'o' .\n",
        "/gone": reply(404, b"no", **html),
        "/moved": reply(301, b"", Location="/a.ttl"),
        "/robots.txt": reply(200, b"User-agent: *\nDisallow: /closed/\n", Content_Type="text/plain"),
    }
    assert tamias.crawl("--depth", "1", site.url("/")).returncode == 0
    folder = tmp_path / "reports"
    run = tamias.run("export", "--format", "heritrix", "-o", folder)
    assert run.returncode == 0, run.stderr
    lines = [LINE.fullmatch(line) for line in (folder / "crawl.log").read_text().splitlines()]
    assert all(lines), (folder / "crawl.log").read_text()
    found = {(line[3].removeprefix(site.url("")), int(line[1]), line[4]) for line in lines}
    assert {
        ("/", 200, "-"),
        ("/a.ttl", 200, "L"),
        ("/gone", 404, "L"),
        ("/moved", 301, "L"),
        ("/a.ttl", 200, "LR"),
    } <= found
    assert ("/closed/x", -9998, "L") in found
    assert (site.url("/closed/x") in str(site.log)) is False
    reports = {
        name: [line.split() for line in (folder / f"{name}-report.txt").read_text().splitlines()]
        for name in ("seeds", "hosts", "mimetype", "responsecode")
    }
    codes = Counter(line[1] for line in lines if int(line[1]) > 0)
    assert {code: int(count) for count, code in reports["responsecode"][1:]} == codes
    assert ["200", "CRAWLED", site.url("/")] in reports["seeds"]
    head, *hosts = reports["hosts"]
    assert head == ["[#urls]", "[#bytes]", "[host]", "[#robots]", "[#remaining]"]
    (urls, _, _, robots, _) = next(each for each in hosts if each[2] == "127.0.0.1")
    assert (int(urls), robots) == (sum(codes.values()), "1")
    assert sum(int(count) for count, *_ in reports["mimetype"][1:]) == sum(codes.values())
    assert tamias.run("export", "--format", "heritrix", "-o", folder).returncode == 2
