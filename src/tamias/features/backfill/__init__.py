"""Backfill: earlier versions from other web archives, by Memento or CDX, through the gate."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="backfill",
    about="brings earlier versions from other web archives, by Memento or CDX",
    module=__name__,
    requires=("imports",),
    verbs={"backfill": Verb("bring earlier versions from another web archive", f"{__name__}.verb:command")},
)
