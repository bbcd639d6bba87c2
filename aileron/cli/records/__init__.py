"""What was, and is on record."""
