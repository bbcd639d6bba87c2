"""What the shell completes: commands, options, and the names that lie in the home."""
