"""How the pages of this folder become a site: `make docs`."""

import tamias

project = "Tamias"
author = "the Tamias authors"
copyright = "the Tamias authors, Apache-2.0"  # noqa: A001 (Sphinx's word)
version = release = tamias.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 3
# The pages are read in the repository too, where links to folders and code are right.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "furo"
html_title = "Tamias"
html_show_sphinx = False
html_copy_source = False
