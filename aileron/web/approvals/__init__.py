"""The pages of what waits for the operator, and of one approval whole."""
