"""Makes standing grants, tells what they allow, and checks whether they still hold."""
