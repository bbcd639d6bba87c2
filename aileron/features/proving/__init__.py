"""Proves what connectors keep of the promises, against doubles of services that behave badly."""
