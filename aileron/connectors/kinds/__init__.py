"""The kinds of connector, a package each."""
