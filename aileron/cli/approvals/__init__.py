"""The commands for what waits for the operator, what they are shown of it, and their answer."""
