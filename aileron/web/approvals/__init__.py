"""What waits for the operator, and one approval whole."""
