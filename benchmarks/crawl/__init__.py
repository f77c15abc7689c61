"""Crawls one static site with Tamias and with its peers, and says what a page costs each of them.

`site` writes the pages, `web` serves them, `measure` watches a process tree, `run` puts it together.
"""
