"""Tamias: a crawler and archive for the Web of Data."""

__version__ = "0.1.0"
