"""Sitemaps of every form, read as they stream: addresses, hints about them, datasets with their accesses."""
