"""A look at a whole installation, which changes nothing."""
