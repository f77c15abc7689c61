"""The archive: bodies of what is watched, or of all that a crawl visits, become versions of resources.

`stages` has its part in visits and commits, `archiver` what it does, `canonical` how contents are compared.
"""

from tamias.plugins import Feature

FEATURE = Feature(
    name="archive",
    about="judges responses, compares contents, and stores bodies as versions",
    module=__name__,
    stages={"archive": f"{__name__}.stages:archive_stage", "overblown": f"{__name__}.stages:overblown_stage"},
    hooks={"archive": f"{__name__}.stages:archive_hook"},
)
