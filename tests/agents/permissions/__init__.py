"""The agents' own permission prompts, with the real programs."""
