"""A Data Web as the ORCA benchmark builds it, on loopback addresses, and what crawlers make of it.

`plan` draws it, `web` fills it, `serving` serves it, `trial` lets a crawler loose, `judging` judges it.
"""
