"""Parts that pages are made of: the table of pages, templates, static files, charts, CSV."""
