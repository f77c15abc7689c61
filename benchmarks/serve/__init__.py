"""How long pages take over a large archive, which `fill` writes straight into the tables."""
