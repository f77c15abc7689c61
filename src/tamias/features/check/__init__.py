"""Check: every stored byte and every reference is read, and what is damaged is repaired."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="check",
    about="finds and repairs damage in an archive",
    module=__name__,
    verbs={"check": Verb("verify every stored byte and every reference", f"{__name__}.verb:command")},
)
