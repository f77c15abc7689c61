"""From a fetched body to quads and links: opened, analysed, written."""
