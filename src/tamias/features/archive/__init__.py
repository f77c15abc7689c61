"""The archive: bodies of what is watched, or of all that a crawl visits, become versions of resources.

`stages` has its part in visits and commits, `archiver` what it does, `canonical` how contents are compared.
"""

from tamias.plugins import Feature, Verb

_VERBS = {
    "add": "watch resources, portals and endpoints",
    "list": "what is watched: state, versions, visits, trouble",
    "remove": "stop watching resources; their history stays",
    "versions": "list the versions of a resource",
    "get": "return one version, byte for byte",
}

FEATURE = Feature(
    name="archive",
    about="judges responses, compares contents, and stores bodies as versions",
    module=__name__,
    verbs={name: Verb(about, f"{__name__}.verbs.{name}:command") for name, about in _VERBS.items()},
    stages={"archive": f"{__name__}.stages:archive_stage", "overblown": f"{__name__}.stages:overblown_stage"},
    hooks={"archive": f"{__name__}.stages:archive_hook"},
)
