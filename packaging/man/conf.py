"""Sphinx configuration of the man pages; tests/manual.py builds them for a release."""

from aileron import __version__

project = "Aileron"
version = release = __version__

extensions = ["sphinx_click"]
default_role = "code"
man_pages = [
    ("aileron", "aileron", "let coding agents act, without keys and only as you approve", "", "1"),
    ("aileron-mcp", "aileron-mcp", "Aileron's actions as MCP tools on standard input and output", "", "1"),
]
