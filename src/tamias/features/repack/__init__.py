"""Repack: versions of resources that no longer change take less space, and old captures move to files."""

from tamias.plugins import Feature, Verb

FEATURE = Feature(
    name="repack",
    about="stores old versions in less space",
    module=__name__,
    revisits={"segments": f"{__name__}.repacker:merge_states"},
    verbs={"repack": Verb("store old versions in less space", f"{__name__}.verb:command")},
)
