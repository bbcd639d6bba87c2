"""The domain: frozen values, errors and interfaces, each in a public module."""
