"""How pages are made: the table of pages, templates, static files, charts, CSV."""
