"""Sphinx configuration; tox -e doc builds with warnings as errors."""

import re
from typing import Any

from sphinx.application import Sphinx

from aileron import __version__

project = "Aileron"
author = "Maintainers of Aileron"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx_click", "sphinx_design"]
exclude_patterns = ["_build"]
html_extra_path = ["../aileron/connectors/connector.schema.json"]
html_theme = "furo"
html_title = f"Aileron {version}"
myst_enable_extensions = ["colon_fence"]
# Backquotes in help texts are commands and options.
default_role = "code"
myst_heading_anchors = 3
nitpicky = True
# Quotes and ellipses only: two hyphens in a help text begin an option.
smartquotes_action = "qe"
_DECISIONS = re.compile(
    r'<ul[^>]*>\s*(?:<li class="toctree-l2[^>]*><a class="[^"]*" href="(?:#|[^"]*\d{4}-[^"]*)">.*?</a></li>\s*)+</ul>',
    re.DOTALL,
)


def _fold_decisions(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Keep the decisions behind their index: the sidebar of every page would list them all."""
    toctree = context["toctree"]
    context["toctree"] = lambda **options: _DECISIONS.sub("", toctree(**options))


def setup(app: Sphinx) -> None:
    """Come before the theme, which draws the sidebar at the same event."""
    app.connect("html-page-context", _fold_decisions, priority=400)
