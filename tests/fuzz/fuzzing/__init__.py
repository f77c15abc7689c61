"""Everything of ours that parses bytes from outside: functions that raise where a promise is broken."""

from collections.abc import Callable

from fuzzing import connections, documents, files, messages, permits

Target = Callable[[bytes], None]

TARGETS: dict[str, Target] = {
    "robots": permits.robots,
    "tdm": permits.tdm,
    "signals": permits.signals,
    "waiting": permits.waiting,
    "link-header": permits.link_header,
    "url": permits.url,
    "reference": permits.reference,
    "blocklist": permits.blocklist,
    "sitemap": documents.sitemap,
    "sitemap-text": documents.sitemap_text,
    "rdfa": documents.rdfa,
    "xhtml": documents.xhtml,
    "microdata": documents.microdata,
    "page": documents.page,
    "hdt": documents.hdt,
    "trix": documents.trix,
    "rdf-json": documents.rdf_json,
    "rdf": documents.rdf,
    "jelly": documents.jelly,
    "linkset": documents.linkset,
    "rules": documents.rules,
    "ftp-lines": documents.ftp_lines,
    "ftp-listing": files.ftp_listing,
    "cdx": files.cdx,
    "warc": files.warc,
    "seed-list": files.seed_list,
    "urlfrontier-lines": files.urlfrontier_lines,
    "type": files.found,
    "archive": files.archive,
    "urlfrontier": messages.urlfrontier,
    "workers": messages.workers,
    "frames": messages.frames,
    "grpc-frames": connections.grpc_frames,
}
