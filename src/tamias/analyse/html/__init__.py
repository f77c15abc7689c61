"""HTML pages: links, metas, and the structured data that stands in them."""
