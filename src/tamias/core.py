"""The parts of the core, described as those of any feature are."""

from tamias.plugins import Feature, Verb

_VERBS = {
    "crawl": "crawl from seeds until nothing is left",
    "crawls": "list, pause, resume, limit, delete or reopen crawls",
    "tag": "add tags to known URLs, or remove them",
    "worker": "run workers for a crawl, through its database or its frontier",
    "read": "read one file or URL as the crawler would",
    "status": "show what the crawler is doing now",
    "config": "show the settings and where they were set",
    "plugins": "list what is installed",
}

CORE = Feature(
    name="core",
    module="tamias",
    about="the path of a URL, from seed to commit, and the archive",
    verbs={name: Verb(about, f"tamias.cli.{name}:command") for name, about in _VERBS.items()},
    seeds={
        "address": "tamias.seeds.files:AddressSeeds",
        "list": "tamias.seeds.files:ListSeeds",
        "urlfrontier": "tamias.seeds.files:UrlFrontierSeeds",
        "cdx": "tamias.seeds.files:CdxSeeds",
    },
    filters={
        "scheme": "tamias.filters.url_filters:SchemeFilter",
        "scope": "tamias.filters.url_filters:ScopeFilter",
        "pattern": "tamias.filters.url_filters:PatternFilter",
        "trap": "tamias.filters.url_filters:TrapFilter",
    },
    fetchers={"http": "tamias.fetch.http:HttpFetcher"},
    taggers={
        "language": "tamias.analyse.tags.content:LanguageTagger",
        "type": "tamias.analyse.tags.content:TypeTagger",
        "markup": "tamias.analyse.tags.content:MarkupTagger",
    },
    sinks={"nquads": "tamias.sinks.segments.segment_files:SegmentWriter"},
    host_notes={"visits": "tamias.crawl.revisit.timetable:host_notes"},
    hooks={
        "outbox": "tamias.crawl.commit.settlement:outbox_hook",
        "harvests": "tamias.crawl.visit.progress_files:ProgressFiles",
    },
)
