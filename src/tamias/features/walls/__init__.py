"""Walls: challenge pages of bot protection are refused, and counted for each host."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="walls",
    about="recognises challenge pages of bot protection and refuses them",
    module=__name__,
    responses={"walls": f"{__name__}.detect:refuse"},
    host_notes={"walls": f"{__name__}.counts:host_notes"},
)
