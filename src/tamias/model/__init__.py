"""Plain values and pure rules: what a URL, an item, a lease, a capture is.

Nothing here reads a file, a socket or a clock, and nothing here imports another room of Tamias.
"""
