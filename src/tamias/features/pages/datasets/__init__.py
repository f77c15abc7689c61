"""Pages of one dataset: its versions, what they contain, and what changed between them."""
