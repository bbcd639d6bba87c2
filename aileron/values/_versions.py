"""Semantic versions, as actions and connectors name themselves and each other."""

from __future__ import annotations

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"

SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
"""The shape of a whole version (Semantic Versioning 2.0.0) as a regular expression, without groups of its own."""
