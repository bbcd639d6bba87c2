"""Tests of Aileron; they mirror the package."""
