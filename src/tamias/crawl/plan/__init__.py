"""Plan of a crawl: seeds, what may enter the frontier, the crawl's own options."""
