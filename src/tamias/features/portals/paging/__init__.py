"""Pages of listings and changes: what all portals read with."""
