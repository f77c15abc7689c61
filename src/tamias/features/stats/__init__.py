"""Statistics: the corpus as figures, as a command."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="stats",
    about="shows statistics of the archive, join candidates and mappings of portals",
    module=__name__,
    requires=("dcat", "archive"),
    verbs={"stats": Verb("show statistics of the archive", f"{__name__}.verb:command")},
)
