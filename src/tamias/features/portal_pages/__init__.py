"""Portals for people and clients: their pages, and how they are steered over HTTP."""

from tamias.plugins import Feature

FEATURE = Feature(
    name="portal_pages",
    about="shows portals and their harvests on pages, and steers them over HTTP",
    module=__name__,
    requires=("harvests", "pages", "service", "tokens"),
    pages={
        "portals": f"{__name__}.pages:portals",
        "portal": f"{__name__}.pages:portal",
        "portal_at": f"{__name__}.pages:portal_at",
    },
    endpoints={"portal_harvests": f"{__name__}.endpoints:ENDPOINTS"},
    routes={"portal_pages": f"{__name__}.pages:add_routes"},
)
