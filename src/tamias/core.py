"""The parts of the core, described as those of any feature are."""

from tamias.plugins import Feature, Verb

_VERBS = {
    "crawl": "crawl from seeds until nothing is left",
    "add": "watch resources, portals and endpoints",
    "list": "what is watched: state, versions, visits, trouble",
    "remove": "stop watching resources; their history stays",
    "forget": "remove resources or versions for good; a tombstone stays",
    "serve": "run the service: scheduler, workers, REST API, Memento, metrics",
    "versions": "list the versions of a resource",
    "get": "return one version, byte for byte",
    "diff": "show what changed between two versions",
    "query": "query the catalogue and the crawled graphs in SPARQL",
    "where": "show which document, endpoint or dump serves an IRI",
    "strategy": "choose in SQL what is visited first",
    "crawls": "list, pause, resume, limit, delete or reopen crawls",
    "tag": "add tags to known URLs, or remove them",
    "frontier": "serve the frontier over gRPC, for any crawler",
    "worker": "run workers for a crawl, through its database or its frontier",
    "import": "take captures from WARC, WACZ and CDX files, without a request",
    "export": "write what was crawled to a file",
    "snapshot": "freeze the corpus at a time, to cite it and export it again",
    "read": "read one file or URL as the crawler would",
    "status": "show what the crawler is doing now",
    "stats": "show statistics of the archive",
    "token": "make, list and withdraw tokens of the service",
    "audit": "show every writing call",
    "cluster": "distribute the frontier over many servers",
    "check": "verify every stored byte and every reference",
    "repack": "store old versions in less space",
    "backup": "take a snapshot of a live archive",
    "restore": "restore a snapshot",
    "config": "show the settings and where they were set",
    "plugins": "list what is installed",
    "doctor": "check this machine for problems",
}

CORE = Feature(
    name="core",
    module="tamias",
    about="the path of a URL, from seed to commit, the archive, the service and its pages",
    verbs={
        # A verb that Python has a meaning for is in a module of another name.
        name: Verb(about, f"tamias.cli.{'import_captures' if name == 'import' else name}:command")
        for name, about in _VERBS.items()
    },
    seeds={
        "address": "tamias.seeds.address:AddressSeeds",
        "list": "tamias.seeds.listing:ListSeeds",
        "urlfrontier": "tamias.seeds.urlfrontier:UrlFrontierSeeds",
        "cdx": "tamias.seeds.cdx:CdxSeeds",
        "warc": "tamias.seeds.warc:WarcSeeds",
    },
    filters={
        "scheme": "tamias.filters.scheme:SchemeFilter",
        "scope": "tamias.filters.scope:ScopeFilter",
        "pattern": "tamias.filters.pattern:PatternFilter",
        "trap": "tamias.filters.trap:TrapFilter",
        "blocklist": "tamias.filters.blocklists.filter:BlocklistFilter",
    },
    fetchers={
        "http": "tamias.fetch.http:HttpFetcher",
    },
    taggers={
        "language": "tamias.analyse.tags.content:LanguageTagger",
        "type": "tamias.analyse.tags.content:TypeTagger",
        "markup": "tamias.analyse.tags.content:MarkupTagger",
    },
    harvesters={
        "arcgis": "tamias.harvesters.portals.arcgis:ArcGisHarvester",
        "ckan": "tamias.harvesters.portals.ckan:CkanHarvester",
        "dkan": "tamias.harvesters.portals.dkan:DkanHarvester",
        "opendatasoft": "tamias.harvesters.portals.opendatasoft:OpenDataSoftHarvester",
        "portal": "tamias.harvesters.portals.portal:PortalHarvester",
        "socrata": "tamias.harvesters.portals.socrata:SocrataHarvester",
        "sparql": "tamias.harvesters.sparql.harvester:SparqlHarvester",
        "sparql-query": "tamias.harvesters.sparql.query_source:QueryHarvester",
        "udata": "tamias.harvesters.portals.udata:UdataHarvester",
        "data-json": "tamias.harvesters.portals.data_json:DataJsonHarvester",
        "dataverse": "tamias.harvesters.portals.dataverse:DataverseHarvester",
        "dcat": "tamias.harvesters.portals.dcat:CatalogueHarvester",
        "ldes": "tamias.harvesters.ldes:LdesHarvester",
        "oai-pmh": "tamias.harvesters.portals.oai:OaiHarvester",
        "csw": "tamias.harvesters.portals.csw:CswHarvester",
        "ogc-records": "tamias.harvesters.portals.ogc:OgcRecordsHarvester",
        "stac": "tamias.harvesters.portals.ogc:StacHarvester",
        "zenodo": "tamias.harvesters.portals.zenodo:ZenodoHarvester",
    },
    sinks={
        "nquads": "tamias.sinks.segments.segment_files:SegmentWriter",
    },
    graph_sinks={
        "sparql": "tamias.sinks.targets:sparql",
        "turtle-files": "tamias.sinks.targets:turtle_files",
    },
)
