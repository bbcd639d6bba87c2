"""The vault and what lies in it."""
