"""The tuned Scrapy spider that Tamias is compared with. Copied as a `.py` to where Scrapy is to run it.

It needs Scrapy, uvloop and selectolax and nothing of Tamias, so it can run in an environment of its own.
"""

import scrapy
from selectolax.lexbor import LexborHTMLParser


class Follower(scrapy.Spider):
    """Follows every link and keeps nothing."""

    name = "follower"
    # The settings that Scrapy's own page on broad crawls advises, and off whatever the site does not call for.
    custom_settings = {
        "CONCURRENT_REQUESTS": 200,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "DOWNLOAD_DELAY": 0,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "METAREFRESH_ENABLED": False,
        "REFERER_ENABLED": False,
        "COMPRESSION_ENABLED": False,
        "HTTPPROXY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "LOGSTATS_INTERVAL": 0,
    }

    def __init__(self, seed, **options):
        super().__init__(**options)
        self.start_urls = [seed]

    def parse(self, response):
        """Every link of a page; Scrapy itself drops those it has seen."""
        for anchor in LexborHTMLParser(response.body).css("a[href]"):
            yield scrapy.Request(response.urljoin(anchor.attributes["href"]))
