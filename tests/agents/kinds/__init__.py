"""What the scenarios must know of each agent, a module each."""
