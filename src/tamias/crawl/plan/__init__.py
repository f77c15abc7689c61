"""What a crawl is to do: seeds, what may enter the frontier, the crawl's own options."""
