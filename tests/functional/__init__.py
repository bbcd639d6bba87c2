"""Functional tests: installed commands, real processes, a real agent, and scripted services on loopback."""
