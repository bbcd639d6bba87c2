"""Sphinx configuration; tox -e doc builds with warnings as errors."""

from aileron import __version__

project = "Aileron"
author = "Maintainers of Aileron"
copyright = author
version = release = __version__

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "alabaster"
myst_heading_anchors = 3
nitpicky = True
