"""Waking agents by outcomes that they have not fetched."""
