"""Tests of the sign-in with a provider."""
