"""The tuned Scrapy spider for RDF that Tamias is compared with. Copied as a `.py` to where Scrapy is to run it.

It needs Scrapy, uvloop and pyoxigraph and nothing of Tamias, so it can run in an environment of its own.
"""

import bz2
import gzip
import os
import re
from urllib.parse import urldefrag

import scrapy
from pyoxigraph import NamedNode, RdfFormat, parse, serialize

ACCEPT = "text/turtle, application/n-triples, application/rdf+xml;q=0.9, application/ld+json;q=0.8, */*;q=0.1"
UNPACK = {"application/gzip": gzip.decompress, "application/x-bzip2": bz2.decompress}


class RdfSpider(scrapy.Spider):
    """Reads every RDF document, writes its statements, follows all its IRIs that are within the scope."""

    name = "rdf"
    # The settings that Scrapy's own page on broad crawls advises, and off whatever the web does not call for.
    custom_settings = {
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "DOWNLOAD_DELAY": 0,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "ROBOTSTXT_OBEY": bool(os.environ.get("ORCA_ROBOTS")),
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "REFERER_ENABLED": False,
        "HTTPPROXY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "DEFAULT_REQUEST_HEADERS": {"Accept": ACCEPT},
        "LOG_LEVEL": "ERROR",
        "LOGSTATS_INTERVAL": 0,
    }

    def __init__(self, seeds, scope, out, **options):
        super().__init__(**options)
        with open(seeds) as lines:
            self.start_urls = lines.read().split()
        self.scope = re.compile(scope)
        self.out = open(out, "wb")
        self.seen = set(map(str, self.start_urls))

    def closed(self, reason):
        self.out.close()

    def parse(self, response):
        """One document. Known IRIs are dropped here, before Scrapy makes requests of them, which it does slowly."""
        quads = self.read(response)
        serialize(quads, self.out, format=RdfFormat.N_QUADS)
        iris = {term.value for quad in quads for term in quad.triple if isinstance(term, NamedNode)}
        for url in {urldefrag(iri).url for iri in iris} - self.seen:
            if self.scope.match(url):
                self.seen.add(url)
                yield scrapy.Request(url, dont_filter=True)

    def read(self, response):
        """The statements; none where it is no RDF or is broken."""
        kind = response.headers.get("Content-Type", b"").decode().partition(";")[0].strip()
        body, path = response.body, response.url
        if kind in UNPACK:
            body, path = UNPACK[kind](body), path.rpartition(".")[0]
        form = RdfFormat.from_media_type(kind) or RdfFormat.from_extension(path.rpartition(".")[2])
        if form is None:
            return []
        try:
            return list(parse(body, format=form, base_iri=response.url))
        except SyntaxError:
            return []
