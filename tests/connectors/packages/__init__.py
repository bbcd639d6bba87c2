"""Packages that agents publish."""
