"""Tests of the live view in the terminal."""
