"""Tests of permission prompts."""
