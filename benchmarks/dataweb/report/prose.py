"""What the report says in words: under which terms is measured, and in what this web differs from ORCA's."""

TERMS = (
    "The web is drawn as ORCA draws its own (node graph, RDF graphs, links and kinds of node), fixed by "
    "the seed, and served on loopback addresses by processes on the same machine. Every crawler gets the "
    "same seeds and may go only to addresses of the web. Recall is over single triples, blank nodes and "
    "times equal to any; triples over time are those that the servers handed out, so that all crawlers are"
    " measured alike; CPU and memory (proportional set size) are of the whole process tree, database "
    "included. Tamias runs with `--delay 0 --allow-private`, robots.txt on, and "
    "`TAMIAS_SEEDS__PROBE=false`: no look at well-known addresses, which the web lacks and no peer looks at. "
    "A peer is stopped when it has had eight times what Tamias took, but at least a minute."
)
DIFFERENCES = (
    "ORCA runs servers and crawler in containers on a cluster; here they share one machine, and an address"
    " of 127.0.0.0/8 stands for a host. Run times are therefore no measure against the published ones; "
    "recall is.",
    "SPARQL and CKAN nodes are servers of ours that answer as Virtuoso and CKAN 2.8 do where a crawler "
    "asks, not those programs. All nodes are reached at one port.",
    "Triples over time are counted by the servers when a document is handed out, not in the crawler's "
    "store; CPU is exact and memory is sampled twice a second, where ORCA samples both once a minute and "
    "takes the highest CPU value and the mean of the memory.",
    "Precision and requests for each resource are measured too; ORCA measures neither.",
    "The random draws follow ORCA's rules but not its generator, so the webs have the same sizes and "
    "degrees and not the same edges. The RDFa pages are the W3C's when `--rdfa-suite` names the suite, "
    "otherwise our own.",
    "Kinds of node that ORCA lacks stand in an experiment of their own: redirecting and hash IRIs, JSON-LD"
    " and Microdata pages, an event stream (LDES), a site with a Semantic Sitemap, an FTP server.",
)
AGAINST_PEERS = (
    "Read resources per CPU-second with what each crawler does for them. `rdf-dereference` runs here in a "
    "loop of ours that fetches, parses, and keeps the known IRIs in memory; it has no robots.txt, no queue"
    " on disk, no pause between two requests to one host, no record of a fetch, and starts over when it "
    "dies. Tamias does all of that in the same figure, its database included."
)
AT_THE_DOOR = (
    "All crawlers begin at the same nodes, which ORCA's rule picks. One that cannot read what is served "
    "there, such as a packed dump, finds nothing: its recall tells of that first document, not of the rest."
)
