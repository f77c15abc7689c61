"""Snapshots of the corpus: made, and exported with the same bytes every time."""
