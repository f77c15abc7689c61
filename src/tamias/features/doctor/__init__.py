"""Doctor: what this machine lacks, and what to do about it."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="doctor",
    about="checks this machine",
    module=__name__,
    verbs={"doctor": Verb("check this machine for problems", f"{__name__}.verb:command")},
)
