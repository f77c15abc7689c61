"""What was crawled and archived, read for exports and packages."""
