"""Tags of URLs, and the numbers of their sets."""
