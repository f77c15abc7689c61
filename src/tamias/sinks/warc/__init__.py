"""WARC files with their index, and WACZ."""
