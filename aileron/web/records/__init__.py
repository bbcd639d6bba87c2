"""What was: runs, sessions, and the record itself."""
