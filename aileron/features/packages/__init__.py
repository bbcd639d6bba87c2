"""Packages of connectors and actions: fetched, verified, compared."""
