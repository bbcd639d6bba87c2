"""Sphinx configuration; tox -e doc builds with warnings as errors."""

from aileron import __version__

project = "Aileron"
author = "Maintainers of Aileron"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_click", "sphinx_design"]
exclude_patterns = ["_build"]
html_extra_path = ["../aileron/connectors/connector.schema.json", "design", "../aileron/web/static/style.css"]
html_theme = "furo"
html_title = f"Aileron {version}"
myst_enable_extensions = ["colon_fence"]
# Backquotes in help texts are commands and options.
default_role = "code"
myst_heading_anchors = 3
nitpicky = True
# Quotes and ellipses only: two hyphens in a help text begin an option.
smartquotes_action = "qe"
