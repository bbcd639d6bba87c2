"""Standing grants: what they allow, who makes them, and whether they still hold."""
