"""A small Data Web on loopback addresses: the same for the same seed, with its ground truth and its log.

`plan` draws it, `sites` fills it with documents, `server` serves it, `expected` knows what is to be found.
"""
