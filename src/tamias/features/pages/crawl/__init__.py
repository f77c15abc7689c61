"""Pages of the crawl: the frontier, hosts, the graph of hosts, and the form to add an address."""
