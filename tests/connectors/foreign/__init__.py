"""Kinds of connector of other packages, and how such a package is installed."""
