"""How quads are named, written to segments, described in the metadata graph, and given out again."""
