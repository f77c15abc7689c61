"""What commands do besides crawling: read, check, export, back up, measure coverage, import."""
