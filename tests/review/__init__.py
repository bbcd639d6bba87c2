"""Tests of what a person must see of a request."""
