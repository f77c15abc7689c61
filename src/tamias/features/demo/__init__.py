"""A small Data Web on loopback addresses: the same for the same seed, with its ground truth and its log.

`plan` draws it, `web` fills it with documents and knows what is to be found, `server` serves it.
"""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="demo",
    about="a small Data Web on this machine, to try a crawl on",
    module=__name__,
    requires=("service", "exports", "diffs"),
    verbs={"demo": Verb("build a small Data Web on this machine and crawl it", f"{__name__}.verb:command")},
)
