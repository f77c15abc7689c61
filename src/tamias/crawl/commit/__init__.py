"""From what a visit brought to rows and segments, in the order that survives any death."""
