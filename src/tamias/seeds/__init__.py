"""Seeds: what a user names (a URL, a list) becomes addresses to start from."""
