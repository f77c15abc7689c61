"""Sinks: quads are named, written to segments, described in the metadata graph, and delivered."""
