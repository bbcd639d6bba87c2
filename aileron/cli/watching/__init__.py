"""A live view in the terminal: what waits, one whole, and the decision about exactly that."""
