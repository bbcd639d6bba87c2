"""Tests of the proxy for sandboxes."""
