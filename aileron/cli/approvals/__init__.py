"""What waits for the operator, what they are shown of it, and their answer."""
