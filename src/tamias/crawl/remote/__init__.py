"""Workers without a database: `channel` and `line` reach the service, `workplace` is what a worker works at.

`reception` is the other end, which the frontier service runs; `words` is what the two say to each other.
"""
